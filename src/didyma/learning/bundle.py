"""Cutting planes with a proximal term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.learning.cut_pool import CutPool
from didyma.learning.problem import Problem
from didyma.learning.solution import (
    Callback,
    Clock,
    Progress,
    Solution,
    SolverRun,
    conclude,
    resumable,
)

__all__ = ["ProximalBundle"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ProximalBundle:
    """Cutting planes that stay near the best point: the inner solver of Yu & Joachims 2009.

    The model has ½μ‖w − centre‖² added; a step that delivers a tenth of the predicted decrease
    moves the centre.

    >>> from didyma.learning import Cut, PythonProblem
    >>> class Nearest(PythonProblem):
    ...     "max(0, 1 - w·x) for one x."
    ...     def cut(self, w, i):
    ...         x = np.array([1.0, 2.0])
    ...         return Cut(-x, 1.0) if w @ x < 1 else Cut(0 * x, 0.0)
    >>> ProximalBundle().solve(Nearest(n_examples=1, n_features=2), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000
    mu: float = 1.0

    def solve(
        self,
        problem: Problem,
        C: float,
        *,
        start: Solution | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise ½‖w‖² + C R(w), from the weights and cuts of ``start`` if given."""
        centre = np.zeros(problem.n_features) if start is None else start.w
        run = _Bundle(CutPool.of(start, problem.n_features), centre, Clock())
        steps = self._steps(problem, C, run)
        return resumable(
            *(run, f"{self} at C={C}", problem, callback),
            lambda: conclude(problem, C, run, steps, self.tol, callback),
        )

    def _steps(self, problem: Problem, C: float, run: _Bundle) -> Iterator[Progress]:
        pool, clock = run.pool, run.clock

        def evaluate(w: Vector) -> float:
            with clock.stage("oracle"):
                cut = problem.cut_all(w)
            pool.add(cut)
            return 0.5 * float(w @ w) + C * cut.at(w)

        shrink = self.mu / (1.0 + self.mu)
        while True:
            value = evaluate(run.w)
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
    """Where a run stands: its cuts, the best point, and the next one with what it promises."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("pool", "clock", "n_iter", "centre", "value", "dual", "w", "model"),
    )
    _lasting = "pool"

    def __init__(self, pool: CutPool, centre: Vector, clock: Clock) -> None:
        super().__init__(clock)
        self.pool, self.centre, self.w = pool, centre, centre
        self.value, self.model, self.dual = np.inf, -np.inf, 0.0
