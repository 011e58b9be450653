"""Products with the rows of one query, dense or CSR, gathered by index so that no row is moved.

`score` is ``X[rows] @ w`` and `combine` is ``X[rows].T @ coef``. Sums are float64 whatever the type
of X; rows with coefficient zero are not read.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit, jit_sum

__all__ = ["axpy", "combine_csr", "combine_dense", "dot", "score_csr", "score_dense", "zero"]


@jit_sum
def dot(a, b):
    """A · b, summed in an order that vectorises."""
    total = 0.0
    for f in range(a.shape[0]):
        total += a[f] * b[f]
    return total


@jit
def axpy(c, a, b):
    """B += c a."""
    for f in range(a.shape[0]):
        b[f] += c * a[f]


@jit
def zero(a):
    """A = 0 (loops compile in a tenth of the time of slice assignments)."""
    for f in range(a.shape[0]):
        a[f] = 0.0


@jit
def score_dense(X, rows, w, out):
    """out[r] = X[rows[r]] · w."""
    for r in range(rows.shape[0]):
        out[r] = dot(X[rows[r]], w)


@jit
def combine_dense(X, rows, coef, out):
    """Out += Σ_r coef[r] X[rows[r]], four rows at a time so that `out` is touched less often."""
    n_features = out.shape[0]
    pending = 0
    r0 = r1 = r2 = 0
    c0 = c1 = c2 = 0.0
    for r in range(rows.shape[0]):
        c = coef[r]
        if c == 0.0:
            continue
        if pending == 0:
            r0, c0 = rows[r], c
        elif pending == 1:
            r1, c1 = rows[r], c
        elif pending == 2:
            r2, c2 = rows[r], c
        else:
            x0, x1, x2, x3 = X[r0], X[r1], X[r2], X[rows[r]]
            for f in range(n_features):
                out[f] += c0 * x0[f] + c1 * x1[f] + c2 * x2[f] + c * x3[f]
            pending = -1
        pending += 1
    if pending > 0:
        axpy(c0, X[r0], out)
    if pending > 1:
        axpy(c1, X[r1], out)
    if pending > 2:
        axpy(c2, X[r2], out)


@jit
def score_csr(X, rows, w, out):
    """`score_dense` for X = (data, indices, indptr).

    Unsigned numbers are not tested for being negative, which halves the time. Sums in order, too:
    vectors of gathered numbers take longer.
    """
    data, indices, indptr = X
    for r in range(rows.shape[0]):
        row = rows[r]
        total = 0.0
        for t in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
            total += data[t] * w[indices[t]]
        out[r] = total


@jit
def combine_csr(X, rows, coef, out):
    """`combine_dense` for X = (data, indices, indptr)."""
    data, indices, indptr = X
    for r in range(rows.shape[0]):
        c = coef[r]
        if c != 0.0:
            row = rows[r]
            for t in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):
                out[indices[t]] += c * data[t]
