"""Model files: one safetensors file with the learned arrays and, in its header, what they mean.

The header's metadata are texts: ``format`` ("didyma"), ``format_version``, ``library_version``,
``model`` and ``summary`` (JSON) and ``checksum`` (SHA-256 over all of these and the arrays). The
model is a record

    {"class": "SVMRanker", "parameters": {…}, "attributes": {…}, "n_features": 46,
     "feature_names": ["bm25", …] or null}

or, for a scikit-learn pipeline, ``{"class": "Pipeline", "steps": [[name, record], …]}``. The array
``coef_`` of a model is the tensor "coef_", that of a pipeline's second step "1/coef_". An attribute
that is a model itself stands under "parts" as a record of its own, its arrays as "name/coef_"; one
that is a dictionary of arrays has its keys under "arrays", and the tensors "name/key".

Reading runs no code of the file: classes come from the table below, parameters are plain values or
the texts that users type, and everything is checked before anything is built.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from os import PathLike
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma import __version__
from didyma.errors import DataError, ModelFileError
from didyma.files import replace_when_done

__all__ = ["Savable", "describe", "load", "save"]

FORMAT = "didyma"
FORMAT_VERSION = 1

# What a file may name, and the module that we import it from.
CLASSES = {
    "SVMRanker": "didyma.estimators.svm",
    "ClassificationRanker": "didyma.estimators.classification",
    "LatentPerceptronRanker": "didyma.estimators.latent",
    "LatentSVMRanker": "didyma.estimators.latent",
    "PolynomialRanker": "didyma.estimators.classification",
    "CoreferenceResolver": "didyma.estimators.coreference",
    "MotifFinder": "didyma.estimators.motif",
    "TrigramTagger": "didyma.estimators.tagger",
    "LowRankReranker": "didyma.estimators.low_rank",
    "BoostingReranker": "didyma.estimators.boosting",
    "NBestReranker": "didyma.estimators.nbest",
    "DependencyParser": "didyma.nn.parser",
    "EntailmentClassifier": "didyma.nn.esim",
    "PassageRanker": "didyma.nn.passage",
    "LatentStructuredPerceptron": "didyma.estimators.structured",
    "LatentStructuredSVM": "didyma.estimators.structured",
    "StructuredPerceptron": "didyma.estimators.structured",
    "StructuredSVM": "didyma.estimators.structured",
    "Bag": "didyma.features.bags",
    "JointFeatures": "didyma.features.joint",
    "ScoreBinner": "didyma.features.binning",
    "QueryMinMaxScaler": "didyma.features.scaling",
    "QueryPercentileScaler": "didyma.features.scaling",
    "QueryStandardScaler": "didyma.features.scaling",
    "Pipeline": "sklearn.pipeline",
    "MaxAbsScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
}

# Our classes say in `_state` what they learn; these do not.
STATE = {
    "MaxAbsScaler": ("scale_", "max_abs_", "n_samples_seen_"),
    "MinMaxScaler": (
        *("scale_", "min_", "data_min_", "data_max_", "data_range_"),
        "n_samples_seen_",
    ),
    "StandardScaler": ("scale_", "mean_", "var_", "n_samples_seen_"),
}

Record: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, NDArray[Any]]


def save(
    estimator: Any, path: str | PathLike[str], *, summary: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator, or a pipeline of such, to ``path``, whole or not at all.

    ``summary`` is added to the numbers of the estimator's ``result_``, which the file keeps for
    people to read.
    """
    from safetensors.numpy import save as serialise
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    tensors: Tensors = {}
    texts = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "library_version": __version__,
        "model": json.dumps(_record(estimator, tensors, "")),
        "summary": json.dumps({**_summary(estimator), **(summary or {})}),
    }
    contents = serialise(tensors, {**texts, "checksum": _checksum(texts, tensors)})
    with replace_when_done(path, "wb") as file:
        file.write(contents)


def load(path: str | PathLike[str]) -> Any:
    """Read the estimator or pipeline that `save` wrote."""
    texts, tensors = _read(path)
    return _parse(path, lambda: _build(json.loads(texts["model"]), tensors, ""))


class Savable:
    """What every estimator of ours can do: be written to a model file, and be read from one."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file (see `didyma.model`)."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model file that holds a model of this class."""
        found = load(path)
        if not isinstance(found, cls):
            raise ModelFileError(f"{path}: holds a {type(found).__name__}, not a {cls.__name__}")
        return found


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model file holds, as plain values, without building the model.

    The keys are those of the record (see above) and ``format_version``, ``library_version``,
    ``summary`` and ``tensors`` (type and shape of each array).
    """
    texts, tensors = _read(path)
    return _parse(
        path,
        lambda: {
            "format_version": int(texts["format_version"]),
            "library_version": texts["library_version"],
            **json.loads(texts["model"]),
            "summary": json.loads(texts["summary"]),
            "tensors": {
                name: {"dtype": str(array.dtype), "shape": list(array.shape)}
                for name, array in tensors.items()
            },
        },
    )


def _parse(path: str | PathLike[str], make: Callable[[], Any]) -> Any:
    """What ``make`` makes of the file's contents, if they mean anything."""
    try:
        return make()
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: the model cannot be restored ({error})") from error


def _record(estimator: Any, tensors: Tensors, prefix: str) -> Record:
    """Describe an estimator, and put its arrays into ``tensors``."""
    name = type(estimator).__name__
    if name not in CLASSES or type(estimator) is not _class(name):
        known = ", ".join(CLASSES)
        raise DataError(f"a {name} cannot be saved in a model file; what can is {known}")
    if name == "Pipeline":
        steps = [
            [step, _record(part, tensors, f"{prefix}{i}/")]
            for i, (step, part) in enumerate(estimator.steps)
        ]
        return {"class": name, "steps": steps}
    state = {attribute: getattr(estimator, attribute) for attribute in _state(name)}
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    parts = {key: value for key, value in state.items() if type(value).__name__ in CLASSES}
    families = {key: value for key, value in state.items() if _is_family(value)}
    for key, family in families.items():
        arrays |= {f"{key}/{member}": array for member, array in family.items()}
    tensors |= {prefix + key: np.ascontiguousarray(array) for key, array in arrays.items()}
    special = {*arrays, *parts, *families}
    scalars = {key: value for key, value in state.items() if key not in special}
    names = getattr(estimator, "feature_names_in_", None)
    transient = getattr(estimator, "_transient", ())
    parameters = estimator.get_params(deep=False)
    kept = {key: value for key, value in parameters.items() if key not in transient}
    return {
        "class": name,
        "parameters": dict(_plain_items(kept, name)),
        "attributes": dict(_plain_items(scalars, name)),
        "parts": {key: _record(part, tensors, f"{prefix}{key}/") for key, part in parts.items()},
        "arrays": {key: list(family) for key, family in families.items()},
        "n_features": getattr(estimator, "n_features_in_", None),
        "feature_names": None if names is None else list(names),
    }


def _build(record: Record, tensors: Tensors, prefix: str) -> Any:
    """The estimator of a record; the inverse of `_record`."""
    name = record["class"]
    if name not in CLASSES:
        raise ValueError(f"it is of a class that this version does not know, {name}")
    if name == "Pipeline":
        return _class(name)(
            [
                (step, _build(part, tensors, f"{prefix}{i}/"))
                for i, (step, part) in enumerate(record["steps"])
            ]
        )
    parameters = {key: _tuples(value) for key, value in record["parameters"].items()}
    estimator = _class(name)(**parameters)
    for attribute in _state(name):
        setattr(estimator, attribute, _attribute(attribute, record, tensors, prefix))
    if record["n_features"] is not None:
        estimator.n_features_in_ = record["n_features"]
    if record["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(record["feature_names"], dtype=object)
    return estimator


def _attribute(name: str, record: Record, tensors: Tensors, prefix: str) -> Any:
    """What an estimator has learned under this name."""
    if prefix + name in tensors:
        return tensors[prefix + name]
    if name in record.get("parts", {}):
        return _build(record["parts"][name], tensors, f"{prefix}{name}/")
    if name in record.get("arrays", {}):
        members = record["arrays"][name]
        return {member: tensors[f"{prefix}{name}/{member}"] for member in members}
    return record["attributes"][name]


def _read(path: str | PathLike[str]) -> tuple[dict[str, str], Tensors]:
    """The metadata and arrays of a file that is whole, ours, and of a version that we know."""
    from safetensors import SafetensorError, safe_open

    if os.path.isdir(path):
        raise ModelFileError(f"{path}: expected a model file, found a folder")
    try:
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata() or {}
            _check_format(path, texts)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file") from None
    except (OSError, SafetensorError, AttributeError, TypeError) as error:
        raise ModelFileError(f"{path}: damaged, or not a model file ({error})") from None
    checksum = texts.pop("checksum", None)
    if checksum != _checksum(texts, tensors):
        raise ModelFileError(f"{path}: damaged, its contents do not match their checksum")
    return texts, tensors


def _check_format(path: str | PathLike[str], texts: Mapping[str, str]) -> None:
    if texts.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a model of this library")
    version = texts.get("format_version", "")
    if not version.isdecimal():
        raise ModelFileError(f"{path}: damaged, its format version is {version!r}")
    if int(version) > FORMAT_VERSION:
        writer = texts.get("library_version", "of a later version")
        raise ModelFileError(
            f"{path}: written by didyma {writer} in format {version}, but this is didyma "
            f"{__version__}, which reads format {FORMAT_VERSION}: upgrade to load it"
        )


def _checksum(texts: Mapping[str, str], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode())
    for name, array in sorted(tensors.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _class(name: str) -> Any:
    return getattr(import_module(CLASSES[name]), name)


def _state(name: str) -> tuple[str, ...]:
    return STATE[name] if name in STATE else getattr(_class(name), "_state", ())


def _summary(estimator: Any) -> dict[str, Any]:
    """The plain values of the ``result_`` of an estimator, or of a pipeline's last step."""
    final = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    result = getattr(final, "result_", None)
    names = [field.name for field in fields(result)] if is_dataclass(result) else []
    found = {name: getattr(result, name) for name in names}
    found["n_queries"] = getattr(final, "n_queries_", None)
    return {key: _plain(value) for key, value in found.items() if _is_plain(value)}


def _plain_items(values: Mapping[str, Any], owner: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if not _is_plain(value):
            raise DataError(
                f"a value of type {type(value).__name__} cannot be saved in a model file",
                field=f"{owner}.{key}",
            )
        yield key, _plain(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_plain(value[key]) for key in value)
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return (
        value is None or isinstance(value, (bool, int, float, str, np.generic)) or _is_ours(value)
    )


def _is_family(value: Any) -> bool:
    """Whether this is a dictionary of arrays, as a network's parameters are."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(array, np.ndarray) for array in value.values())
    )


def _is_ours(value: Any) -> bool:
    """Whether this is a loss, a feature map, or another value of ours that has a text."""
    return not callable(value) and type(value).__module__.startswith("didyma.")


def _plain(value: Any) -> Any:
    """JSON for a plain value; our own values become the texts that users type."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if _is_ours(value) else value


def _tuples(value: Any) -> Any:
    """JSON has no tuples, parameters no lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
