"""The best projective tree over words: Eisner's algorithm, O(n³).

A span of neighbouring words is *complete* when its head needs no more words on this side, and
*joined* when all that it lacks is an arc between its two ends:

    joined[s, t] = max over s ≤ q < t of right[s, q] + left[q + 1, t]
    right[s, t]  = max over s < q ≤ t of joined[s, q] + score(s → q) + right[q, t]     head s
    left[s, t]   = max over s ≤ q < t of left[s, q] + joined[q, t] + score(t → q)      head t

Charts that are read along t are kept transposed as well, so that every maximum runs over two
contiguous rows. Where it was attained is asked again along the best tree only.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["eisner", "eisner_index", "eisner_work"]

JOINED, RIGHT, LEFT = 0, 1, 2


def eisner_work(n: int) -> int:
    """Scratch floats for n words: six charts."""
    return 6 * (n + 1) ** 2


def eisner_index(n: int) -> int:
    """Scratch integers for n words: spans that wait to be split."""
    return 3 * (n + 2)


@jit
def highest(a, b):
    """Maximum of a + b."""
    best = -np.inf
    for i in range(a.shape[0]):
        value = a[i] + b[i]
        best = value if value > best else best
    return best


@jit
def where_highest(a, b):
    """Where a + b is highest."""
    place = 0
    for i in range(1, a.shape[0]):
        if a[i] + b[i] > a[place] + b[place]:
            place = i
    return place


@jit
def eisner(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.ProjectiveTree`; dims: stride of a row and whether one root.

    A single root's only word makes all of its right side, so nothing joins to the right of it.
    """
    stride, single_root, n = dims[0], dims[1], size[0]
    if n == 0:
        return 0
    width = n + 1
    area = width * width
    right = work[:area]
    right_t = work[area : 2 * area]
    left = work[2 * area : 3 * area]
    left_t = work[3 * area : 4 * area]
    to_right = work[4 * area : 5 * area]  # joined[s, t] + score(s → t)
    to_left_t = work[5 * area : 6 * area]  # joined[s, t] + score(t → s), transposed
    for i in range(0, area, width + 1):
        right[i] = right_t[i] = left[i] = left_t[i] = 0.0
    for t in range(1, width):
        column = t * width
        for s in range(t - 1, -1, -1):
            row = s * width
            if s == 0 and single_root:
                joined = left_t[column + 1]
            else:
                joined = highest(right[row + s : row + t], left_t[column + s + 1 : column + t + 1])
            to_right[row + t] = joined + scores[t * stride + s]
            to_left_t[column + s] = joined + scores[s * stride + t]
            best = highest(
                to_right[row + s + 1 : row + t + 1], right_t[column + s + 1 : column + t + 1]
            )
            right[row + t] = right_t[column + s] = best
            best = highest(left[row + s : row + t], to_left_t[column + s : column + t])
            left[row + t] = left_t[column + s] = best
    if right[n] == -np.inf:
        return -1
    index[0], index[1], index[2] = RIGHT, 0, n
    top = 3
    while top > 0:
        top -= 3
        kind, s, t = index[top], index[top + 1], index[top + 2]
        row, column = s * width, t * width
        if kind == RIGHT:
            q = s + 1
            q += where_highest(
                to_right[row + q : row + t + 1], right_t[column + q : column + t + 1]
            )
            parts[q - 1] = q * stride + s
            pair = (JOINED, s, q, RIGHT, q, t)
        elif kind == LEFT:
            q = s + where_highest(left[row + s : row + t], to_left_t[column + s : column + t])
            parts[q - 1] = q * stride + t
            pair = (LEFT, s, q, JOINED, q, t)
        else:
            q = s
            if s > 0 or not single_root:
                q += where_highest(
                    right[row + s : row + t], left_t[column + s + 1 : column + t + 1]
                )
            pair = (RIGHT, s, q, LEFT, q + 1, t)
        for i in (0, 3):
            if pair[i + 1] < pair[i + 2]:
                index[top], index[top + 1], index[top + 2] = pair[i], pair[i + 1], pair[i + 2]
                top += 3
    for i in range(n, parts.shape[0]):
        parts[i] = -1
    return n
