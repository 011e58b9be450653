"""Projection onto the convex hull of the vertices that an oracle can name.

    min over y in the simplex   ½‖M y‖² − θ'y

is SparseMAP when the columns of M are structures and θ their scores, and the dual of a structural
SVM when the columns are cuts and θ their losses. The solver keeps few columns *active* and the
Cholesky factor of ``K = M'M + c 11'`` over them, which exists exactly when they are affinely
independent; a dependent newcomer is exchanged for an active column along the null direction. Each
major cycle decreases the objective, so the method is finite (Wolfe's minimum-norm point, extended
to linear terms).

`template` is written against three global names, to be bound per polytope:

* ``argmax(problem, u, spare)`` → slot of a vertex that maximises θ_s − m_s·u; a new vertex goes
  into slot ``spare``;
* ``gram(problem, slot, active, n, out)`` → m_slot·m_slot; out[i] = m_slot·m_active[i];
* ``combine(problem, active, y, n, u, products)`` → ‖M y‖²; u = M y, products[i] = m_active[i]·u.

Bound to compiled functions it is native; bound to Python functions it serves anyone's oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.kernels.cholesky import append, partial_dot, solve_lower, solve_upper
from didyma.kernels.jit import bind, specialise
from didyma.kernels.simplex_qp import (
    any_between,
    descend,
    drop,
    exchange,
    forget,
    pool_argmax,
    pool_combine,
    pool_gram,
    refine,
    residuals,
    spare_slot,
    tilt,
)

__all__ = ["Projection", "minimise_over_columns", "project", "template"]

DEPENDENT = 1e-10  # a Schur complement below this share of the diagonal means affine dependence
DISTINCT = 1e-6  # the same, where rounding has reached the factor
NEAR = 1e6  # times the noise: smaller gaps are worth weights that are free of rounding
TIED = 256.0  # times the noise: columns of a face that differ by less are equally good
SLIGHT = 1e-8  # a weight that few columns of a face have less of by chance
LEAST = 1e-14  # smaller weights are rounding
TRIES = 8  # to find a further dimension of the face
PATIENCE = 50  # iterations without visible descent, besides one per active column
OPTIMAL, LIMIT, STALLED, FULL = 0, 1, 2, 3


# Global names of the template, bound per polytope.
argmax: Any = None
gram: Any = None
combine: Any = None


def template(problem, theta, noise, active, y, n, u, c, tol, max_iter):  # type: ignore[no-untyped-def]
    """Active-set loop; returns (n, level, gap, iterations, status).

    ``active[:n]`` and ``y[:n]`` hold a feasible start (at least one column) and end as the
    solution; ``theta[s]`` is the offset of slot s and ``noise[s]`` what rounding may have done to
    θ_s − m_s·u, which ``argmax`` fills for a new vertex; ``u`` ends as M y. ``level`` is the mean
    of θ_s − m_s·u under y, and the gap is how far the best vertex stands above it. A gap that
    could be noise is none, so ``tol`` = 0 ends on the optimal face: the affine hull of the active
    columns holds every column that could be optimal.
    """
    capacity = active.shape[0]
    L = np.empty((capacity, capacity))
    Z = np.empty((2, capacity))
    row = np.empty(capacity)
    target = np.empty(capacity)
    products = np.empty(capacity)
    used = np.zeros(theta.shape[0], dtype=np.bool_)
    # A constant added to all of θ changes nothing; without it, large offsets would cancel.
    shift = theta[active[0]]
    for i in range(n):
        shift = max(shift, theta[active[i]])
    m = 0
    mass = 0.0
    for i in range(n):  # factor the start, leaving out affinely dependent columns
        slot, weight = active[i], y[i]
        diagonal = gram(problem, slot, active, m, row) + c
        for j in range(m):
            row[j] += c
        solve_lower(L, m, row)
        schur = diagonal - partial_dot(row, row, m)
        if schur > DEPENDENT * diagonal:
            append(L, Z, m, row, schur, theta[slot] - shift)
            active[m] = slot
            y[m] = weight
            mass += weight
            m += 1
    n = m
    for i in range(n):
        y[i] = y[i] / mass if mass > 0.0 else 1.0 / n
    n = descend(L, Z, active, y, n, target)
    level = gap = value = np.inf
    iteration = idle = 0
    near = dropped = False
    status = LIMIT
    while True:
        norm = combine(problem, active, y, n, u, products)
        if near:
            residuals(theta, active, y, n, norm, products, row)
            refine(L, Z, n, row)
            n = descend(L, Z, active, y, n, target)
            norm = combine(problem, active, y, n, u, products)
        if iteration == max_iter:
            break
        if n == capacity:
            status = FULL
            break
        if dropped:
            status = STALLED
            break
        score = blur = 0.0
        for i in range(n):
            score += y[i] * theta[active[i]]
            blur += y[i] * noise[active[i]]
        level = score - norm
        slot = argmax(problem, u, spare_slot(active, n, used))
        iteration += 1
        diagonal = gram(problem, slot, active, n, row)
        # m_s·u is a combination of Gram entries: no second pass over the vertex.
        gap = theta[slot] - partial_dot(row, y, n) - level
        blur += noise[slot]
        if gap <= max(tol, blur) or used[slot]:
            gap = max(gap, 0.0)
            status = OPTIMAL
            break
        near = gap <= NEAR * blur
        # A gap g promises a descent of order g², which rounding hides long before it hides g.
        idle = idle + 1 if 0.5 * norm - score >= value else 0
        value = min(value, 0.5 * norm - score)
        if idle > PATIENCE + n:
            status = STALLED
            break
        diagonal += c
        for i in range(n):
            row[i] += c
        solve_lower(L, n, row)
        schur = diagonal - partial_dot(row, row, n)
        weight = 0.0
        if schur <= DEPENDENT * diagonal:
            if gap <= TIED * blur:
                status = OPTIMAL
                break
            for i in range(n):
                target[i] = -row[i]
            solve_upper(L, n, target)
            weight, blocking = exchange(y, n, target)
            if blocking < 0:
                status = STALLED
                break
            n = drop(L, Z, active, y, n, blocking)
            gram(problem, slot, active, n, row)
            for i in range(n):
                row[i] += c
            solve_lower(L, n, row)
            schur = diagonal - partial_dot(row, row, n)
            if schur <= 0.0:
                status = STALLED
                break
        append(L, Z, n, row, schur, theta[slot] - shift)
        active[n] = slot
        y[n] = weight
        n = descend(L, Z, active, y, n + 1, target)
        dropped = near and active[n - 1] != slot  # only rounding drops what improves
    if tol > 0.0 or status == FULL:
        return n, level, gap, iteration, status
    if not any_between(y, n, LEAST, SLIGHT):
        return forget(active, y, n, LEAST), level, gap, iteration, status
    # Columns have come in with next to no weight, so more of them may have been lost in rounding: u
    # is optimal before all dimensions of the face are there. Columns that tie with the active ones
    # are looked for at other points that are as good as u.
    tilted = np.empty(u.shape[0])
    failures = 0
    while failures < TRIES and iteration < max_iter:
        if n == capacity:
            status = FULL
            break
        tilt(u, failures, tilted)
        slot = argmax(problem, tilted, spare_slot(active, n, used))
        iteration += 1
        failures += 1
        diagonal = gram(problem, slot, active, n, row) + c
        if used[slot] or theta[slot] - partial_dot(row, y, n) - level < -TIED * noise[slot]:
            continue
        for i in range(n):
            row[i] += c
        solve_lower(L, n, row)
        schur = diagonal - partial_dot(row, row, n)
        if schur <= DISTINCT * diagonal:
            continue
        append(L, Z, n, row, schur, theta[slot] - shift)
        active[n] = slot
        y[n] = np.finfo(np.float64).eps
        n += 1
        failures = 0
    return n, level, gap, iteration, status


@dataclass(frozen=True)
class Projection:
    """The solution: active slots with their weights, and how well they are certified."""

    active: NDArray[np.int64]
    weights: NDArray[np.float64]
    point: NDArray[np.float64]
    tau: float
    gap: float
    converged: bool
    n_iter: int


@cache
def _pool_solver() -> Any:
    return specialise(
        template, "active_set_pool", argmax=pool_argmax, gram=pool_gram, combine=pool_combine
    )


def minimise_over_columns(
    G: NDArray[np.float64],
    theta: NDArray[np.float64],
    *,
    start: Projection | None = None,
    tol: float = 1e-12,
    max_iter: int = 10_000,
) -> Projection:
    """Solve ½ y'Gy − θ'y over the simplex, for a Gram matrix G = M'M of columns at hand.

    ``tol`` is relative to θ where that is large.

    >>> minimise_over_columns(np.eye(3), np.array([1.0, 0.8, 0.0])).weights
    array([0.6, 0.4])

    ``point`` of the result is G y, the inner product of the solution with each column.
    """
    size = len(theta)
    tol *= max(1.0, float(np.abs(theta).max()))
    return _run(
        _pool_solver(), (G, theta), theta, size + 1, size, np.trace(G) / size, start, tol, max_iter
    )


def project(
    oracle: Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]],
    dimension: int,
    *,
    tol: float = 1e-9,
    max_iter: int = 1_000,
) -> Projection:
    """Solve min ½‖u‖² − θ'y over u = M y with an oracle in plain Python.

    ``oracle(u)`` returns the column m_s and the offset θ_s that maximise θ_s − m_s·u.

    >>> corners = np.eye(2)
    >>> scores = np.array([0.3, 0.1])
    >>> def oracle(u):
    ...     best = int(np.argmax(scores - corners @ u))
    ...     return corners[best], scores[best]
    >>> project(oracle, 2).point
    array([0.6, 0.4])
    """
    slots = min(dimension + 1, max_iter) + 1
    vertices = np.zeros((slots + 1, dimension))
    theta = np.zeros(slots + 1)

    def argmax(problem: Any, u: NDArray[np.float64], spare: int) -> int:
        vertex, offset = oracle(u)
        known = np.flatnonzero((vertices == vertex).all(axis=1) & (theta == offset) & filled)
        if len(known):
            return int(known[0])
        vertices[spare], theta[spare], filled[spare] = vertex, offset, True
        return spare

    def gram(problem: Any, slot: int, active: Any, n: int, out: NDArray[np.float64]) -> float:
        out[:n] = vertices[active[:n]] @ vertices[slot]
        return float(vertices[slot] @ vertices[slot])

    def combine(
        problem: Any, active: Any, y: Any, n: int, u: NDArray[np.float64], products: Any
    ) -> float:
        u[:] = y[:n] @ vertices[active[:n]]
        products[:n] = vertices[active[:n]] @ u
        return float(u @ u)

    filled = np.zeros(slots + 1, dtype=bool)
    argmax(None, np.zeros(dimension), 0)
    solver = bind(template, "active_set_python", argmax=argmax, gram=gram, combine=combine)
    c = float(vertices[0] @ vertices[0]) or 1.0
    return _run(solver, None, theta, slots, dimension, c, None, tol, max_iter)


def _run(
    solver: Callable[..., Any],
    problem: Any,
    theta: NDArray[np.float64],
    capacity: int,
    dimension: int,
    c: float,
    start: Projection | None,
    tol: float,
    max_iter: int,
) -> Projection:
    active = np.zeros(capacity, dtype=np.int64)
    y = np.zeros(capacity)
    if start is None:
        n, y[0] = 1, 1.0
    else:
        n = len(start.active)
        active[:n], y[:n] = start.active, start.weights
    u = np.zeros(dimension)
    n, level, gap, iterations, status = solver(
        problem, theta, np.zeros(len(theta)), active, y, n, u, c or 1.0, tol, max_iter
    )
    return Projection(
        active[:n], y[:n], u, float(level), float(gap), bool(status == OPTIMAL), int(iterations)
    )
