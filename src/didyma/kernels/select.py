"""Sorting and partial sorting of indices by score (NumPy's argsort takes seconds to compile)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["descending", "select"]

SMALL = 16


@jit
def _partition(scores, index, low, high):
    """Hoare's partition of index[low..high] around a median of three: ends of the two parts."""
    a, b, c = scores[index[low]], scores[index[(low + high) >> 1]], scores[index[high]]
    pivot = max(min(a, b), min(max(a, b), c))
    i, j = low, high
    while i <= j:
        while scores[index[i]] > pivot:
            i += 1
        while scores[index[j]] < pivot:
            j -= 1
        if i <= j:
            index[i], index[j] = index[j], index[i]
            i += 1
            j -= 1
    return i, j


@jit
def descending(scores, index):
    """Sort `index` in place so that scores[index] descends; equal scores in no promised order."""
    stack = np.empty((64, 2), dtype=np.int64)  # the larger part waits, so depth is logarithmic
    depth = 1
    stack[0, 0] = 0
    stack[0, 1] = index.shape[0] - 1
    while depth > 0:
        depth -= 1
        low = stack[depth, 0]
        high = stack[depth, 1]
        while high - low > SMALL:
            i, j = _partition(scores, index, low, high)
            if j - low > high - i:
                stack[depth, 0] = low
                stack[depth, 1] = j
                low = i
            else:
                stack[depth, 0] = i
                stack[depth, 1] = high
                high = j
            depth += 1
        for t in range(low + 1, high + 1):
            item = index[t]
            s = t - 1
            while s >= low and scores[index[s]] < scores[item]:
                index[s + 1] = index[s]
                s -= 1
            index[s + 1] = item


@jit
def select(scores, index, low, high, middle):
    """Rearrange index[low:high] so that the one at `middle` stands where sorting would put it.

    Larger scores stand before it, smaller ones behind it (Hoare's quickselect).
    """
    high -= 1
    while high > low:
        i, j = _partition(scores, index, low, high)
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return
