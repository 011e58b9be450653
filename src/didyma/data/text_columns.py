"""Columns of text as NumPy arrays."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDEST = 256


def text_array(texts: Sequence[str]) -> NDArray[Any]:
    """Texts as fixed-width NumPy text, or as objects where a long one would waste memory.

    >>> text_array(["a", "bc"]).dtype
    dtype('<U2')
    """
    widest = max(map(len, texts), default=0)
    return np.array(texts, dtype=str if widest <= WIDEST else object)


def is_text(column: NDArray[Any]) -> bool:
    """Whether an array of text holds characters only; one from a file may hold anything.

    >>> is_text(np.array(["a"])), is_text(np.array([1 << 30], np.uint32).view("U1"))
    (True, False)
    """
    if column.dtype == object:
        try:
            return all(str(text).encode() is not None for text in column.tolist())
        except UnicodeEncodeError:
            return False
    if column.dtype.kind != "U":
        return True
    codes = np.ascontiguousarray(column).reshape(-1).view(np.uint32)
    return not np.any((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000)))


def first_repeated(texts: Sequence[str]) -> str | None:
    """The first text that stood before, if there is one.

    >>> first_repeated(["a", "b", "a"])
    'a'
    """
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None


def distinct(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct rows of columns of text or integers by first appearance.

    Returns (the number of each row, the first row of each number).

    >>> distinct(np.array(["b", "a", "b"]), np.array([7, 7, 7]))
    (array([0, 1, 0]), array([0, 1]))
    """
    if any(column.dtype == object for column in columns):
        number_of: dict[tuple[Any, ...], int] = {}
        rows = zip(*(column.tolist() for column in columns))
        codes = np.array([number_of.setdefault(row, len(number_of)) for row in rows], np.int64)
        return codes, np.unique(codes, return_index=True)[1]
    from didyma._core.data import distinct as distinct_rows

    words = [
        np.ascontiguousarray(column).view(np.uint32).reshape(len(column), column.itemsize // 4)
        for column in columns
    ]
    codes, first = distinct_rows(np.hstack(words))
    return codes, first
