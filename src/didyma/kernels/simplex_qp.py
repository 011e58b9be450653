"""Pieces of the active-set method for ½‖M y‖² − θ'y over the simplex (see `didyma.polytope`)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.cholesky import delete, minimise
from didyma.kernels.jit import jit

__all__ = ["descend", "drop", "exchange", "pool_argmax", "pool_combine", "pool_gram", "spare_slot"]


@jit
def spare_slot(active, n, used):
    """Mark the slots of the active columns; the first that is free, or the last one."""
    for i in range(used.shape[0]):
        used[i] = False
    for i in range(n):
        used[active[i]] = True
    spare = 0
    while spare < used.shape[0] - 1 and used[spare]:
        spare += 1
    return spare


@jit
def drop(L, Z, active, y, n, i):
    """Remove the i-th active column."""
    delete(L, Z, n, i)
    for r in range(i, n - 1):
        active[r] = active[r + 1]
        y[r] = y[r + 1]
    return n - 1


@jit
def descend(L, Z, active, y, n, target):
    """Minor cycles: move to the relaxed optimum, dropping each column that blocks the way."""
    while n > 1:
        minimise(L, Z, n, 1.0, target)
        step, blocking = 1.0, -1
        for i in range(n):
            if target[i] <= 0.0 and y[i] <= step * (y[i] - target[i]):
                step, blocking = (y[i] / (y[i] - target[i]) if y[i] > 0.0 else 0.0), i
        if blocking < 0:
            for i in range(n):
                y[i] = target[i]
            return n
        for i in range(n):
            y[i] += step * (target[i] - y[i])
        n = drop(L, Z, active, y, n, blocking)
    y[0] = 1.0
    return n


@jit
def exchange(y, n, direction):
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
    best = 0
    for i in range(theta.shape[0]):
        if theta[i] - u[i] > theta[best] - u[best]:
            best = i
    return best


@jit
def pool_gram(problem, slot, active, n, out):
    """Gram entries of a pool's column."""
    G, _ = problem
    for i in range(n):
        out[i] = G[slot, active[i]]
    return G[slot, slot]


@jit
def pool_combine(problem, active, y, n, u):
    """U = G y; returns y'G y."""
    G, _ = problem
    for j in range(u.shape[0]):
        u[j] = 0.0
    for i in range(n):
        for j in range(u.shape[0]):
            u[j] += y[i] * G[active[i], j]
    norm = 0.0
    for i in range(n):
        norm += y[i] * u[active[i]]
    return norm
