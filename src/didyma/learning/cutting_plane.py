"""Cutting planes: the exact reference, and the learner whose oracle is one sum over shards.

The risk is bounded below by the maximum of its cuts, R(w) ≥ max_k b_k + g_k·w, and the bound's
minimiser is a small quadratic programme over the weights y of the cuts (with the zero cut):

    max over the simplex   C b·y − ½‖C Σ_k y_k g_k‖²,     w = −C Σ_k y_k g_k

which is the projection of `didyma.polytope.active_set`. All learners here minimise the same
J(w) = ½‖w‖² + C R(w) and report its value, the bound and the gap between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from didyma.learning.cut_pool import CutPool
from didyma.learning.line import line_of
from didyma.learning.plane_dual import PlaneDual
from didyma.learning.problem import Problem
from didyma.learning.solution import ROUNDING, Callback, Clock, Progress, Solution, conclude

__all__ = ["NSlack", "OneSlack"]

Vector = NDArray[np.float64]

LEAST, PATIENCE = 1e-9, 10  # relative progress that counts, iterations without any before the end
SWEEPS = 300  # over the planes of all examples before new ones are asked for


@dataclass(frozen=True)
class OneSlack:
    """One slack for all examples (Joachims et al. 2009), with a line search (Franc & Sonnenburg).

    Each iteration solves the bound, searches the line from the best point so far to the bound's
    minimiser (along which scores are known, so only oracles are called), and cuts there. It costs
    one product with X and one with X', whatever the number of oracle calls.
    """

    tol: float = 1e-3
    max_iter: int = 1000

    def solve(
        self,
        problem: Problem,
        C: float,
        *,
        start: Solution | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise ½‖w‖² + C R(w); cuts of ``start`` (any C) are valid for this C too.

        The value is never above that at the weights of ``start`` (or zero), where the search
        begins.
        """
        clock = Clock()
        pool = CutPool.of(start, problem.n_features)
        w = np.zeros(problem.n_features) if start is None else start.w
        steps = self._steps(problem, C, pool, w, clock)
        return conclude(problem, C, steps, self.tol, callback, clock, state=pool)

    def _steps(
        self, problem: Problem, C: float, pool: CutPool, w: Vector, clock: Clock
    ) -> Iterator[Progress]:
        line = line_of(problem, C, w, clock)
        if len(pool.losses) == 1:
            pool.add(line.cut())
        bound, value, idle = -np.inf, np.inf, 0
        for n_iter in range(1, self.max_iter + 1):
            with clock.stage("dual"):
                mean = pool.combine(*pool.minimise(C, C * pool.losses))
                w = -C * mean.direction
                dual = C * mean.loss - 0.5 * float(w @ w)
                pool.forget()
            line.towards(w)
            yield Progress(n_iter, line.passes, C, line.value, dual, True, clock.elapsed, line.w)
            moved = dual > bound + LEAST * abs(bound) or line.value < value - LEAST * abs(value)
            bound, value, idle = max(bound, dual), min(value, line.value), 0 if moved else idle + 1
            if idle == PATIENCE:  # an inexact oracle may have no cut that closes the gap
                return
            pool.add(line.cut())


@dataclass(frozen=True)
class NSlack:
    """A slack per example: Algorithm 1 of Yue et al. 2007, for reference on small problems."""

    tol: float = 1e-3
    max_iter: int = 1000

    def solve(
        self,
        problem: Problem,
        C: float,
        *,
        start: Solution | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise ½‖w‖² + C R(w) from scratch."""
        clock = Clock()
        steps = self._steps(problem, C, clock)
        return conclude(problem, C, steps, self.tol, callback, clock)

    def _steps(self, problem: Problem, C: float, clock: Clock) -> Iterator[Progress]:
        everyone = np.arange(problem.n_examples)
        dual = PlaneDual.zero(C * problem.weights, problem.n_features, 4, C)
        tolerance = 1.0  # of a violation; tightened when no example violates it any more

        def optimise() -> None:
            with clock.stage("dual"):
                enough = 0.1 * tolerance * float(dual.scales.sum())
                for _ in range(SWEEPS):
                    gap, gain = dual.sweep(everyone)
                    if gap <= enough or gain <= ROUNDING * abs(dual.value()):
                        break

        for n_iter in range(1, self.max_iter + 1):
            added = False
            for i in range(problem.n_examples):
                with clock.stage("oracle"):
                    cut = problem.cut(dual.w, i)
                if cut.at(dual.w) > dual.slack(i) + tolerance:
                    added = True
                    dual.add(i, cut)
                    optimise()
            with clock.stage("certificate"):
                value = 0.5 * float(dual.w @ dual.w)
                value += float(dual.scales @ problem.risks(dual.w))
            w = dual.w.copy()  # which what follows would move
            yield Progress(n_iter, 2.0 * n_iter, C, value, dual.value(), True, clock.elapsed, w)
            if not added:
                tolerance *= 0.3
                optimise()
