"""Cutting planes with a proximal term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.learning.cut_pool import CutPool
from didyma.learning.problem import Problem
from didyma.learning.solution import Clock, Progress, Solution
from didyma.learning.solver import ConvexSolver, SolverRun

__all__ = ["ProximalBundle"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ProximalBundle(ConvexSolver["_Bundle"]):
    """Cutting planes that stay near the best point: the inner solver of Yu & Joachims 2009.

    The model has ½μ‖w − centre‖² added; a step that delivers a tenth of the predicted decrease
    moves the centre.

    >>> from didyma.learning.examples import OneHinge
    >>> ProximalBundle().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000
    mu: float = 1.0

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _Bundle:
        centre = np.zeros(problem.n_features) if start is None else start.w
        return _Bundle(CutPool.of(start, problem.n_features), centre, Clock())

    def _steps(self, problem: Problem, C: float, run: _Bundle) -> Iterator[Progress]:
        pool, clock = run.pool, run.clock
        shrink = self.mu / (1.0 + self.mu)
        while True:
            with clock.stage("oracle"):
                cut = problem.cut_all(run.w)
            pool.add(cut)
            value = 0.5 * float(run.w @ run.w) + C * cut.at(run.w)
            if run.n_iter == 0 or value <= run.value - 0.1 * (run.value - run.model):
                run.centre, run.value = run.w, value
            if run.n_iter == self.max_iter:
                return
            run.n_iter += 1
            with clock.stage("dual"):
                offsets = C * (pool.losses + shrink * (pool.directions @ run.centre))
                mean = pool.combine(*pool.minimise(C / np.sqrt(1.0 + self.mu), offsets))
                run.w = w = shrink * run.centre - C / (1.0 + self.mu) * mean.direction
                # Any weights of the cuts bound J from below, with the proximal term or without it.
                bound = C * mean.loss - 0.5 * C**2 * float(mean.direction @ mean.direction)
                run.dual = max(run.dual, bound)
                highest = float(np.max(pool.losses + pool.directions @ w))
                run.model = 0.5 * float(w @ w) + C * highest
                pool.forget()
            yield Progress(
                *(run.n_iter, float(run.n_iter), C, run.value, run.dual),
                *(True, clock.elapsed, run.centre),
            )


class _Bundle(SolverRun):
    """The cuts, the best point, the next one, and the value of the model there."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("pool", "clock", "n_iter", "centre", "value", "dual", "w", "model"),
    )
    _lasting = "pool"

    def __init__(self, pool: CutPool, centre: Vector, clock: Clock) -> None:
        super().__init__(clock)
        self.pool, self.centre, self.w = pool, centre, centre
        self.value, self.model, self.dual = np.inf, -np.inf, 0.0
