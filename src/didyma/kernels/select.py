"""Sorting by score (NumPy's argsort takes seconds to compile)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["descending", "settle", "split"]

SMALL = 16
MOVES = 8  # of an item, on average, as long as an order is put right by insertion


@jit
def _insert(scores, index, low, high):
    """Sort index[low:high] by insertion."""
    for t in range(low + 1, high):
        item = index[t]
        s = t - 1
        while s >= low and scores[index[s]] < scores[item]:
            index[s + 1] = index[s]
            s -= 1
        index[s + 1] = item


@jit
def descending(scores, index):
    """Sort `index` in place so that scores[index] descends; equal scores in no promised order."""
    n = index.shape[0]
    if n <= SMALL:
        _insert(scores, index, 0, n)
        return
    values = np.empty(n)
    for t in range(n):
        values[t] = scores[index[t]]
    stack = np.empty((64, 2), dtype=np.int64)
    stack[0, 0] = 0
    stack[0, 1] = n
    depth = 1
    while depth > 0:
        depth -= 1
        low = stack[depth, 0]
        high = stack[depth, 1]
        while high - low > SMALL:
            pivot = split(values, index, low, high)
            if pivot - low > high - pivot:  # the larger part waits: logarithmic depth
                stack[depth, 0] = low
                stack[depth, 1] = pivot
                low = pivot + 1
            else:
                stack[depth, 0] = pivot + 1
                stack[depth, 1] = high
                high = pivot
            depth += 1
        _insert(scores, index, low, high)


@jit
def _exchange(values, rows, a, b):
    values[a], values[b] = values[b], values[a]
    rows[a], rows[b] = rows[b], rows[a]


@jit
def split(values, rows, low, high):
    """Rearrange values[low:high], and rows with them, around a pivot; returns the pivot's position.

    Values before it are not smaller, values behind it not larger (Hoare's partition, which stops at
    equal values and so stays balanced on ties; median of three).
    """
    middle, last = (low + high) >> 1, high - 1
    if values[middle] > values[low]:
        _exchange(values, rows, middle, low)
    if values[last] > values[low]:
        _exchange(values, rows, last, low)
    if values[middle] > values[last]:
        _exchange(values, rows, middle, last)
    # Now first ≥ last ≥ middle: the median goes to the front.
    _exchange(values, rows, low, last)
    pivot = values[low]
    i, j = low, high
    while True:
        i += 1
        while i < high and values[i] > pivot:
            i += 1
        j -= 1
        while values[j] < pivot:
            j -= 1
        if i >= j:
            break
        _exchange(values, rows, i, j)
    _exchange(values, rows, low, j)
    return j


@jit
def _merge_sort(scores, order):
    """Sort `order` anew by descending score, equal scores by index."""
    n = order.shape[0]
    for t in range(n):
        order[t] = t
    for low in range(0, n, SMALL):
        _insert(scores, order, low, min(low + SMALL, n))
    other = np.empty_like(order)
    width = SMALL
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            a, b = low, middle
            for t in range(low, high):
                if b == high or (a < middle and scores[order[a]] >= scores[order[b]]):
                    other[t] = order[a]
                    a += 1
                else:
                    other[t] = order[b]
                    b += 1
        for t in range(n):
            order[t] = other[t]
        width *= 2


@jit
def settle(scores, order):
    """Sort all rows by descending score, equal scores by index, from the order they had before.

    Scores that have changed little are put right by insertion, in O(n); others are sorted anew. The
    result does not depend on the order before.
    """
    left = MOVES * order.shape[0]
    for t in range(1, order.shape[0]):
        item = order[t]
        score = scores[item]
        s = t - 1
        before = scores[order[s]]
        while before < score or (before == score and order[s] > item):
            order[s + 1] = order[s]
            s -= 1
            if s < 0:
                break
            before = scores[order[s]]
        order[s + 1] = item
        left -= t - 1 - s
        if left < 0:
            _merge_sort(scores, order)
            return
