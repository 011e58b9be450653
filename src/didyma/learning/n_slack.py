"""Cutting planes with a slack per example: the reference for small problems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from didyma.errors import DataError
from didyma.learning.bcfw import PlaneDual
from didyma.learning.problem import Problem
from didyma.learning.solution import ROUNDING, ConvexSolver, Progress, Solution, SolverRun

SWEEPS = 300  # over the planes of all examples before new ones are asked for


@dataclass(frozen=True)
class NSlack(ConvexSolver["_NSlackRun"]):
    """A slack per example: Algorithm 1 of Yue et al. 2007, for reference on small problems.

    With ``epsilon`` it ends as the paper's does too: when no cut of any example is violated by more
    than its slack and ε. The gap is then at most C ε, up to what the small dual problem lacks.

    >>> from didyma.learning.problem import OneHinge
    >>> NSlack().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000
    epsilon: float | None = None

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _NSlackRun:
        """Begin anew, whatever the start."""
        if self.epsilon is not None and not 0.0 < self.epsilon <= 1.0:
            raise DataError(f"expected above 0, up to 1, found {self.epsilon}", field="epsilon")
        planes = PlaneDual.zero(C * problem.weights, problem.n_features, 4, C)
        return _NSlackRun(planes, 1.0 if self.epsilon is None else self.epsilon)

    def _steps(self, problem: Problem, C: float, run: _NSlackRun) -> Iterator[Progress]:
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
                run.finished = self.epsilon is not None
                if run.finished:
                    return
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
            yield run.report(C, value, dual.value(), w, passes=2.0 * run.n_iter)


class _NSlackRun(SolverRun):
    """The planes, the violation that is tolerated, and whether the last pass found none."""

    _changing: ClassVar[tuple[str, ...]] = ("dual", "clock", "n_iter", "tolerance", "satisfied")

    def __init__(self, dual: PlaneDual, tolerance: float) -> None:
        super().__init__()
        self.dual, self.tolerance, self.satisfied = dual, tolerance, False

    def check_state(self) -> None:
        """Refuse a tolerance outside of [0, 1]."""
        if not 0.0 <= self.tolerance <= 1.0:
            raise ValueError(f"tolerance should be from 0 to 1, but is {self.tolerance}")
