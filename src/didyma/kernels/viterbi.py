"""The best sequences of tags, and the k best (Viterbi)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["k_best_sequences", "viterbi"]


@jit
def viterbi(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.Sequence` for the first size[0] positions.

    dims are the number of tags, the step of the transitions from one position to the next (0 where
    they are tied), and where start and end scores begin in ``extra``.
    """
    n, n_tags, stride, start, end = size[0], dims[0], dims[1], dims[2], dims[3]
    if n == 0:
        return 0
    unary = scores[: n * n_tags].reshape((n, n_tags))
    n_matrices = n - 1 if stride > 0 else min(n - 1, 1)
    transitions = extra[: n_matrices * n_tags * n_tags].reshape((n_matrices, n_tags, n_tags))
    # value[i, b]: score of the best way to tag the positions up to i, the last of them with b
    value = work[: n * n_tags].reshape((n, n_tags))
    for b in range(n_tags):
        value[0, b] = unary[0, b] + extra[start + b]
    for i in range(1, n):
        matrix = i - 1 if stride > 0 else 0
        if n_tags < 8:
            for b in range(n_tags):
                highest = -np.inf
                for a in range(n_tags):
                    x = value[i - 1, a] + transitions[matrix, a, b]
                    highest = x if x > highest else highest
                value[i, b] = highest + unary[i, b]
            continue
        # Four rows at a time and no branches, so that the loop over b becomes vector instructions;
        # the last row is repeated where fewer are left, which does not change a maximum.
        after = value[i]
        for b in range(n_tags):
            after[b] = -np.inf
        for group in range((n_tags + 3) // 4):
            a0 = 4 * group
            a1, a2, a3 = min(a0 + 1, n_tags - 1), min(a0 + 2, n_tags - 1), min(a0 + 3, n_tags - 1)
            v0, v1, v2, v3 = value[i - 1, a0], value[i - 1, a1], value[i - 1, a2], value[i - 1, a3]
            row0, row1 = transitions[matrix, a0], transitions[matrix, a1]
            row2, row3 = transitions[matrix, a2], transitions[matrix, a3]
            for b in range(n_tags):
                before, x, y, z = after[b], v0 + row0[b], v1 + row1[b], v2 + row2[b]
                x = x if x > before else before
                y = y if y > z else z
                z = v3 + row3[b]
                x = x if x > z else z
                after[b] = x if x > y else y
        for b in range(n_tags):
            after[b] += unary[i, b]
    best, highest = -1, -np.inf
    for b in range(n_tags):
        x = value[n - 1, b] + extra[end + b]
        if x > highest:
            best, highest = b, x
    if best < 0:
        return -1
    parts[n - 1] = (n - 1) * n_tags + best
    extra_parts[n] = end + best
    # Only the best path needs to know where it came from.
    for i in range(n - 2, -1, -1):
        matrix = i if stride > 0 else 0
        previous, highest = 0, -np.inf
        for a in range(n_tags):
            x = value[i, a] + transitions[matrix, a, best]
            if x > highest:
                previous, highest = a, x
        parts[i] = i * n_tags + previous
        extra_parts[i] = (matrix * n_tags + previous) * n_tags + best
        best = previous
    extra_parts[n - 1] = start + best
    return n


@jit
def k_best_sequences(scores, extra, dims, sizes, tags, totals):
    """The best tags (B, k, n) and their scores (B, k), best first, padded with −1 and −∞.

    Every tag of a position keeps its k best histories, merged from the sorted ones of its
    predecessors.
    """
    n_tags, stride, start, end = dims[0], dims[1], dims[2], dims[3]
    k, longest = tags.shape[1], tags.shape[2]
    value = np.empty((2, n_tags, k))
    # came_from[i, b, r] = a * k + rank: the history that the r-th best one of b continues
    came_from = np.empty((longest, n_tags, k), np.int64)
    taken = np.empty(n_tags, np.int64)
    for instance in range(scores.shape[0]):
        more = extra[instance if extra.shape[0] > 1 else 0]
        n = sizes[instance, 0]
        if n == 0:
            totals[instance, 0] = 0.0
            continue
        for b in range(n_tags):
            for r in range(k):
                value[0, b, r] = -np.inf
            value[0, b, 0] = scores[instance, b] + more[start + b]
        for i in range(1, n):
            old, new = value[(i - 1) % 2], value[i % 2]
            for b in range(n_tags):
                for a in range(n_tags):
                    taken[a] = 0
                for r in range(k):
                    a, highest = next_best(old, taken, more, (i - 1) * stride + b, n_tags)
                    new[b, r] = highest + scores[instance, i * n_tags + b]
                    if a >= 0:
                        came_from[i, b, r] = a * k + taken[a]
                        taken[a] += 1
        for a in range(n_tags):
            taken[a] = 0
        for r in range(k):
            a, highest = next_best(value[(n - 1) % 2], taken, more, end, 1)
            if a < 0:
                break
            totals[instance, r] = highest
            rank = taken[a]
            taken[a] += 1
            for i in range(n - 1, 0, -1):
                tags[instance, r, i] = a
                history = came_from[i, a, rank]
                a, rank = history // k, history % k
            tags[instance, r, 0] = a


@jit
def next_best(value, taken, steps, first, stride):
    """Which a continues best from its first history not taken, if steps[first + a·stride] is added.

    Returns a and the score, or −1 if nothing possible is left.
    """
    best, highest = -1, -np.inf
    for a in range(value.shape[0]):
        if taken[a] < value.shape[1]:
            x = value[a, taken[a]] + steps[first + a * stride]
            if x > highest:
                best, highest = a, x
    return best, highest
