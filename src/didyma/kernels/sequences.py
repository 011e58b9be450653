"""What the words of a query and of a passage have in common, in order."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["N_SEQUENCES", "sequences"]

N_SEQUENCES = 4


@jit
def sequences(
    words: Any,
    skipped: Any,
    begins: Any,
    ends: Any,
    queries: Any,
    bounds: Any,
    rows: Any,
    shortest: Any,
    decay: Any,
    out: Any,
) -> None:
    """Fill ``out`` (n_rows, 4): common substring, subsequence and tiles as shares of the query.

    Tiles are common substrings of at least ``shortest`` words, taken greedily. The last column is
    the mean of the cosines of one and of two words with gaps: the kernel of m words is the sum of
    decay^(span in a + span in b) over all pairs of equal subsequences of m words (Lodhi et al.
    2002). Text i has the words ``begins[i]`` to ``ends[i]`` that are not ``skipped``, unless all of
    the query are.
    """
    longest = 1
    for i in range(len(begins)):
        longest = max(longest, ends[i] - begins[i])
    a, b = np.empty(longest, words.dtype), np.empty(longest, words.dtype)
    above, row = np.zeros(longest + 1), np.zeros(longest + 1)
    free_a, free_b = np.empty(longest, np.bool_), np.empty(longest, np.bool_)
    for q in range(len(queries)):
        every = True
        for t in range(begins[queries[q]], ends[queries[q]]):
            every = every and skipped[t]
        n_a = _take(words, skipped, begins[queries[q]], ends[queries[q]], every, a)
        one_a, two_a = _gappy(a, n_a, a, n_a, decay, above, row)
        for r in range(bounds[q], bounds[q + 1]):
            n_b = _take(words, skipped, begins[rows[r]], ends[rows[r]], every, b)
            one, two = _gappy(a, n_a, b, n_b, decay, above, row)
            if one == 0:  # no word is common
                for k in range(N_SEQUENCES):
                    out[r, k] = 0
                continue
            one_b, two_b = _gappy(b, n_b, b, n_b, decay, above, row)
            out[r, 0] = _longest_run(a, n_a, b, n_b, above) / n_a
            out[r, 1] = _subsequence(a, n_a, b, n_b, above) / n_a
            out[r, 2] = 0.0
            if out[r, 0] * n_a >= shortest:
                out[r, 2] = _tiles(a, n_a, b, n_b, shortest, above, free_a, free_b) / n_a
            out[r, 3] = one / sqrt(one_a * one_b) / 2
            if two > 0:
                out[r, 3] += two / sqrt(two_a * two_b) / 2


@jit
def _take(words: Any, skipped: Any, begin: Any, end: Any, every: Any, taken: Any) -> Any:
    n = 0
    for t in range(begin, end):
        if every or not skipped[t]:
            taken[n] = words[t]
            n += 1
    return n


@jit
def _gappy(a: Any, n_a: Any, b: Any, n_b: Any, decay: Any, above: Any, row: Any) -> Any:
    """Kernels of one and of two words."""
    one, two = 0.0, 0.0
    for j in range(n_b + 1):
        above[j] = 0.0  # kernel of one word in a[:i], b[:j], spans counted to i and j
    for i in range(n_a):
        along, row[0] = 0.0, 0.0
        for j in range(n_b):
            along *= decay
            if a[i] == b[j]:
                one += decay * decay
                two += decay * decay * above[j]
                along += decay * decay
            row[j + 1] = decay * above[j + 1] + along
        for j in range(n_b + 1):
            above[j] = row[j]
    return one, two


@jit
def _longest_run(a: Any, n_a: Any, b: Any, n_b: Any, run: Any) -> Any:
    longest = 0.0
    for j in range(n_b + 1):
        run[j] = 0.0
    for i in range(n_a):
        for j in range(n_b - 1, -1, -1):
            run[j + 1] = run[j] + 1 if a[i] == b[j] else 0.0
            longest = max(longest, run[j + 1])
    return longest


@jit
def _subsequence(a: Any, n_a: Any, b: Any, n_b: Any, common: Any) -> Any:
    for j in range(n_b + 1):
        common[j] = 0.0
    for i in range(n_a):
        diagonal = 0.0
        for j in range(n_b):
            before = common[j + 1]
            common[j + 1] = diagonal + 1 if a[i] == b[j] else max(before, common[j])
            diagonal = before
    return common[n_b]


@jit
def _tiles(
    a: Any, n_a: Any, b: Any, n_b: Any, shortest: Any, run: Any, free_a: Any, free_b: Any
) -> Any:
    """Words covered when the longest free common substring is taken, again and again.

    Of equally long ones the first in ``a``, then in ``b``, is taken.
    """
    for i in range(n_a):
        free_a[i] = True
    for j in range(n_b):
        free_b[j] = True
    covered = 0.0
    while True:
        length, at_a, at_b = 0.0, 0, 0
        for j in range(n_b + 1):
            run[j] = 0.0
        for i in range(n_a - 1, -1, -1):
            for j in range(n_b):
                # entry j is overwritten when entry j + 1 is still that of the next word of a
                run[j] = run[j + 1] + 1 if a[i] == b[j] and free_a[i] and free_b[j] else 0.0
            for j in range(n_b - 1, -1, -1):
                if run[j] >= length and run[j] > 0:
                    length, at_a, at_b = run[j], i, j
        if length < shortest:
            return covered
        for k in range(int(length)):
            free_a[at_a + k] = False
            free_b[at_b + k] = False
        covered += length
