"""Conditional gradients: the simple first-order way over the hull of what an oracle can name.

Each iteration asks the oracle for the best vertex s at the current point and moves

* vanilla: towards s, away from the whole point;
* away-step: towards s, or away from the worst active vertex, whichever promises more;
* pairwise: from the worst active vertex straight to s.

The step length is exact. All three serve comparisons; `polytope.active_set` needs far fewer calls.
`template` has the same global names and arguments as the active set's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from didyma.errors import DataError
from didyma.kernels.cholesky import partial_dot
from didyma.kernels.jit import bind
from didyma.kernels.simplex_qp import spare_slot
from didyma.polytope.active_set import FULL, LIMIT, OPTIMAL, STALLED

__all__ = ["ConditionalGradient"]

VANILLA, AWAY, PAIRWISE = 0, 1, 2
STEPS = {"vanilla": VANILLA, "away": AWAY, "pairwise": PAIRWISE}

argmax: Any = None
gram: Any = None
combine: Any = None
variant: Any = None


@dataclass(frozen=True)
class ConditionalGradient:
    """Frank-Wolfe with ``step`` "pairwise", "away" or "vanilla".

    Convergence is linear (sublinear for "vanilla"), so without ``max_iter`` it stops after 10,000
    calls.
    """

    step: str = "pairwise"
    max_iter: ClassVar[int] = 10_000
    finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise DataError(
                f"expected one of {', '.join(STEPS)}, found {self.step!r}", field="step"
            )

    @property
    def template(self) -> Callable[..., Any]:
        """The loop with this step."""
        return _with_step(self.step)


@cache
def _with_step(step: str) -> Callable[..., Any]:
    return bind(template, f"frank_wolfe_{step}", variant=STEPS[step])


def template(problem, theta, noise, active, y, n, u, c, tol, max_iter):  # type: ignore[no-untyped-def]
    """Conditional-gradient loop; see `polytope.active_set.template`."""
    capacity = active.shape[0]
    G = np.empty((capacity, capacity))  # inner products of the active vertices
    row = np.empty(capacity)
    used = np.zeros(theta.shape[0], dtype=np.bool_)
    for i in range(n):
        G[i, i] = gram(problem, active[i], active, i, row)
        for j in range(i):
            G[i, j] = G[j, i] = row[j]
    level = gap = np.inf
    iteration = 0
    status = LIMIT
    while True:
        norm = combine(problem, active, y, n, u, row)
        if iteration == max_iter:
            break
        if n == capacity:
            status = FULL
            break
        level = -norm
        blur = 0.0
        for i in range(n):
            level += y[i] * theta[active[i]]
            blur += y[i] * noise[active[i]]
        slot = argmax(problem, u, spare_slot(active, n, used))
        iteration += 1
        diagonal = gram(problem, slot, active, n, row)
        overlap = partial_dot(row, y, n)
        gap = theta[slot] - overlap - level
        if gap <= max(tol, blur + noise[slot]):
            gap = max(gap, 0.0)
            status = OPTIMAL
            break
        forward = n
        away = 0
        lowest = np.inf
        away_overlap = 0.0
        for i in range(n):
            if row[i] == diagonal == G[i, i] and theta[slot] == theta[active[i]]:
                forward = i  # the best vertex is active already
            mine = partial_dot(G[i], y, n)
            if theta[active[i]] - mine < lowest:
                away = i
                lowest = theta[active[i]] - mine
                away_overlap = mine
        away_gap = level - lowest
        toward = variant != AWAY or gap >= away_gap
        if variant == PAIRWISE:
            gain = gap + away_gap
            curvature = diagonal - 2.0 * row[away] + G[away, away]
            largest = y[away]
        elif toward:
            gain = gap
            curvature = diagonal - 2.0 * overlap + norm
            largest = 1.0
        else:
            gain = away_gap
            curvature = norm - 2.0 * away_overlap + G[away, away]
            largest = y[away] / (1.0 - y[away]) if y[away] < 1.0 else np.inf
        step = largest
        if gain < largest * curvature:
            step = gain / curvature
        if not step > 0.0:
            status = STALLED
            break
        if toward and forward == n:
            for i in range(n):
                G[n, i] = G[i, n] = row[i]
            G[n, n] = diagonal
            active[n] = slot
            y[n] = 0.0
            n += 1
        if variant == PAIRWISE:
            y[forward] += step
            y[away] = y[away] - step if step < largest else 0.0
        elif toward:
            for i in range(n):
                y[i] *= 1.0 - step
            y[forward] += step
        else:
            for i in range(n):
                y[i] *= 1.0 + step
            y[away] = y[away] - step if step < largest else 0.0
        i = 0
        while i < n:  # forget what has no weight left; the last one takes its place
            if y[i] > 0.0:
                i += 1
                continue
            n -= 1
            y[i] = y[n]
            active[i] = active[n]
            for j in range(n):
                G[i, j] = G[n, j]
            for j in range(n):
                G[j, i] = G[j, n] if j != i else G[n, n]
    return n, level, gap, iteration, status
