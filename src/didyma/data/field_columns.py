"""A field of all documents as a column: texts, numbers, categories or vectors.

Most columns are of one type, which is read at once; all others value by value, which tells what is
wrong and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from didyma.data.field_kinds import FailInRow, is_missing, number_in, text_in, vector_in
from didyma.data.records import Fail

NUMBERS = {float, int, bool, type(None)}
VECTORS = {list, tuple, np.ndarray}


def column_of(name: str, records: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The value of each record, None where it has none."""
    return [record.get(name) for record in records]


def fail_in_field(fail: Fail, name: str) -> FailInRow:
    """What raises errors about one field."""

    def failed(row: int, problem: str) -> NoReturn:
        fail(row, name, problem)

    return failed


def text_column(values: Sequence[Any], name: str, fail: Fail) -> list[str]:
    """Texts, empty ones where there are none."""
    if set(map(type, values)) <= {str}:
        return list(values)
    failed = fail_in_field(fail, name)
    return ["" if own is None else text_in(own, failed, row) for row, own in enumerate(values)]


def number_column(values: Sequence[Any], name: str, kind: str, fail: Fail) -> NDArray[np.float64]:
    """Numbers, NaN where there are none."""
    if set(map(type, values)) <= NUMBERS:
        try:
            numbers = np.array(values, np.float64)
        except OverflowError:
            numbers = np.array([np.inf])
        if not np.isinf(numbers).any():
            return numbers
    failed = fail_in_field(fail, name)
    return np.array(
        [
            np.nan if is_missing(own) else number_in(own, failed, row, kind)
            for row, own in enumerate(values)
        ],
        np.float64,
    )


def category_column(values: Sequence[Any], name: str, fail: Fail) -> NDArray[Any]:
    """Texts without spaces around them, None where there are none."""
    failed = fail_in_field(fail, name)
    column = np.empty(len(values), object)
    for row, own in enumerate(values):
        column[row] = None if is_missing(own) else text_in(own, failed, row).strip()
    return column


def vector_column(
    values: Sequence[Any], name: str, dimension: int, fail: Fail
) -> NDArray[np.float32]:
    """Vectors as rows, NaN where there are none."""
    if set(map(type, values)) <= VECTORS:
        try:
            with np.errstate(over="ignore"):  # what is too great is told below
                vectors = np.array(values, np.float32)
        except (TypeError, ValueError, OverflowError):
            vectors = np.empty(0, np.float32)
        if vectors.shape == (len(values), dimension) and np.isfinite(vectors).all():
            return vectors
    failed = fail_in_field(fail, name)
    vectors = np.full((len(values), dimension), np.nan, np.float32)
    for row, own in enumerate(values):
        if not is_missing(own):
            vectors[row] = vector_in(own, failed, row, dimension)
    return vectors
