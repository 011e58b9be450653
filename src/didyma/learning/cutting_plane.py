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
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from didyma.checkpoints import restoring
from didyma.errors import DataError
from didyma.learning.cut_pool import CutPool
from didyma.learning.plane_dual import PlaneDual
from didyma.learning.problem import Cut, Problem
from didyma.learning.solution import ROUNDING, Clock, Progress, Solution
from didyma.learning.solver import ConvexSolver, SolverRun
from didyma.stateful import Stateful

Vector = NDArray[np.float64]

TRIALS = 20  # oracle calls per line search, at most
PRECISION = 0.1  # relative width of the last bracket
TOWARDS_MODEL = 0.1  # cuts are made a little beyond the best point, towards the model's minimiser


class LineSearch(Protocol):
    """The best point so far, and what is known there."""

    w: Vector
    value: float  # J(w)
    passes: float

    def towards(self, w: Vector) -> None:
        """Move to about the minimiser of J on the ray from here through w."""
        ...

    def cut(self) -> Cut:
        """Most violated cut a little beyond the best point."""
        ...


@runtime_checkable
class Searchable(Protocol):
    """A problem that searches lines itself, as its scores stay where its examples are."""

    def line(self, C: float, w: Vector, clock: Clock) -> LineSearch:
        """A search that begins at w."""
        ...


def line_of(problem: Problem, C: float, w: Vector, clock: Clock) -> LineSearch:
    """A search that begins at w: the problem's own, or one over its scores."""
    if isinstance(problem, Searchable):
        return problem.line(C, w, clock)
    return Line(problem, C, w, clock)


class Line(Stateful):
    """The best point so far with its scores, and the search along a line from it."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("w", "scores", "coefficients", "value", "passes", "_beyond"),
    )

    def __init__(self, problem: Problem, C: float, w: Vector, clock: Clock) -> None:
        self.problem, self.C, self.clock = problem, C, clock
        self.w = w
        self.scores = problem.scores(w)
        self.coefficients, loss = problem.respond(self.scores)
        self.value = 0.5 * float(w @ w) + C * (loss + float(self.coefficients @ self.scores))
        self.passes = 0.0
        self._beyond = self.scores

    def towards(self, w: Vector) -> None:
        """Move to about the minimiser of J on the ray from here through w."""
        with self.clock.stage("scores"):
            step, scores = w - self.w, self.problem.scores(w) - self.scores
        with self.clock.stage("line search"):
            t = self._search(step, scores)
        self.w = self.w + t * step
        self.scores = self.scores + t * scores
        self._beyond = self.scores + TOWARDS_MODEL * (1.0 - t) * scores

    def _search(self, step: Vector, scores: Vector) -> float:
        """Close in on the zero of J's derivative, which increases along the line."""
        origin, start = self.w, self.scores
        low, high = 0.0, np.inf
        slope_low = float(origin @ step) + self.C * float(self.coefficients @ scores)
        slope_high = np.inf
        best, t = 0.0, 1.0
        for _ in range(TRIALS):
            at, w = start + t * scores, origin + t * step
            coefficients, loss = self.problem.respond(at)
            value = 0.5 * float(w @ w) + self.C * (loss + float(coefficients @ at))
            slope = float(w @ step) + self.C * float(coefficients @ scores)
            if value < self.value:
                best, self.value, self.coefficients = t, value, coefficients
            if slope <= 0.0:  # regula falsi, halving the slope of an end that stays (Illinois)
                low, slope_low, slope_high = t, slope, 0.5 * slope_high
            else:
                high, slope_high, slope_low = t, slope, 0.5 * slope_low
            if np.isinf(high):
                t = 2.0 * t
            else:
                t = (low * slope_high - high * slope_low) / (slope_high - slope_low)
            if high - low <= PRECISION * high or t in (low, high):
                break
        return best

    def cut(self) -> Cut:
        """Most violated cut a little beyond the best point."""
        with self.clock.stage("oracle"):
            coefficients, loss = self.problem.respond(self._beyond)
        with self.clock.stage("gather"):
            self.passes += 1.0
            return Cut(self.problem.gather(coefficients), loss)


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


def no_cuts(n_features: int, clock: Clock) -> _Cuts:
    """A run at w = 0 that knows nothing yet."""
    return _Cuts(CutPool(n_features), np.zeros(n_features), clock)


@dataclass(frozen=True)
class NSlack(ConvexSolver["_Slacks"]):
    """A slack per example: Algorithm 1 of Yue et al. 2007, for reference on small problems.

    With ``epsilon`` it ends as the paper's does too: when no cut of any example is violated by more
    than its slack and ε. The gap is then at most C ε, up to what the small dual problem lacks.

    >>> from didyma.learning.examples import OneHinge
    >>> NSlack().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000
    epsilon: float | None = None

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _Slacks:
        """Begin anew, whatever the start."""
        if self.epsilon is not None and not 0.0 < self.epsilon <= 1.0:
            raise DataError(f"expected above 0, up to 1, found {self.epsilon}", field="epsilon")
        planes = PlaneDual.zero(C * problem.weights, problem.n_features, 4, C)
        return _Slacks(planes, Clock(), 1.0 if self.epsilon is None else self.epsilon)

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
            n_iter = run.n_iter
            yield Progress(n_iter, 2.0 * n_iter, C, value, dual.value(), True, clock.elapsed, w)


class _Slacks(SolverRun):
    """The planes, the violation that is tolerated, and whether the last pass found none."""

    _changing: ClassVar[tuple[str, ...]] = ("dual", "clock", "n_iter", "tolerance", "satisfied")

    def __init__(self, dual: PlaneDual, clock: Clock, tolerance: float) -> None:
        super().__init__(clock)
        self.dual, self.tolerance, self.satisfied = dual, tolerance, False

    def check_state(self) -> None:
        """Refuse a tolerance that nothing meets."""
        if not 0.0 <= self.tolerance <= 1.0:
            raise ValueError(f"tolerance should be from 0 to 1, but is {self.tolerance}")


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
