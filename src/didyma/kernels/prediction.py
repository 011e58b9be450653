"""The ranking that scores predict, in the form of an oracle that knows no loss.

    predict(scores, order, counts, v, gains, k, coef) -> 0

is called as oracles are (`didyma.kernels.interleave`), and writes one coefficient per row of
Ψ(ŷ) − Ψ* into ``coef``, where ŷ maximises Ψ·scores. All orders of equal scores do, and their mean
is taken: it favours no order of the input, and at scores of zero no ranking.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["predict_pairs", "predict_places"]

TIE = 1e-9  # scores that are closer, relative to the query's largest, are equal

weigh_positive: Any = None  # global name of the template, bound per feature map


@jit
def _ties(scores, order):
    """Where each run of equal scores begins, and the number of runs."""
    n = order.shape[0]
    closest = TIE * max(abs(scores[order[0]]), abs(scores[order[n - 1]]))
    starts = np.empty(n + 1, dtype=np.int64)
    n_runs = 0
    for t in range(n):
        if t == 0 or scores[order[t - 1]] - scores[order[t]] > closest:
            starts[n_runs] = t
            n_runs += 1
    starts[n_runs] = n
    return starts, n_runs


@jit
def predict_pairs(scores, order, counts, v, gains, k, coef):
    """Pairwise map of any number of levels: (those of other levels below − above) / pairs."""
    n_levels, n = counts.shape[0], scores.shape[0]
    level_of = np.empty(n, dtype=np.int64)
    perfect = np.empty(n_levels)
    row, n_pairs = 0, 0.0
    for level in range(n_levels):
        above, below = row, n - row - counts[level]
        n_pairs += np.float64(counts[level]) * below
        perfect[level] = below - above
        for _ in range(counts[level]):
            level_of[row] = level
            row += 1
    starts, n_runs = _ties(scores, order)
    placed = np.zeros(n_levels, dtype=np.int64)  # of each level, above this run
    tied = np.zeros(n_levels, dtype=np.int64)
    for run in range(n_runs):
        first, last = starts[run], starts[run + 1]
        for t in range(first, last):
            tied[level_of[order[t]]] += 1
        for t in range(first, last):
            level = level_of[order[t]]
            others = n - counts[level]
            above = first - placed[level]
            equal = last - first - tied[level]
            coef[order[t]] = (others - 2 * above - equal - perfect[level]) / n_pairs
        for t in range(first, last):
            level = level_of[order[t]]
            placed[level] += tied[level]
            tied[level] = 0
    return 0.0


def predict_places(scores, order, counts, v, gains, k, coef):
    """Positional maps: the weight of the rank, its mean over equal scores."""
    n, P = scores.shape[0], counts[0]
    row = 0
    for level in range(counts.shape[0]):
        gold = 0.0
        for r in range(row, row + counts[level]):
            gold += weigh_positive(r, 0, P, n - P, v)
        for r in range(row, row + counts[level]):
            coef[r] = -gold / counts[level]
        row += counts[level]
    starts, n_runs = _ties(scores, order)
    for run in range(n_runs):
        first, last = starts[run], starts[run + 1]
        mean = 0.0
        for rank in range(first, last):
            mean += weigh_positive(rank, 0, P, n - P, v) / (last - first)
        for t in range(first, last):
            coef[order[t]] += mean
    return 0.0
