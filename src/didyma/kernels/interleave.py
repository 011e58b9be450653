"""Max-violating rankings: sorted positives interleaved with sorted negatives.

Every function here is an *oracle* for one query:

    oracle(scores, order, counts, v, gains, k, coef) -> Δ

``scores`` come grouped by level of relevance, the highest level first, ``counts[l]`` of level l;
``order`` lists the rows by descending score.
The oracle finds the ranking ŷ that maximises Δ(ŷ) + Σ coefficient·score, writes one coefficient
per row of Ψ(ŷ) − Ψ* into ``coef`` and returns the loss Δ(ŷ). So the cut of a query is its rows
combined by ``coef``, and nothing pairwise is ever materialised.

Templates call ``positive``, ``negative`` and ``scale`` (the loss, see `didyma.kernels.losses`) and
``weigh_positive``, ``weigh_negative`` (the feature map): global names that are bound per
combination. Ψ* is the mean over all rankings that put every level before the next lower one; for
the pairwise map all of them share it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.assignment import assign
from didyma.kernels.jit import jit
from didyma.kernels.losses import discount, negative
from didyma.kernels.rows import axpy, zero
from didyma.kernels.select import descending

__all__ = [
    "best_path",
    "graded_assignment",
    "graded_lattice",
    "graded_sort",
    "independent",
    "lattice",
    "merge_behind",
    "pairwise_negative",
    "pairwise_positive",
    "positional",
    "thresholds",
    "truncated",
]


# Feature maps: the coefficient of the item taken when i positives and j negatives are placed.


@jit
def pairwise_positive(i, j, P, N, v):
    """Yue et al.: mean over pairs of ±(φ_positive − φ_negative)."""
    return (N - 2.0 * j) / (P * N)


@jit
def pairwise_negative(i, j, P, N, v):
    """The negatives' side of `pairwise_positive`."""
    return (P - 2.0 * i) / (P * N)


@jit
def positional(i, j, P, N, v):
    """Haponchyk & Moschitti: the item at rank r counts v_r."""
    return v[i + j]


@jit
def truncated(i, j, P, N, v):
    """`positional` over the first P ranks only."""
    return v[i + j] if i + j < P else 0.0


# Global names of the templates, bound per feature map and loss.
weigh_positive: Any = None
weigh_negative: Any = None
positive: Any = None
scale: Any = None
merge: Any = None  # `merge_behind`, bound to the same names
path: Any = None  # `best_path`, likewise
binary: Any = None  # oracle of two levels


@jit
def _divide(scores, order, P, rows, ranked):
    """Rows of positives, then of negatives, each by descending score, and their scores."""
    i, j = 0, P
    for t in range(order.shape[0]):
        row = order[t]
        if row < P:
            rows[i] = row
            ranked[i] = scores[row]
            i += 1
        else:
            rows[j] = row
            ranked[j] = scores[row]
            j += 1


def independent(scores, order, counts, v, gains, k, coef):
    """Exact oracle of the pairwise map in O((P + N) log N), for losses that allow it.

    Where each negative may choose its place among the positives independently of the others,
    better negatives choose higher places (Yue et al. 2007, Lemma 1). So the choice of the middle
    one bounds those on either side of it, and a block with one place left is done. What a negative
    gains by one more place never grows with its rank, so those that score too low are told at once
    to stay at the bottom.
    """
    P, N = counts[0], counts[1]
    pair = 2.0 / (np.float64(P) * N)
    unit = scale(P, N, k)
    rows = np.empty(P + N, dtype=np.int64)
    ranked = np.empty(P + N)
    _divide(scores, order, P, rows, ranked)
    highest, hopeless = ranked[0], np.inf
    for i in range(P):
        most = unit * (positive(i, 1, P, N, k) - positive(i, 0, P, N, k))
        hopeless = min(hopeless, ranked[i] - most / pair)
    above = np.zeros(P + 1, dtype=np.int64)  # negatives whose place is right above positive i
    low, high = 0, N
    while low < N and ranked[P + low] >= highest:
        coef[rows[P + low]] = pair * P
        low += 1
    while high > low and ranked[P + high - 1] <= hopeless:
        high -= 1
        coef[rows[P + high]] = 0.0
    above[0] = low
    # Blocks that wait: negatives low to high may take the places first to last. (A tuple assigned
    # to a row of an array takes a second to compile.)
    blocks = np.empty((64, 4), dtype=np.int64)
    n_blocks = 0
    first, last = 0, P
    while True:
        if first == last or low == high:  # only one place is left for all of them
            for j in range(low, high):
                coef[rows[P + j]] = pair * (P - first)
            above[first] += high - low
            if n_blocks == 0:
                break
            n_blocks -= 1
            low, high = blocks[n_blocks, 0], blocks[n_blocks, 1]
            first, last = blocks[n_blocks, 2], blocks[n_blocks, 3]
            continue
        j = (low + high) >> 1
        score = ranked[P + j]
        place, best, value = last, 0.0, 0.0
        for i in range(last - 1, first - 1, -1):  # move it above positive i
            gain = positive(i, j + 1, P, N, k) - positive(i, j, P, N, k)
            value += unit * gain - pair * (ranked[i] - score)
            if value >= best:
                place, best = i, value
        coef[rows[P + j]] = pair * (P - place)
        above[place] += 1
        blocks[n_blocks, 0] = j + 1  # the lower half waits: as many as halvings
        blocks[n_blocks, 1] = high
        blocks[n_blocks, 2] = place
        blocks[n_blocks, 3] = last
        n_blocks += 1
        high, last = j, place
    loss = 0.0
    j = 0
    for i in range(P):
        j += above[i]
        coef[rows[i]] = -pair * j
        loss += positive(i, j, P, N, k)
    return unit * loss


def merge_behind(positives, negatives, v, k, unit, value):
    """Value of the best way to finish from each state (i, k − i), written to ``value[i]``.

    Behind rank k the loss is settled, so that the rest stands in the order of its scores: a state
    that is ahead in one class takes from the other until it meets the order of all items by score,
    from where on all states share one value.
    """
    P, N = positives.shape[0], negatives.shape[0]
    n = P + N
    placed = np.empty(n + 1, dtype=np.int64)  # positives among the first items by score
    i = 0
    for rank in range(n):
        placed[rank] = i
        j = rank - i
        if j == N or (i < P and positives[i] >= negatives[j]):
            i += 1
    placed[n] = P
    rest = np.zeros(n + 1)  # value of the items by score from a rank on
    for rank in range(n - 1, k - 1, -1):
        i = placed[rank]
        j = rank - i
        if placed[rank + 1] > i:
            gain = weigh_positive(i, j, P, N, v) * positives[i]
            rest[rank] = gain + unit * positive(i, j, P, N, k) + rest[rank + 1]
        else:
            gain = weigh_negative(i, j, P, N, v) * negatives[j]
            rest[rank] = gain + unit * negative(i, j, P, N, k) + rest[rank + 1]
    for first in range(max(0, k - N), min(P, k) + 1):
        i, j, total = first, k - first, 0.0
        while placed[i + j] < i:
            gain = weigh_negative(i, j, P, N, v) * negatives[j]
            total += gain + unit * negative(i, j, P, N, k)
            j += 1
        while placed[i + j] > i:
            gain = weigh_positive(i, j, P, N, v) * positives[i]
            total += gain + unit * positive(i, j, P, N, k)
            i += 1
        value[first] = total + rest[i + j]


def best_path(positives, negatives, v, k, unit, above):
    """The best ranking of sorted scores, for every binary loss and feature map.

    State (i, j): i positives and j negatives are placed. Loss and coefficients of a step depend on
    nothing else, so one dynamic programme replaces the enumeration of all rankings: O(P N), or with
    a cut-off O(k n) at worst and O(k² + n) as a rule. Writes into ``above`` how many negatives
    stand above each positive; ``unit`` is the worth of a loss step.
    """
    P, N = positives.shape[0], negatives.shape[0]
    depth = min(k, P + N)
    last = min(P, depth)
    finish = np.empty(last + 1)  # value of the ranks behind the cut-off
    merge(positives, negatives, v, depth, unit, finish)
    takes_negative = np.empty((last, min(N, depth)), dtype=np.bool_)
    value = np.empty(min(N, depth) + 1)  # of the best way to finish from (i, j), row by row
    down = np.empty(min(N, depth) + 1)  # the same, if the next one is a positive
    right = np.empty(min(N, depth))  # gain of a step to the next negative
    value[depth - last] = finish[last]
    for j in range(depth - last - 1, -1, -1):  # all positives are placed
        gain = weigh_negative(P, j, P, N, v) * negatives[j]
        value[j] = gain + unit * negative(P, j, P, N, k) + value[j + 1]
    for i in range(last - 1, -1, -1):
        score = positives[i]
        width = min(N, depth - i)
        for j in range(min(N, depth - i - 1) + 1):
            gain = weigh_positive(i, j, P, N, v) * score
            down[j] = gain + unit * positive(i, j, P, N, k) + value[j]
        for j in range(width):
            gain = weigh_negative(i, j, P, N, v) * negatives[j]
            right[j] = gain + unit * negative(i, j, P, N, k)
        best = finish[i] if i + width == depth else down[N]
        value[width] = best
        for j in range(width - 1, -1, -1):  # the only loop whose steps wait for each other
            other = right[j] + best
            takes_negative[i, j] = other > down[j]
            best = max(other, down[j])
            value[j] = best
    j = 0
    for i in range(P):
        while j < N and (takes_negative[i, j] if i + j < depth else negatives[j] > positives[i]):
            j += 1
        above[i] = j


def lattice(scores, order, counts, v, gains, k, coef):
    """Exact oracle for every binary loss and feature map: the best monotone path."""
    P, N = counts[0], counts[1]
    unit = scale(P, N, k)
    rows = np.empty(P + N, dtype=np.int64)
    ranked = np.empty(P + N)
    _divide(scores, order, P, rows, ranked)
    above = np.empty(P, dtype=np.int64)
    path(ranked[:P], ranked[P:], v, k, unit, above)
    gold_positive = gold_negative = loss = 0.0
    for i in range(P):
        gold_positive += weigh_positive(i, 0, P, N, v) / P
        loss -= positive(i, 0, P, N, k)  # losses of a user need not vanish at a perfect ranking
    for j in range(N):
        gold_negative += weigh_negative(P, j, P, N, v) / N
        loss -= negative(P, j, P, N, k)
    j = 0
    for i in range(P + 1):
        while j < (above[i] if i < P else N):
            coef[rows[P + j]] = weigh_negative(i, j, P, N, v) - gold_negative
            loss += negative(i, j, P, N, k)
            j += 1
        if i < P:
            coef[rows[i]] = weigh_positive(i, j, P, N, v) - gold_positive
            loss += positive(i, j, P, N, k)
    return unit * loss


@jit
def _ideal_dcg(counts, gains, k):
    ideal = 0.0
    rank = 0
    for level in range(counts.shape[0]):
        for _ in range(counts[level]):
            ideal += gains[level] * discount(rank) if rank < k else 0.0
            rank += 1
    return ideal


def thresholds(scores, order, counts, v, gains, k, coef):
    """Oracle of the sum over thresholds that bounds 1 − NDCG@k, by the oracle of binary NDCG.

    With gains g_1 > g_2 > … of the levels and DCG*_t the ideal of the binary problem whose
    positives are the levels up to t,

        1 − NDCG = Σ_t λ_t (1 − NDCG_t),    λ_t = (g_t − g_{t+1}) DCG*_t / DCG*.

    Each threshold has its own maximiser and its own feature map: that of the binary problem times
    DCG*_t, as a share of its mean under λ, so that features which are spread over more positives
    count as much. Rows are sorted by level, so that the positives of a threshold come first.
    """
    n, n_levels = scores.shape[0], counts.shape[0]
    ideal = _ideal_dcg(counts, gains, k)
    own = np.zeros(n_levels)  # DCG* of the threshold below each level that has one
    weight = np.zeros(n_levels)
    P, above = 0, 0
    for level in range(n_levels):
        if counts[level] > 0:
            if P > 0:
                own[above] = 1.0 / scale(P, n - P, k)
                weight[above] = (gains[above] - gains[level]) * own[above] / ideal
            P += counts[level]
            above = level
    mean = np.sum(weight * own) / np.sum(weight)
    stretched = np.empty(n)
    part = np.empty(n)
    split = np.empty(2, dtype=np.int64)
    zero(coef)
    loss, P = 0.0, 0
    for level in range(n_levels):
        P += counts[level]
        if own[level] > 0.0:
            factor = own[level] / mean
            for r in range(n):
                stretched[r] = factor * scores[r]
            split[0], split[1] = P, n - P
            loss += weight[level] * binary(stretched, order, split, v, gains, k, part)
            axpy(weight[level] * factor, part, coef)
    return loss


@jit
def graded_lattice(scores, order, counts, v, gains, k, coef):
    """Exact oracle of the pairwise map for 1 − NDCG@k with any number of grades.

    A state counts how many of each grade are placed: a path through ∏(counts + 1) of them. Ψ is the
    mean of ±(φ_i − φ_j) over all pairs of different grades.
    """
    n_levels = counts.shape[0]
    n = counts.sum()
    n_pairs = 0.5 * (np.float64(n) ** 2 - np.sum(counts.astype(np.float64) ** 2))
    ideal = _ideal_dcg(counts, gains, k)
    starts = np.zeros(n_levels + 1, dtype=np.int64)
    stride = np.ones(n_levels, dtype=np.int64)
    for level in range(n_levels):
        starts[level + 1] = starts[level] + counts[level]
        if level:
            stride[level] = stride[level - 1] * (counts[level - 1] + 1)
    index = np.empty(n, dtype=np.int64)  # rows by level, and by score within each
    placed = np.zeros(n_levels, dtype=np.int64)
    for t in range(n):
        level = 0
        while order[t] >= starts[level + 1]:
            level += 1
        index[starts[level] + placed[level]] = order[t]
        placed[level] += 1
    n_states = stride[-1] * (counts[-1] + 1)
    value = np.zeros(n_states)
    take = np.zeros(n_states, dtype=np.int8)
    for state in range(n_states - 2, -1, -1):
        level = 0  # one state back, in mixed radix
        while placed[level] == 0:
            placed[level] = counts[level]
            level += 1
        placed[level] -= 1
        rank = placed.sum()
        worth = discount(rank) / ideal if rank < k else 0.0
        best = -np.inf
        for level in range(n_levels):
            if placed[level] < counts[level]:
                # of the items of other grades, those below minus those above
                balance = n - 2 * rank - counts[level] + 2 * placed[level]
                score = scores[index[starts[level] + placed[level]]]
                gain = balance / n_pairs * score - gains[level] * worth
                gain += value[state + stride[level]]
                if gain > best:
                    best = gain
                    take[state] = level
        value[state] = best
    loss = 1.0
    placed[:] = 0
    state = 0
    for rank in range(n):
        level = take[state]
        balance = n - 2 * rank - counts[level] + 2 * placed[level]
        perfect = n - starts[level + 1] - starts[level]
        coef[index[starts[level] + placed[level]]] = (balance - perfect) / n_pairs
        if rank < k:
            loss -= gains[level] * discount(rank) / ideal
        placed[level] += 1
        state += stride[level]
    return loss


@jit
def _graded_positions(rank_of, counts, v, gains, k, ideal, coef):
    """Coefficients and loss of a ranking under the positional map, given the rank of each row."""
    loss = 1.0
    row = 0
    for level in range(counts.shape[0]):
        gold = np.sum(v[row : row + counts[level]]) / max(counts[level], 1)
        for _ in range(counts[level]):
            rank = rank_of[row]
            coef[row] = v[rank] - gold
            if rank < k:
                loss -= gains[level] * discount(rank) / ideal
            row += 1
    return loss


@jit
def graded_assignment(scores, order, counts, v, gains, k, coef):
    """Exact oracle of the positional map for 1 − NDCG@k with grades: an assignment, O(n³)."""
    n = counts.sum()
    ideal = _ideal_dcg(counts, gains, k)
    weights = np.empty((n, n))
    row = 0
    for level in range(counts.shape[0]):
        for _ in range(counts[level]):
            for rank in range(n):
                worth = discount(rank) / ideal if rank < k else 0.0
                weights[row, rank] = v[rank] * scores[row] - gains[level] * worth
            row += 1
    return _graded_positions(assign(weights), counts, v, gains, k, ideal, coef)


@jit
def graded_sort(scores, order, counts, v, gains, k, coef):
    """`graded_assignment` where v is the discount of NDCG itself (no cut-off): a sort."""
    n = counts.sum()
    ideal = _ideal_dcg(counts, gains, k)
    keys = np.empty(n)
    row = 0
    for level in range(counts.shape[0]):
        for _ in range(counts[level]):
            keys[row] = scores[row] - gains[level] / ideal
            row += 1
    index = np.arange(n)
    descending(keys, index)
    rank_of = np.empty(n, dtype=np.int64)
    for rank in range(n):
        rank_of[index[rank]] = rank
    return _graded_positions(rank_of, counts, v, gains, k, ideal, coef)
