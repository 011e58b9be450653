"""Projection onto the simplex by sorting, which is SparseMAP of `didyma.structures.Choice`.

    u_i = max(s_i − τ, 0),   Σ u_i = 1

(Held, Wolfe & Crowder 1974). Only scores within 1 of the highest can have weight, so that no others
need to be sorted. Everything is relative to the highest score: large ones do not cancel.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.select import descending

__all__ = ["sparsemax", "sparsemax_derivative"]


@jit
def sparsemax(scores, sizes, marginals, gaps, support):
    """Project each row's first sizes[b, 0] scores; returns options with their weights, row by row.

    ``marginals`` starts as 0. No option at all is an output without parts, −1 of weight 1; where no
    score is finite the support is 0.
    """
    n_found = 0
    options = np.full((4 * scores.shape[0] + 32, 1), -1, np.int32)
    weights = np.ones(options.shape[0])
    index = np.empty(scores.shape[1], np.int64)
    for b in range(scores.shape[0]):
        row, n = scores[b], sizes[b, 0]
        highest = -np.inf
        for i in range(n):
            highest = row[i] if row[i] > highest else highest
        near = 0
        if highest > -np.inf:
            for i in range(n):
                index[near] = i
                near += row[i] - highest > -1.0
            descending(row, index[:near])
        count = 1 if n == 0 else 0
        total, threshold = 0.0, -1.0
        for k in range(near):
            z = row[index[k]] - highest
            raised = (total + z - 1.0) / (k + 1)
            if z <= raised:
                break
            total += z
            threshold = raised
            count += 1
        while n_found + count > options.shape[0]:
            old_options, old_weights = options, weights
            options = np.full((2 * old_weights.shape[0], 1), -1, np.int32)
            weights = np.ones(options.shape[0])
            for i in range(n_found):
                options[i, 0] = old_options[i, 0]
                weights[i] = old_weights[i]
        level, best = 0.0, -np.inf
        for k in range(near):
            z = row[index[k]] - highest
            weight = z - threshold if k < count else 0.0
            level += weight * (z - weight)
            best = max(best, z - weight)
            if k < count:
                marginals[b, index[k]] = weights[n_found + k] = weight
                options[n_found + k, 0] = index[k]
        gaps[b] = max(best - level, 0.0) if near > 0 else 0.0
        support[b] = count
        n_found += count
    return options[:n_found], weights[:n_found]


@jit
def sparsemax_derivative(offsets, options, p, out):
    """out[b] += J p[b], which takes the mean over the support from the entries in the support."""
    for b in range(offsets.shape[0] - 1):
        mean = 0.0
        for i in range(offsets[b], offsets[b + 1]):
            if options[i, 0] >= 0:
                mean += p[b, options[i, 0]]
        mean /= max(offsets[b + 1] - offsets[b], 1)
        for i in range(offsets[b], offsets[b + 1]):
            if options[i, 0] >= 0:
                out[b, options[i, 0]] += p[b, options[i, 0]] - mean
