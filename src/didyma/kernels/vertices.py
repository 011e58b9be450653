"""Vertices as rows of part indices: scores, inner products, combinations, derivatives.

An output is a 0/1 vector with ones at its parts, so an inner product is a count of shared indices.
Only parts of the scores proper enter it; additional parts carry score, not norm.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.cholesky import append, minimise, partial_dot, solve_lower
from didyma.kernels.jit import jit

__all__ = [
    "combine",
    "copy_row",
    "derivative",
    "difference",
    "expectation",
    "products",
    "rooms",
    "shared_aligned",
    "shared_anywhere",
    "total",
    "totals",
    "value_and_expectation",
]


@jit
def rooms(capacity, n_parts, n_extra):
    """Parts, additional parts, counts, θ, noise of vertices; active ones and their weights."""
    return (
        np.full((capacity + 1, n_parts), -1, np.int32),
        np.full((capacity + 1, n_extra), -1, np.int32),
        np.zeros(capacity + 1, np.int64),
        np.zeros(capacity + 1),
        np.zeros(capacity + 1),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
    )


@jit
def total(values, parts):
    """Sum of the values at the parts, which end at the first −1."""
    score = 0.0
    for j in range(parts.shape[0]):
        if parts[j] < 0:
            break
        score += values[parts[j]]
    return score


@jit
def totals(values, parts):
    """Sum of the values at the parts, and of their magnitudes."""
    score = magnitude = 0.0
    for j in range(parts.shape[0]):
        if parts[j] < 0:
            break
        value = values[parts[j]]
        score += value
        magnitude += abs(value)
    return score, magnitude


@jit
def difference(a, b, out):
    """Out = a − b."""
    for i in range(out.shape[0]):
        out[i] = a[i] - b[i]


@jit
def shared_aligned(parts, count, slot, active, n, marks, out):
    """Parts that a vertex shares with each active one, where equal parts stand in equal places."""
    for i in range(n):
        other = active[i]
        same = 0
        for j in range(count):
            same += parts[slot, j] == parts[other, j]
        out[i] = same


@jit
def shared_anywhere(parts, count, slot, active, n, marks, out):
    """Parts that a vertex shares with each active one, wherever they stand; marks are all 0."""
    for j in range(count):
        marks[parts[slot, j]] = 1
    for i in range(n):
        other = active[i]
        same = 0
        for j in range(parts.shape[1]):
            if parts[other, j] < 0:
                break
            same += marks[parts[other, j]]
        out[i] = same
    for j in range(count):
        marks[parts[slot, j]] = 0


@jit
def scatter(parts, weight, out):
    """Add a weight at the parts, which end at the first −1."""
    for j in range(parts.shape[0]):
        if parts[j] < 0:
            break
        out[parts[j]] += weight


@jit
def copy_row(source, i, target, j):
    """Copy a vertex from one pool to another."""
    for k in range(source.shape[1]):
        target[j, k] = source[i, k]


@jit
def combine(parts, active, y, n, u, products):
    """U = M y and M'u; returns ‖u‖² as y'M'u, whose rounding is the same wherever parts stand."""
    for i in range(u.shape[0]):
        u[i] = 0.0
    for i in range(n):
        scatter(parts[active[i]], y[i], u)
    norm = 0.0
    for i in range(n):
        products[i] = total(u, parts[active[i]])
        norm += y[i] * products[i]
    return norm


@jit
def products(scores, u, out):
    """Out[b] = scores[b]·u[b], entry by entry where u is not 0: padding changes no bit."""
    for b in range(out.shape[0]):
        row = b if scores.shape[0] > 1 else 0
        product = 0.0
        for i in range(u.shape[1]):
            if u[b, i] != 0.0:
                product += scores[row, i] * u[b, i]
        out[b] = product


@jit
def expectation(offsets, parts, weights, out):
    """out[b] += Σ weight at the parts of instance b's vertices, rows offsets[b]:offsets[b + 1]."""
    for b in range(offsets.shape[0] - 1):
        for i in range(offsets[b], offsets[b + 1]):
            scatter(parts[i], weights[i], out[b])


@jit
def value_and_expectation(offsets, extra_parts, weights, scores, extra, u, weight, value, v):
    """Additional parts v of each instance, added to zeros, and scores·u + extra·v − weight ‖u‖².

    Entry by entry where u is not 0, so that padding changes no bit.
    """
    for b in range(u.shape[0]):
        own, more = scores[b], extra[b if extra.shape[0] > 1 else 0]
        score = norm = additional = 0.0
        for i in range(u.shape[1]):
            if u[b, i] != 0.0:
                score += own[i] * u[b, i]
                norm += u[b, i] * u[b, i]
        for i in range(offsets[b], offsets[b + 1]):
            scatter(extra_parts[i], weights[i], v[b])
        for i in range(v.shape[1]):
            if v[b, i] != 0.0:
                additional += more[i] * v[b, i]
        value[b] = score + additional - weight * norm


@jit
def derivative(offsets, parts, extra_parts, aligned, p, p_extra, out, out_extra):
    """A D A' [p; p_extra] of each instance, added to out: the Jacobian, which is symmetric.

    r = D A'p minimises ½ r'M'M r − (A'p)'r over r of sum zero: the solver's own step with another
    right-hand side.
    """
    marks = np.zeros(p.shape[1], np.uint8)
    largest = 0
    for b in range(offsets.shape[0] - 1):
        largest = max(largest, offsets[b + 1] - offsets[b])
    L = np.empty((largest, largest))
    Z = np.empty((2, largest))
    row = np.empty(largest)
    slots = np.arange(largest)
    for b in range(offsets.shape[0] - 1):
        first = offsets[b]
        n = offsets[b + 1] - first
        own = parts[first : first + n]
        c = 1.0
        for i in range(n):
            count = 0
            while count < own.shape[1] and own[i, count] >= 0:
                count += 1
            if i == 0:
                c = max(1.0, float(count))
            if aligned:
                shared_aligned(own, count, i, slots, i, marks, row)
            else:
                shared_anywhere(own, count, i, slots, i, marks, row)
            for j in range(i):
                row[j] += c
            solve_lower(L, i, row)
            schur = count + c - partial_dot(row, row, i)
            q = total(p[b], own[i]) + total(p_extra[b], extra_parts[first + i])
            append(L, Z, i, row, schur, q)
        minimise(L, Z, n, 0.0, row)
        for i in range(n):
            scatter(own[i], row[i], out[b])
            scatter(extra_parts[first + i], row[i], out_extra[b])
