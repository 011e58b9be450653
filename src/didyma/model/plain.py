"""Plain values, which JSON can hold, and the texts of those that users type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from didyma.errors import DataError

# Values that have a text, by their root class, and the function that reads the text.
READERS = {
    "didyma.ranking.losses.ItemwiseLoss": "didyma.ranking.losses.parse_loss",
    "didyma.ranking.feature_maps.FeatureMap": "didyma.ranking.feature_maps.parse_feature_map",
    "ir_measures.measures.base.Measure": "didyma.metrics.measures.parse",
}


class Lost:
    """What stands for a parameter that a model file could not keep."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what}, which the model file does not hold>"


def called(value: Any) -> str:
    """What to call a parameter that is lost."""
    if isinstance(value, Lost):
        return value.what
    name = getattr(value, "__qualname__", None)
    return f"a {type(value).__name__}" if name is None else f"the {type(value).__name__} {name}"


def summary_of(estimator: Any) -> dict[str, Any]:
    """The plain values of the ``result_`` of an estimator, or of a pipeline's last step.

    Times are left out: files of equal training are equal.
    """
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    result = getattr(final, "result_", None)
    names = [field.name for field in fields(result)] if is_dataclass(result) else []
    values = {name: getattr(result, name) for name in names if name != "seconds"}
    values["n_queries"] = getattr(final, "n_queries_", None)
    brief = {key: value for key, value in values.items() if not isinstance(value, np.ndarray)}
    return {key: plain(value) for key, value in brief.items() if is_plain(value)}


def is_plain(value: Any) -> bool:
    """Whether `plain` can make JSON of a value."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_plain(value[key]) for key in value)
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biufU"
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return True
    return text_of(value) is not None


def text_of(value: Any) -> str | None:
    """The text that restores a value whole, as users type it, if there is one."""
    for cls in type(value).__mro__:
        if reader := READERS.get(f"{cls.__module__}.{cls.__qualname__}"):
            module, _, function = reader.rpartition(".")
            try:
                read = getattr(import_module(module), function)(str(value))
            except DataError:
                return None
            return str(value) if read == value else None
    return None


def plain(value: Any) -> Any:
    """JSON for a plain value."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return text_of(value)


def tuples(value: Any) -> Any:
    """JSON has no tuples, parameters no lists."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def checked_plain(value: Any, place: str) -> Any:
    """The same, or an error that says where the value is that has no JSON."""
    if not is_plain(value):
        problem = f"a value of type {type(value).__name__} cannot be saved in a model file"
        raise DataError(problem, field=place)
    return plain(value)
