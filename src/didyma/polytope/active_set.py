"""Projection onto the convex hull of the vertices that an oracle can name.

    min over y in the simplex   ½‖M y‖² − θ'y

is SparseMAP when the columns of M are structures and θ their scores, and the dual of a structural
SVM when the columns are cuts and θ their losses. The method is in ``core/polytope/active_set.hpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from didyma._core import polytope as core


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


def minimise_over_columns(
    G: NDArray[np.float64],
    theta: NDArray[np.float64],
    *,
    start: Projection | None = None,
    tol: float = 1e-12,
    max_iter: int = 10_000,
) -> Projection:
    """Solve ½ y'Gy − θ'y over the simplex, for a Gram matrix G = M'M of columns at hand.

    ``tol`` is relative to the largest of θ.

    >>> minimise_over_columns(np.eye(3), np.array([1.0, 0.8, 0.0])).weights
    array([0.6, 0.4])

    ``point`` of the result is G y, the inner product of the solution with each column.
    """
    tol *= float(np.abs(theta).max()) or 1.0
    norms = np.diag(G)[np.diag(G) > 0.0]
    solution = _minimise(G, theta, start, float(norms.sum() / len(theta)) or 1.0, tol, max_iter)
    if not solution.converged and len(norms):  # long columns may hide what tells short ones apart
        typical = float(np.exp(np.log(norms).mean()))
        other = _minimise(G, theta, start, typical, tol, max_iter)
        solution = min(solution, other, key=lambda each: each.gap)
    return solution


def _minimise(
    G: NDArray[np.float64],
    theta: NDArray[np.float64],
    start: Projection | None,
    c: float,
    tol: float,
    max_iter: int,
) -> Projection:
    """The same by the factor of G + c 11', for any positive c."""
    size = len(theta)
    active, weights = np.zeros(size + 1, np.int64), np.zeros(size + 1)
    if start is None:
        n, weights[0] = 1, 1.0
    else:
        n = len(start.active)
        active[:n], weights[:n] = start.active, start.weights
    point = np.zeros(size)
    n, *certificate = core.minimise_over_columns(
        np.ascontiguousarray(G), theta, active, weights, n, point, c, tol, max_iter
    )
    return Projection(active[:n], weights[:n], point, *certificate)


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

    def column(u: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        vertex, offset = oracle(u)
        return np.ascontiguousarray(vertex, dtype=np.float64), float(offset)

    return Projection(*core.project(column, dimension, tol, max_iter))
