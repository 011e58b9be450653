"""What two sequences of words have in common, in order.

Texts stand one after another in ``words``, text t at ``words[starts[t]:starts[t + 1]]``; pair p is
(text ``left[p]``, text ``right[p]``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["common_runs", "gappy_kernels"]


@jit
def common_runs(words: Any, starts: Any, left: Any, right: Any, shortest: Any) -> Any:
    """Words of the longest common substring, the longest common subsequence and greedy tiles.

    A tile is a common substring of at least ``shortest`` words; shape (n_pairs, 3).
    """
    found = np.zeros((len(left), 3))
    for p in range(len(left)):
        a = words[starts[left[p]] : starts[left[p] + 1]]
        b = words[starts[right[p]] : starts[right[p] + 1]]
        runs = np.zeros((len(a) + 1, len(b) + 1), np.int64)
        found[p, 2] = _tile(a, b, shortest, runs)
        longest, subsequence = 0, np.zeros(len(b) + 1, np.int64)
        runs[:] = 0
        for i in range(len(a)):
            diagonal = 0
            for j in range(len(b)):
                above = subsequence[j + 1]
                if a[i] == b[j]:
                    runs[i + 1, j + 1] = runs[i, j] + 1
                    longest = max(longest, runs[i + 1, j + 1])
                    subsequence[j + 1] = diagonal + 1
                else:
                    subsequence[j + 1] = max(above, subsequence[j])
                diagonal = above
        found[p, 0], found[p, 1] = longest, subsequence[len(b)]
    return found


@jit
def _tile(a: Any, b: Any, shortest: Any, runs: Any) -> Any:
    """Words covered when the longest free common substring is taken, again and again.

    Of equally long ones the first in ``a``, then in ``b``, is taken.
    """
    free_a, free_b = np.ones(len(a), np.bool_), np.ones(len(b), np.bool_)
    covered = 0
    while True:
        length, at_a, at_b = 0, 0, 0
        for i in range(len(a) - 1, -1, -1):
            for j in range(len(b) - 1, -1, -1):
                run = 0
                if a[i] == b[j] and free_a[i] and free_b[j]:
                    run = runs[i + 1, j + 1] + 1
                runs[i, j] = run
                if run >= length:
                    length, at_a, at_b = run, i, j
        if length < max(shortest, 1):
            return covered
        free_a[at_a : at_a + length] = False
        free_b[at_b : at_b + length] = False
        covered += length


@jit
def gappy_kernels(words: Any, starts: Any, left: Any, right: Any, decay: Any, longest: Any) -> Any:
    """Subsequence kernels of 1..``longest`` words, gaps allowed; shape (n_pairs, longest).

    k_m(a, b) = Σ decay^(span in a + span in b) over all pairs of equal subsequences of m words,
    where a span counts the words from the first to the last (Lodhi et al. 2002).
    """
    values = np.zeros((len(left), longest))
    for p in range(len(left)):
        a = words[starts[left[p]] : starts[left[p] + 1]]
        b = words[starts[right[p]] : starts[right[p] + 1]]
        # prefix[i, j]: the kernel of m - 1 words in a[:i], b[:j], spans counted to i and j
        prefix = np.ones((len(a) + 1, len(b) + 1))
        for m in range(longest):
            longer = np.zeros((len(a) + 1, len(b) + 1))
            for i in range(len(a)):
                along = 0.0
                for j in range(len(b)):
                    along *= decay
                    if a[i] == b[j]:
                        ended = decay * decay * prefix[i, j]
                        values[p, m] += ended
                        along += ended
                    longer[i + 1, j + 1] = decay * longer[i, j + 1] + along
            prefix = longer
    return values
