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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.checkpoints import restoring
from didyma.learning.cut_pool import CutPool
from didyma.learning.line import LineSearch, line_of
from didyma.learning.plane_dual import PlaneDual
from didyma.learning.problem import Problem
from didyma.learning.solution import ROUNDING, Clock, Progress, Solution
from didyma.learning.solver import ConvexSolver, SolverRun
from didyma.stateful import Stateful

__all__ = ["NSlack", "OneSlack"]

Vector = NDArray[np.float64]

LEAST, PATIENCE = 1e-9, 10  # relative progress that counts, iterations without any before the end
SWEEPS = 300  # over the planes of all examples before new ones are asked for


@dataclass(frozen=True)
class OneSlack(ConvexSolver["_Cuts"]):
    """One slack for all examples (Joachims et al. 2009), with a line search (Franc & Sonnenburg).

    Each iteration solves the bound, searches the line from the best point so far to the bound's
    minimiser (along which scores are known, so only oracles are called), and cuts there. It costs
    one product with X and one with X', whatever the number of oracle calls. The value is never
    above that at the weights of ``start`` (or zero), where the search begins.

    >>> from didyma.learning.examples import OneHinge
    >>> OneSlack().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _Cuts:
        w = np.zeros(problem.n_features) if start is None else start.w
        return _Cuts(CutPool.of(start, problem.n_features), w, Clock())

    def _steps(self, problem: Problem, C: float, run: _Cuts) -> Iterator[Progress]:
        pool, clock = run.pool, run.clock
        line = line_of(problem, C, run.w, clock)
        if run.point and isinstance(line, Stateful):
            with restoring():
                line.restore(run.point)
        while run.idle < PATIENCE:  # an inexact oracle may have no cut that closes the gap
            if run.n_iter > 0 or len(pool.losses) == 1:
                pool.add(line.cut())
            if run.n_iter == self.max_iter:
                return
            run.n_iter += 1
            with clock.stage("dual"):
                w, dual = pool.minimiser(C)
                pool.forget()
            line.towards(w)
            run.update(dual, line)
            yield Progress(
                *(run.n_iter, line.passes, C, line.value, dual),
                *(True, clock.elapsed, line.w),
            )


class _Cuts(SolverRun):
    """The cuts, the best point, and the iterations without progress."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("pool", "w", "point", "clock", "n_iter", "bound", "value", "idle"),
    )
    _lasting = "pool"

    def __init__(self, pool: CutPool, w: Vector, clock: Clock) -> None:
        super().__init__(clock)
        self.pool, self.w = pool, w
        self.point: dict[str, Any] = {}  # what a search that has a state knows there
        self.bound, self.value, self.idle = -np.inf, np.inf, 0

    def update(self, dual: float, line: LineSearch) -> None:
        """Take over the point and the bounds of an iteration."""
        self.w, value = line.w, line.value
        self.point = line.state() if isinstance(line, Stateful) else {}
        higher = dual > self.bound + LEAST * abs(self.bound)
        lower = value < self.value - LEAST * abs(self.value)
        self.bound, self.value = max(self.bound, dual), min(self.value, value)
        self.idle = 0 if higher or lower else self.idle + 1


@dataclass(frozen=True)
class NSlack(ConvexSolver["_Slacks"]):
    """A slack per example: Algorithm 1 of Yue et al. 2007, for reference on small problems.

    >>> from didyma.learning.examples import OneHinge
    >>> NSlack().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _Slacks:
        """Begin anew, whatever the start."""
        return _Slacks(PlaneDual.zero(C * problem.weights, problem.n_features, 4, C), Clock())

    def _steps(self, problem: Problem, C: float, run: _Slacks) -> Iterator[Progress]:
        everyone = np.arange(problem.n_examples)
        dual, clock = run.dual, run.clock

        def optimise() -> None:
            with clock.stage("dual"):
                enough = 0.1 * run.tolerance * float(dual.scales.sum())
                for _ in range(SWEEPS):
                    gap, gain = dual.sweep(everyone)
                    if gap <= enough or gain <= ROUNDING * abs(dual.value()):
                        break

        while True:
            if run.satisfied:
                run.tolerance *= 0.3
                optimise()
            if run.n_iter == self.max_iter:
                return
            run.n_iter += 1
            run.satisfied = True
            for i in range(problem.n_examples):
                with clock.stage("oracle"):
                    cut = problem.cut(dual.w, i)
                if cut.at(dual.w) > dual.slack(i) + run.tolerance:
                    run.satisfied = False
                    dual.add(i, cut)
                    optimise()
            with clock.stage("certificate"):
                value = 0.5 * float(dual.w @ dual.w)
                value += float(dual.scales @ problem.risks(dual.w))
            w = dual.w.copy()  # which what follows would move
            n_iter = run.n_iter
            yield Progress(n_iter, 2.0 * n_iter, C, value, dual.value(), True, clock.elapsed, w)


class _Slacks(SolverRun):
    """The planes, the violation that is tolerated, and whether the last pass found none."""

    _changing: ClassVar[tuple[str, ...]] = ("dual", "clock", "n_iter", "tolerance", "satisfied")

    def __init__(self, dual: PlaneDual, clock: Clock) -> None:
        super().__init__(clock)
        self.dual, self.tolerance, self.satisfied = dual, 1.0, False

    def check_state(self) -> None:
        """Refuse a tolerance that nothing meets."""
        if not 0.0 <= self.tolerance <= 1.0:
            raise ValueError(f"tolerance should be from 0 to 1, but is {self.tolerance}")
