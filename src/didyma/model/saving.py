"""Write a fitted estimator to a model file, and read it back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any, Self

from didyma.errors import DataError, ModelFileError
from didyma.model.codec import lost_parts
from didyma.model.plain import Lost
from didyma.model.predictor import Model, restoring

__all__ = ["Savable", "describe", "load", "save"]


def save(
    estimator: Any, path: str | PathLike[str], *, summary: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator, or a pipeline of such, to ``path``, whole or not at all.

    ``summary`` is added to the numbers of the estimator's ``result_``, which the file keeps for
    people to read. Warns of parameters that it cannot keep.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import SVMRanker
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(SVMRanker().fit([[1.0], [0.0]], [1, 0]), path)
    >>> load(path).predict([[2.0], [1.0]]).argmax()
    np.int64(0)
    """
    model = Model.of(estimator, summary)
    if lost := ", ".join(lost_parts(model.record)):
        warnings.warn(
            f"a model file cannot keep {lost}: the loaded model predicts as this one does, but "
            "needs set_params before another fit",
            stacklevel=3,
        )
    model.write(path)


def load(path: str | PathLike[str]) -> Any:
    """Read the estimator or pipeline that `save` wrote.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from didyma import SVMRanker
    >>> path = Path(tempfile.mkdtemp(), "model.safetensors")
    >>> save(SVMRanker(C=3.0).fit([[1.0], [0.0]], [1, 0]), path)
    >>> load(path).C
    3.0
    """
    model = Model.read(path)
    with restoring(path):
        return model.estimator


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model file holds, as plain values, without building the model.

    The keys are those of the record (see `didyma.model`) and ``format_version``,
    ``library_version``, ``summary`` and ``tensors`` (type and shape of each array).
    """
    return Model.read(path).describe()


class Savable:
    """What every estimator of ours can do: be written to a model file, and be read from one."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write a model file (see `didyma.model`)."""
        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a model file that holds a model of this class."""
        loaded = load(path)
        if not isinstance(loaded, cls):
            raise ModelFileError(f"{path}: holds a {type(loaded).__name__}, not a {cls.__name__}")
        return loaded

    def _check_restored(self) -> None:
        """Refuse to go on without parameters that were lost in a model file."""
        for name, value in self.get_params(deep=False).items():  # type: ignore[attr-defined]
            if isinstance(value, Lost):
                raise DataError(
                    f"was {value.what}, which the model file does not hold: set it, "
                    f"set_params({name}=…)",
                    field=name,
                )

    def _check_state(self) -> None:
        """Raise ValueError if what a model file brought does not fit together; allocate nothing."""
