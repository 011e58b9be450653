"""Pieces of the active-set method for ½‖M y‖² − θ'y over the simplex (see `didyma.polytope`)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.cholesky import delete, minimise, solve_lower
from didyma.kernels.jit import jit

__all__ = [
    "any_between",
    "descend",
    "drop",
    "exchange",
    "forget",
    "pool_argmax",
    "pool_combine",
    "pool_gram",
    "refine",
    "residuals",
    "spare_slot",
    "tilt",
]

SLIGHTLY = 1e-9  # beyond rounding, and within what tells columns of a face from others
GOLDEN = 0.6180339887498949  # multiples of it are spread evenly


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
def residuals(theta, active, y, n, norm, products, out):
    """How far θ_s − m_s·u of each active column is from their mean; rounding alone makes it."""
    level = -norm
    for i in range(n):
        level += y[i] * theta[active[i]]
    for i in range(n):
        out[i] = theta[active[i]] - products[i] - level


@jit
def any_between(y, n, low, high):
    """Whether there is a weight of that size."""
    found = False
    for i in range(n):
        found |= low < y[i] < high
    return found


@jit
def forget(active, y, n, least):
    """Leave out columns of less weight; how many there are left."""
    kept = 0
    for i in range(n):
        if y[i] >= least:
            active[kept], y[kept] = active[i], y[i]
            kept += 1
    return kept


@jit
def tilt(u, number, out):
    """A point close to u: in each of the numbered directions, of which every second is opposite."""
    sign = SLIGHTLY if number % 2 else -SLIGHTLY
    for i in range(u.shape[0]):
        out[i] = u[i] + sign * ((i + 1) * (number // 2 + 1) * GOLDEN % 1.0 - 0.5)


@jit
def refine(L, Z, n, residual):
    """Correct Z by what K y lacks of θ, but for a constant: a step of iterative refinement."""
    solve_lower(L, n, residual)
    for i in range(n):
        Z[1, i] += residual[i]


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
def pool_combine(problem, active, y, n, u, products):
    """U = G y, and what the active columns have of it; returns y'G y."""
    G, _ = problem
    for j in range(u.shape[0]):
        u[j] = 0.0
    for i in range(n):
        for j in range(u.shape[0]):
            u[j] += y[i] * G[active[i], j]
    norm = 0.0
    for i in range(n):
        products[i] = u[active[i]]
        norm += y[i] * products[i]
    return norm
