"""Number the distinct rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["distinct"]

_PRIME, _MASK = 16777619, 2**38 - 1  # whose product fits in 63 bits


@jit
def distinct(keys: Any) -> Any:
    """Number the distinct rows of ``keys`` (n, words) by first appearance, with a hash table.

    Returns (the number of each row, the first row of each number).
    """
    n, words = keys.shape
    size = 2
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    code, first, count = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for row in range(n):
        mixed = np.int64(0)
        for k in range(words):
            mixed = ((mixed ^ np.int64(keys[row, k])) * _PRIME) & _MASK
        slot = (mixed ^ (mixed >> 19)) & (size - 1)
        while table[slot] >= 0 and not _equal(keys, row, first[table[slot]]):
            slot = (slot + 1) % size
        if table[slot] < 0:
            table[slot], first[count] = count, row
            count += 1
        code[row] = table[slot]
    return code, first[:count].copy()


@jit
def _equal(keys: Any, a: Any, b: Any) -> Any:
    for k in range(keys.shape[1]):  # noqa: SIM110 - a generator does not compile
        if keys[a, k] != keys[b, k]:
            return False
    return True
