"""Rankings as latent variables: relevance is given, the order within each class is not.

The gold output of a query is any ranking of its positives before its negatives; the best one under
given scores is its *completion*. A cut is Ψ(most violating ranking) − Ψ(completion), with the
positional map Ψ = Σ_r v_r φ(item at rank r), of which all rows but the moved ones cancel.

Searches for the most violating ranking share the face of `didyma.kernels.interleave.best_path`:

    path(positives, negatives, v, k, unit, above)

with both score lists sorted, and ``above`` the number of negatives above each positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.losses import negative
from didyma.kernels.select import descending

__all__ = ["credit", "greedy_path", "reorder", "sorted_path", "violate"]

TIE = 1e-9  # scores that are closer, relative to the query's largest, are equal

# Global names of the templates.
path: Any = None
weigh: Any = None  # coefficient of a rank in Ψ
weigh_positive: Any = None  # the same as inference sees it
positive: Any = None
scale: Any = None


def greedy_path(positives, negatives, v, k, unit, above):
    """Haponchyk & Moschitti 2019, equations 6 and 7, for average precision.

    Ranks are filled from the bottom by the lower of the two last items, where a negative is worth
    the loss that the positives below it make certain. Ties go to the positive: otherwise zero
    weights would get a perfect ranking, and a perceptron would never start. With one positive this
    is plain sorting.
    """
    P, N = positives.shape[0], negatives.shape[0]
    i, j, share = P - 1, N - 1, 0.0
    while i >= 0:
        v_rank = weigh_positive(i, j + 1, P, N, v)
        if j < 0 or v_rank * positives[i] <= v_rank * negatives[j] + unit * share:
            above[i] = j + 1
            share += 1.0 / (i + j + 2)
            i -= 1
        else:
            j -= 1


@jit
def sorted_path(positives, negatives, v, k, unit, above):
    """Plain sorting by score: the best ranking without a loss. Ties as in `greedy_path`."""
    i, j = positives.shape[0] - 1, negatives.shape[0] - 1
    while i >= 0:
        if j < 0 or positives[i] <= negatives[j]:
            above[i] = j + 1
            i -= 1
        else:
            j -= 1


def violate(scores, counts, v, k, loss_scale, places, coef):
    """Coefficients of Ψ(most violating ranking) − Ψ(completion), and the loss of the former.

    ``places`` are the ranks of the rows in the completion, or empty for that of these scores.
    """
    P, N = counts[0], counts[1]
    unit = scale(P, N, k)
    index = np.arange(P + N)
    descending(scores, index[:P])
    descending(scores, index[P:])
    ranked = scores[index]
    above = np.empty(P, dtype=np.int64)
    path(ranked[:P], ranked[P:], v, k, loss_scale * unit, above)
    online = places.shape[0] == 0
    loss = 0.0
    j = 0
    for i in range(P + 1):
        while j < (above[i] if i < P else N):
            row = index[P + j]
            gold = P + j if online else places[row]
            coef[row] = weigh(i, j, P, N, v) - weigh(gold, 0, P, N, v)
            loss += negative(i, j, P, N, k) - negative(P, j, P, N, k)
            j += 1
        if i < P:
            row = index[i]
            gold = i if online else places[row]
            coef[row] = weigh(i, j, P, N, v) - weigh(gold, 0, P, N, v)
            loss += positive(i, j, P, N, k) - positive(i, 0, P, N, k)
    return unit * loss


@jit
def _reorder_class(scores, places):
    """Sort the rows of one class, whose places are consecutive."""
    n = scores.shape[0]
    index = np.arange(n)
    descending(scores, index)
    before = np.empty(n)
    first, largest = places[0], 0.0
    for r in range(n):
        before[r] = -places[r]
        first = min(first, places[r])
        largest = max(largest, abs(scores[r]))
    low = 0
    for t in range(1, n + 1):
        if t == n or scores[index[t - 1]] - scores[index[t]] > TIE * largest:
            descending(before, index[low:t])
            low = t
    for t in range(n):
        places[index[t]] = first + t


@jit
def reorder(rows, starts, counts, scores, places, first, last):
    """Complete the queries from first to last: by descending score within each class.

    Equal scores keep the order that they had. Scores of positives do coincide at the optimum of
    the round before, so that rounding would decide otherwise how a run goes on.
    """
    for i in range(first, last):
        start, stop = starts[i], starts[i + 1]
        middle = start + counts[i, 0]
        own = scores[rows[start:stop]]
        _reorder_class(own[: middle - start], places[start:middle])
        _reorder_class(own[middle - start :], places[middle:stop])


def credit(rows, starts, counts, v, places, weights, coefficients):
    """Weighted coefficient of each row in the completions."""
    for i in range(starts.shape[0] - 1):
        P, N = counts[i, 0], counts[i, 1]
        for t in range(starts[i], starts[i + 1]):
            coefficients[rows[t]] = weights[i] * weigh(places[t], 0, P, N, v)
