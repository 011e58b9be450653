"""Cutting planes with a proximal term."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from didyma.learning.cut_pool import CutPool
from didyma.learning.problem import Problem
from didyma.learning.solution import Callback, Clock, Progress, Solution, conclude

__all__ = ["ProximalBundle"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ProximalBundle:
    """Cutting planes that stay near the best point: the inner solver of Yu & Joachims 2009.

    The model has ½μ‖w − centre‖² added; a step that delivers a tenth of the predicted decrease
    moves the centre.
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
        clock = Clock()
        pool = CutPool.of(start, problem.n_features)
        centre = np.zeros(problem.n_features) if start is None else start.w
        steps = self._steps(problem, C, pool, centre, clock)
        return conclude(problem, C, steps, self.tol, callback, clock, state=pool)

    def _steps(
        self, problem: Problem, C: float, pool: CutPool, centre: Vector, clock: Clock
    ) -> Iterator[Progress]:
        def evaluate(w: Vector) -> float:
            with clock.stage("oracle"):
                cut = problem.cut_all(w)
            pool.add(cut)
            return 0.5 * float(w @ w) + C * cut.at(w)

        value = evaluate(centre)
        shrink = self.mu / (1.0 + self.mu)
        dual = 0.0
        for n_iter in range(1, self.max_iter + 1):
            with clock.stage("dual"):
                offsets = C * (pool.losses + shrink * (pool.directions @ centre))
                mean = pool.combine(*pool.minimise(C / np.sqrt(1.0 + self.mu), offsets))
                w = shrink * centre - C / (1.0 + self.mu) * mean.direction
                # Any weights of the cuts bound J from below, with the proximal term or without it.
                bound = C * mean.loss - 0.5 * C**2 * float(mean.direction @ mean.direction)
                dual = max(dual, bound)
                model = 0.5 * float(w @ w) + C * float(np.max(pool.losses + pool.directions @ w))
                pool.forget()
            yield Progress(n_iter, float(n_iter), C, value, dual, True, clock.elapsed, centre)
            trial = evaluate(w)
            if trial <= value - 0.1 * (value - model):
                centre, value = w, trial
