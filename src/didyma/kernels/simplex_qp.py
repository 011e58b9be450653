"""Pieces of the active-set method for ½‖M y‖² − θ'y over the simplex (see `didyma.polytope`)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.cholesky import delete, solve
from didyma.kernels.jit import jit

__all__ = ["descend", "drop", "exchange", "pool_argmax", "pool_combine", "pool_gram", "relaxed"]


@jit
def relaxed(L, n, theta, active, c, y):
    """Solve the problem over the affine hull of the active columns: y and its multiplier τ."""
    ones = np.ones(n)
    for i in range(n):
        y[i] = theta[active[i]]
    solve(L, n, y)
    solve(L, n, ones)
    t = (y[:n].sum() - 1.0) / ones.sum()
    for i in range(n):
        y[i] -= t * ones[i]
    return t + c


@jit
def drop(L, active, y, n, i):
    """Remove the i-th active column."""
    delete(L, n, i)
    for r in range(i, n - 1):
        active[r] = active[r + 1]
        y[r] = y[r + 1]
    return n - 1


@jit
def descend(L, active, y, n, theta, c, target):
    """Minor cycles: move to the relaxed optimum, dropping each column that blocks the way."""
    while True:
        tau = relaxed(L, n, theta, active, c, target)
        step, blocking = 1.0, -1
        for i in range(n):
            if target[i] <= 0.0 and y[i] <= step * (y[i] - target[i]):
                step, blocking = (y[i] / (y[i] - target[i]) if y[i] > 0.0 else 0.0), i
        if blocking < 0:
            y[:n] = target[:n]
            return n, tau
        for i in range(n):
            y[i] += step * (target[i] - y[i])
        n = drop(L, active, y, n, blocking)


@jit
def exchange(L, active, y, n, direction):
    """Step along the null direction until a column reaches weight zero: (weight, column)."""
    step, blocking = np.inf, -1
    for i in range(n):
        if direction[i] < 0.0 and y[i] < step * -direction[i]:
            step, blocking = y[i] / -direction[i], i
    if blocking >= 0:
        for i in range(n):
            y[i] = max(y[i] + step * direction[i], 0.0)
    return step, blocking


@jit
def pool_argmax(problem, u, spare):
    """Best column of a pool (G, θ) at u = G y."""
    _, theta = problem
    return np.argmax(theta - u)


@jit
def pool_gram(problem, slot, active, n, out):
    """Gram entries of a pool's column."""
    G, _ = problem
    for i in range(n):
        out[i] = G[slot, active[i]]
    return G[slot, slot]


@jit
def pool_combine(problem, active, y, n, u):
    """U = G y."""
    G, _ = problem
    u[:] = 0.0
    for i in range(n):
        u += y[i] * G[active[i]]
