"""Columns of numbers that are checked once, where they enter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError

__all__ = ["one_per_row", "read_labels", "read_scores"]


def read_scores(scores: ArrayLike, n_rows: int) -> NDArray[np.float32]:
    """Scores in single precision, in which they are compared; infinities rank first and last."""
    column = _numbers(scores, n_rows, "scores")
    if (missing := np.isnan(column)).any():
        raise DataError(f"row {missing.argmax()}: expected a number, found NaN", field="scores")
    with np.errstate(over="ignore"):
        return column.astype(np.float32) + np.float32(0)  # negative zero becomes zero


def read_labels(y: ArrayLike, n_rows: int, field: str = "y") -> NDArray[np.float64]:
    """Relevance labels, each a finite number."""
    column = _numbers(y, n_rows, field)
    if (bad := ~np.isfinite(column)).any():
        row = bad.argmax()
        raise DataError(f"row {row}: expected a finite label, found {column[row]}", field=field)
    return column


def one_per_row(values: ArrayLike, n_rows: int, field: str) -> NDArray[Any]:
    """An array with one value for each row."""
    column = np.asarray(values)
    if column.shape != (n_rows,):
        raise DataError(f"expected {n_rows} values, found shape {column.shape}", field=field)
    return column


def _numbers(values: ArrayLike, n_rows: int, field: str) -> NDArray[np.float64]:
    try:
        return one_per_row(values, n_rows, field).astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"expected numbers ({error})", field=field) from None
