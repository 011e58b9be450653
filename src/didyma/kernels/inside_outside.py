"""Sums over all trees: log partitions and arc marginals, without a single subtraction.

Both algorithms only add, multiply and divide numbers that are not negative, so nothing cancels and
small marginals are as accurate as large ones. Each is written once over a semiring and compiled
twice: in *probabilities*, fast, wherever no sum comes near the smallest float; in *logarithms*, for
weights of any range. Sums over all trees are compiled once more in *derivatives*: a logarithm with
how it moves along p, along r, and along both, (…, 4). A sum moves by a mean of what its terms move
by, so that nothing is lost there either.

Weights are (B, n + 1, n + 1), entry [m, h] for head h of word m, at most 1 in sum over h; row 0,
the diagonal and all that lies beyond a length are zero. Log partitions are −∞ where a sum is too
small for the semiring, and then the marginals mean nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from didyma.kernels.jit import jit, specialise
from didyma.kernels.log_space import log_dot, log_plus
from didyma.kernels.rows import dot

__all__ = ["derivatives_over_trees", "normalise", "sum_over_projective_trees", "sum_over_trees"]


@jit
def normalise(scores, lengths, log_weights, log_scale):
    """Scores less a number per word, so that the weights of its heads sum to 1.

    Returns the first instance with a word that has no head, or −1.
    """
    headless = -1
    for b in range(scores.shape[0]):
        for m in range(scores.shape[1]):
            highest, scale = -np.inf, 0.0
            for h in range(scores.shape[2]):
                highest = max(highest, scores[b, m, h])
            if highest == -np.inf:
                if 0 < m <= lengths[b] and headless < 0:
                    headless = b
                highest = 0.0
            for h in range(scores.shape[2]):  # one after the other, so padding changes no bit
                scale += np.exp(scores[b, m, h] - highest)
            shift = np.log(scale) if scale > 0.0 else 0.0
            log_scale[b, m] = highest + shift
            for h in range(scores.shape[2]):
                log_weights[b, m, h] = scores[b, m, h] - highest - shift
    return headless


@jit
def accumulate(target, a, b):
    """Target += a·b as probabilities."""
    for i in range(target.shape[0]):
        target[i] += a * b[i]


@jit
def log_accumulate(target, a, b):
    """Target += a·b as logarithms."""
    for i in range(target.shape[0]):
        target[i] = log_plus(target[i], a + b[i])


@jit
def plus(a, b):
    """Sum as probabilities."""
    return a + b


@jit
def times(a, b):
    """Product as probabilities."""
    return a * b


@jit
def log_times(a, b):
    """Product as logarithms."""
    return a + b


@jit
def over(a, b):
    """Quotient as probabilities."""
    return a / b


@jit
def log_over(a, b):
    """Quotient as logarithms."""
    return a - b


@jit
def identity(a):
    """The value itself."""
    return a


@jit
def logarithm(a):
    """Logarithm of a value."""
    return np.log(a)


@jit
def exponential(a):
    """Probability of a logarithm."""
    return np.exp(a)


@jit
def above(a, b):
    """Whether a number is larger than another."""
    return a > b


@jit
def jet_above(a, b):
    """The same of logarithms with derivatives."""
    return a[0] > b[0]


@jit
def jet_plus(a, b):
    """Sum as logarithms with derivatives."""
    if a[0] < b[0]:
        a, b = (b[0], b[1], b[2], b[3]), (a[0], a[1], a[2], a[3])
    else:
        a, b = (a[0], a[1], a[2], a[3]), (b[0], b[1], b[2], b[3])
    if b[0] == -np.inf:
        return a
    ratio = np.exp(b[0] - a[0])
    share = ratio / (1.0 + ratio)
    p, r = b[1] - a[1], b[2] - a[2]
    both = b[3] - a[3] + (1.0 - share) * p * r
    return a[0] + np.log1p(ratio), a[1] + share * p, a[2] + share * r, a[3] + share * both


@jit
def jet_times(a, b):
    """Product as logarithms with derivatives."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]


@jit
def jet_over(a, b):
    """Quotient as logarithms with derivatives."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]


@jit
def jet_dot(a, b):
    """Inner product as logarithms with derivatives."""
    total = (-np.inf, 0.0, 0.0, 0.0)
    for i in range(a.shape[0]):
        total = jet_plus(total, jet_times(a[i], b[i]))
    return total


@jit
def jet_accumulate(target, a, b):
    """Target += a·b as logarithms with derivatives."""
    for i in range(target.shape[0]):
        target[i] = jet_plus(target[i], jet_times(a, b[i]))


@jit
def jet_logarithm(a):
    """The logarithm alone."""
    return a[0]


@jit
def jet_exponential(a):
    """Probability and its derivatives."""
    probability = np.exp(a[0])
    both = a[3] + a[1] * a[2]
    return probability, probability * a[1], probability * a[2], probability * both


PROBABILITIES = {
    "NUMBER": (),
    "above": above,
    "dot": dot,
    "accumulate": accumulate,
    "plus": plus,
    "times": times,
    "over": over,
    "to_log": logarithm,
    "to_probability": identity,
    "ZERO": 0.0,
    "ONE": 1.0,
}
LOGARITHMS = {
    "NUMBER": (),
    "above": above,
    "dot": log_dot,
    "accumulate": log_accumulate,
    "plus": log_plus,
    "times": log_times,
    "over": log_over,
    "to_log": identity,
    "to_probability": exponential,
    "ZERO": -np.inf,
    "ONE": 0.0,
    "LEAST": -np.inf,
}
DERIVATIVES = {
    "NUMBER": (4,),
    "above": jet_above,
    "dot": jet_dot,
    "accumulate": jet_accumulate,
    "plus": jet_plus,
    "times": jet_times,
    "over": jet_over,
    "to_log": jet_logarithm,
    "to_probability": jet_exponential,
    "ZERO": (-np.inf, 0.0, 0.0, 0.0),
    "ONE": (0.0, 0.0, 0.0, 0.0),
    "LEAST": (-np.inf, 0.0, 0.0, 0.0),
}

# Global names of the templates that are in no semiring until they are bound.
to_log: Any = None
to_probability: Any = None
ZERO = ONE = LEAST = 0.0
NUMBER: tuple[int, ...] = ()  # axes of a number


def inside_outside(weights, lengths, single_root, log_partition, marginals):
    """Projective trees, O(n³): Eisner's spans, summed inside and outside of each.

    The outside sum of a span (``o_…``) adds up every way to use it in a longer one. ``single_root``
    is as in `didyma.kernels.eisner`.
    """
    longest = weights.shape[1]
    charts = np.empty((14, longest, longest))
    right, right_t, left, left_t = charts[0], charts[1], charts[2], charts[3]
    to_right, to_right_t, to_left, to_left_t = charts[4], charts[5], charts[6], charts[7]
    o_right, o_right_t, o_left, o_left_t = charts[8], charts[9], charts[10], charts[11]
    o_joined, o_joined_t = charts[12], charts[13]
    for b in range(weights.shape[0]):
        arc, n = weights[b], lengths[b]
        for s in range(n + 1):
            right[s, s] = right_t[s, s] = left[s, s] = left_t[s, s] = ONE
        for t in range(1, n + 1):
            for s in range(t - 1, -1, -1):
                if s == 0 and single_root:
                    joined = left_t[t, 1]
                else:
                    joined = dot(right[s, s:t], left_t[t, s + 1 : t + 1])
                to_right[s, t] = to_right_t[t, s] = times(joined, arc[t, s])
                to_left[s, t] = to_left_t[t, s] = times(joined, arc[s, t])
                inside = dot(to_right[s, s + 1 : t + 1], right_t[t, s + 1 : t + 1])
                right[s, t] = right_t[t, s] = inside
                inside = dot(left[s, s:t], to_left_t[t, s:t])
                left[s, t] = left_t[t, s] = inside
        total = right[0, n]
        if not total > LEAST:
            log_partition[b] = -np.inf
            continue
        log_partition[b] = to_log(total)
        for t in range(n, 0, -1):
            for s in range(t):
                outside = dot(o_right_t[t, :s], to_right_t[s, :s])
                if t < n and (s > 0 or not single_root):
                    longer = dot(o_joined[s, t + 1 : n + 1], left[t + 1, t + 1 : n + 1])
                    outside = plus(outside, longer)
                if s == 0 and t == n:
                    outside = ONE
                o_right[s, t] = o_right_t[t, s] = outside
                outside = dot(o_left[s, t + 1 : n + 1], to_left[t, t + 1 : n + 1])
                if s > 0:
                    p = 1 if single_root and s > 1 else 0
                    longer = dot(o_joined_t[t, p:s], right_t[s - 1, p:s])
                    outside = plus(outside, longer)
                o_left[s, t] = o_left_t[t, s] = outside
                o_to_right = dot(o_right[s, t : n + 1], right[t, t : n + 1])
                o_to_left = dot(o_left_t[t, : s + 1], left_t[s, : s + 1])
                outside = plus(times(o_to_right, arc[t, s]), times(o_to_left, arc[s, t]))
                o_joined[s, t] = o_joined_t[t, s] = outside
                marginals[b, t, s] = to_probability(over(times(to_right[s, t], o_to_right), total))
                marginals[b, s, t] = to_probability(over(times(to_left[s, t], o_to_left), total))


def matrix_tree(weights, lengths, log_partition, marginals):
    """All trees, O(n³): the matrix-tree theorem by elimination of words.

    Follow heads at random, in proportion to their weights, until the root is met. To eliminate a
    word is to step over it: its pivot is the sum of its weights to the words that remain and to the
    root, never a difference, and the product of all pivots is the sum over trees (Grassmann, Taksar
    & Heyman's elimination of a Laplacian). If m is the last word, with pivot p,

        P(head of m is h) = weight of h / p · P(a walk from h meets the root before m).

    For every word to be the last one, the words are halved: one half is eliminated for the sake of
    the other, again and again.
    """
    longest = weights.shape[1]
    n_levels = 1
    while 2 ** (n_levels - 1) < longest:
        n_levels += 1
    levels = np.empty(
        (n_levels, longest, longest, *NUMBER)
    )  # arcs among the words that remain, and root
    ranges = np.empty((n_levels, 2), np.int64)  # of these words
    eliminated = np.empty((longest, 3), np.int64)  # word, range of those that remained
    pivots = np.empty((longest, *NUMBER))
    step = np.empty((longest, longest, *NUMBER))  # of a walk from an eliminated word
    escape = np.empty((longest, *NUMBER))  # probability to meet the root first
    ones = np.empty((longest, *NUMBER))
    for i in range(longest):
        ones[i] = ONE
    for b in range(weights.shape[0]):
        n = lengths[b]
        for i in range(1, n + 1):
            for j in range(n + 1):
                levels[0, i, j] = weights[b, i, j]
        ranges[0, 0], ranges[0, 1] = 1, n + 1
        level, last, possible = 0, 1, True
        while last <= n and possible:
            while last >= ranges[level, 1]:
                level -= 1
            start, stop = ranges[level, 0], ranges[level, 1]
            count = n - (stop - start)
            while stop - start > 1:
                arc = levels[level + 1]
                for i in range(start, stop):
                    arc[i, 0] = levels[level, i, 0]
                    for j in range(start, stop):
                        arc[i, j] = levels[level, i, j]
                level += 1
                middle = (start + stop) // 2
                upwards = last >= middle
                for _ in range(middle - start if upwards else stop - middle):
                    if upwards:
                        word = start
                        start += 1
                    else:
                        stop -= 1
                        word = stop
                    pivot = plus(arc[word, 0], dot(arc[word, start:stop], ones[start:stop]))
                    possible = possible and above(pivot, LEAST)
                    pivots[count] = pivot
                    eliminated[count, 0] = word
                    eliminated[count, 1] = start
                    eliminated[count, 2] = stop
                    count += 1
                    step[word, 0] = over(arc[word, 0], pivot)
                    for j in range(start, stop):
                        step[word, j] = over(arc[word, j], pivot)
                    for i in range(start, stop):
                        if above(arc[i, word], ZERO):
                            arc[i, 0] = plus(arc[i, 0], times(arc[i, word], step[word, 0]))
                            accumulate(arc[i, start:stop], arc[i, word], step[word, start:stop])
                ranges[level, 0], ranges[level, 1] = start, stop
            pivots[count] = levels[level, last, 0]
            possible = possible and above(pivots[count], LEAST)
            escape[last] = ZERO
            for i in range(count - 1, -1, -1):
                word, start, stop = eliminated[i, 0], eliminated[i, 1], eliminated[i, 2]
                further = dot(step[word, start:stop], escape[start:stop])
                escape[word] = plus(step[word, 0], further)
            escape[0] = ONE
            for h in range(n + 1):
                share = over(times(weights[b, last, h], escape[h]), pivots[count])
                marginals[b, last, h] = to_probability(share)
            last += 1
        log_partition[b] = 0.0 if possible else -np.inf
        if possible:
            for i in range(n):
                log_partition[b] += to_log(pivots[i])


@cache
def sum_over_projective_trees(logarithms: bool) -> Any:
    """`inside_outside` in logarithms or, if no total is below 1e-200, in probabilities."""
    if logarithms:
        return specialise(inside_outside, "inside_outside_logarithms", **LOGARITHMS)
    return specialise(inside_outside, "inside_outside", **PROBABILITIES, LEAST=1e-200)


@cache
def sum_over_trees(logarithms: bool) -> Any:
    """`matrix_tree` in logarithms or, if no pivot is below 1e-120, in probabilities.

    What is lost below 1e-300 grows by at most a division by a pivot.
    """
    if logarithms:
        return specialise(matrix_tree, "matrix_tree_logarithms", **LOGARITHMS)
    return specialise(matrix_tree, "matrix_tree", **PROBABILITIES, LEAST=1e-120)


@cache
def derivatives_over_trees() -> Any:
    """`matrix_tree` in derivatives: of logarithms of weights, to marginals."""
    return specialise(matrix_tree, "matrix_tree_derivatives", **DERIVATIVES)
