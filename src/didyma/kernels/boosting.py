"""Boosting over pairs of candidates that differ in a few binary features.

Pair p has the differences ``signs`` (±1) at ``features``, entries ``starts[p]`` to
``starts[p + 1] - 1``, and the weight S_p e^{−margin}. A feature's ``plus`` and ``minus`` are the
weights of the pairs in which it speaks for and against the better candidate.
"""

from __future__ import annotations

import math

import numpy as np

from didyma.kernels.jit import jit

__all__ = [
    "bounds",
    "choose",
    "choose_again",
    "differences",
    "move",
    "ridge_step",
    "tally",
]

TOLERANCE = 1e-12


@jit
def differences(indptr, indices, better, worse):
    """Features that one row of each pair has and the other has not.

    ``indices`` are sorted within each row. Returns starts, features and signs (+1: `better` has
    it).
    """
    n = better.shape[0]
    starts = np.zeros(n + 1, np.int64)
    features = np.empty(0, np.int32)
    signs = np.empty(0, np.int8)
    for filling in (False, True):
        count = 0
        for p in range(n):
            i, i_end = indptr[better[p]], indptr[better[p] + 1]
            j, j_end = indptr[worse[p]], indptr[worse[p] + 1]
            while i < i_end or j < j_end:
                if i < i_end and j < j_end and indices[i] == indices[j]:
                    i += 1
                    j += 1
                    continue
                first = j == j_end or (i < i_end and indices[i] < indices[j])
                if filling:
                    features[count] = indices[i] if first else indices[j]
                    signs[count] = 1 if first else -1
                count += 1
                if first:
                    i += 1
                else:
                    j += 1
            starts[p + 1] = count
        if not filling:
            features = np.empty(count, np.int32)
            signs = np.empty(count, np.int8)
    return starts, features, signs


@jit
def tally(starts, features, signs, weight, plus, minus):
    """Sum the weights of all pairs into `plus` and `minus`."""
    for k in range(plus.shape[0]):
        plus[k] = minus[k] = 0.0
    for p in range(weight.shape[0]):
        for t in range(starts[p], starts[p + 1]):
            if signs[t] > 0:
                plus[features[t]] += weight[p]
            else:
                minus[features[t]] += weight[p]


@jit
def ridge_step(plus, minus, a, ridge):
    """Minimise plus e^{−x} + minus e^x + ridge (a + x)², with ridge > 0.

    The third derivative is at most the second, so Newton's steps of log(1 + |step|) never increase
    the objective and still converge quadratically.
    """
    x = 0.0
    for _ in range(200):
        up = math.exp(x)
        slope = minus * up - plus / up + 2.0 * ridge * (a + x)
        step = slope / (minus * up + plus / up + 2.0 * ridge)
        x -= math.copysign(math.log1p(abs(step)), step)
        if abs(step) <= TOLERANCE * (1.0 + abs(x)):
            break
    return x


@jit
def _gain(plus, minus, a, ridge):
    """How much the best step of one weight lowers the objective."""
    if ridge == 0.0:
        return (math.sqrt(plus) - math.sqrt(minus)) ** 2
    x = ridge_step(plus, minus, a, ridge)
    return -(plus * math.expm1(-x) + minus * math.expm1(x) + ridge * x * (2.0 * a + x))


@jit
def _bound(plus, minus, a, ridge):
    """At least `_gain`, and equal to it without a ridge, but in closed form.

    The gain is at most that of the loss alone and all of the ridge; and it is at most
    slope² / (2 × the least curvature on the way down).
    """
    alone = (math.sqrt(plus) - math.sqrt(minus)) ** 2
    if ridge == 0.0:
        return alone
    slope = minus - plus + 2.0 * ridge * a
    curvature = (minus if slope < 0.0 else plus) + 2.0 * ridge
    return min(alone + ridge * a * a, 0.5 * slope * slope / curvature)


@jit
def bounds(plus, minus, coef, ridge, gain, exact):
    """Bounds of the gains of all features; ridge 0 is the exponential loss alone."""
    for k in range(gain.shape[0]):
        gain[k] = _bound(plus[k], minus[k], coef[k], ridge)
        exact[k] = ridge == 0.0


@jit
def choose(plus, minus, coef, ridge, gain, exact):
    """The first feature of largest gain; `gain` is made `exact` where its bound competes."""
    best, highest = 0, -1.0
    for k in range(gain.shape[0]):
        if gain[k] > highest:
            if not exact[k]:
                gain[k] = _gain(plus[k], minus[k], coef[k], ridge)
                exact[k] = True
            if gain[k] > highest:
                best, highest = k, gain[k]
    return best


@jit
def move(k, step, columns, rows, weight, plus, minus, coef, ridge, gain, exact, seen):
    """Add `step` to a weight: only the pairs that contain the feature, and theirs, change.

    ``rows`` = (starts, features, signs) by pair, ``columns`` = (starts, pairs, signs) by feature,
    ``seen`` all False before and after.
    """
    starts, features, signs = rows
    column_starts, pairs, column_signs = columns
    coef[k] += step
    first, last = column_starts[k], column_starts[k + 1]
    up, down = math.exp(step), math.exp(-step)
    for t in range(first, last):
        p = pairs[t]
        before = weight[p]
        weight[p] *= down if column_signs[t] > 0 else up
        change = weight[p] - before
        for u in range(starts[p], starts[p + 1]):
            f = features[u]
            # A sum that should be zero may miss it by rounding.
            if signs[u] > 0:
                plus[f] = max(0.0, plus[f] + change)
            else:
                minus[f] = max(0.0, minus[f] + change)
            seen[f] = True
    seen[k] = False
    gain[k] = _bound(plus[k], minus[k], coef[k], ridge)
    exact[k] = ridge == 0.0
    for t in range(first, last):
        p = pairs[t]
        for u in range(starts[p], starts[p + 1]):
            f = features[u]
            if seen[f]:
                seen[f] = False
                gain[f] = _bound(plus[f], minus[f], coef[f], ridge)
                exact[f] = ridge == 0.0


@jit
def choose_again(lists, starts, values, losses, chosen):
    """Put the loss of the first candidate of highest value of each of some lists into `chosen`."""
    last = -1
    for i in lists:
        if i == last:
            continue
        last = i
        best = starts[i]
        for row in range(starts[i] + 1, starts[i + 1]):
            if values[row] > values[best]:
                best = row
        chosen[i] = losses[best]
