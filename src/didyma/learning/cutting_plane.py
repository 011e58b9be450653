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

from didyma.learning.plane_dual import PlaneDual
from didyma.learning.problem import Cut, Problem
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive
from didyma.polytope.active_set import Projection, minimise_over_columns

__all__ = ["NSlack", "OneSlack", "ProximalBundle"]

Vector = NDArray[np.float64]

UNUSED = 50  # a cut that was inactive for so many solutions is forgotten
TRIALS = 20  # oracle calls per line search, at most
PRECISION = 0.1  # relative width of the last bracket
TOWARDS_MODEL = 0.1  # cuts are made a little beyond the best point, towards the model's minimiser


class CutPool:
    """Cuts with their Gram matrix; slot 0 is the zero cut of the gold outputs."""

    def __init__(self, n_features: int) -> None:
        self.directions = np.zeros((1, n_features))
        self.losses = np.zeros(1)
        self.gram = np.zeros((1, 1))
        self.unused = np.zeros(1, dtype=np.int64)
        self.solution: Projection | None = None

    def add(self, cut: Cut) -> None:
        """Remember a cut."""
        column = self.directions @ cut.direction
        corner = [float(cut.direction @ cut.direction)]
        self.gram = np.block([[self.gram, column[:, None]], [column[None, :], np.array([corner])]])
        self.directions = np.vstack([self.directions, cut.direction])
        self.losses = np.append(self.losses, cut.loss)
        self.unused = np.append(self.unused, 0)

    def minimise(self, scale: float, offsets: Vector) -> tuple[NDArray[np.int64], Vector]:
        """Active cuts and their weights for columns ``scale · g_k`` and the given offsets."""
        self.solution = minimise_over_columns(
            scale**2 * self.gram, np.ascontiguousarray(offsets), start=self.solution
        )
        self.unused += 1
        self.unused[self.solution.active] = 0
        return self.solution.active, self.solution.weights

    def forget(self) -> None:
        """Drop cuts that have not been active for a long time."""
        keep = self.unused < UNUSED
        keep[0] = True
        if keep.all() or self.solution is None:
            return
        place = np.cumsum(keep) - 1
        solution = self.solution
        self.solution = Projection(
            place[solution.active],
            solution.weights,
            solution.point[keep],
            solution.tau,
            solution.gap,
            solution.converged,
            solution.n_iter,
        )
        self.directions, self.losses = self.directions[keep], self.losses[keep]
        self.gram, self.unused = self.gram[np.ix_(keep, keep)], self.unused[keep]

    def combine(self, active: NDArray[np.int64], y: Vector) -> Cut:
        """The weighted mean of some cuts, itself a cut."""
        return Cut(y @ self.directions[active], float(y @ self.losses[active]))


@dataclass(frozen=True)
class OneSlack:
    """One slack for all examples (Joachims et al. 2009), with the line search of Franc &
    Sonnenburg.

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
        """Minimise ½‖w‖² + C R(w); cuts of ``start`` (any C) are valid for this C too."""
        clock = Clock()
        known = start is not None and isinstance(start.state, CutPool)
        pool = start.state if start is not None and known else CutPool(problem.n_features)
        progress, status = drive(self._steps(problem, C, pool, clock), self.tol, callback)
        if progress is None:
            progress = _nothing(problem, C, clock)
        return Solution(progress.w.copy(), Result.of(progress, status, clock), pool)

    def _steps(self, problem: Problem, C: float, pool: CutPool, clock: Clock) -> Iterator[Progress]:
        line = _Line(problem, C, clock)
        if len(pool.losses) == 1:
            pool.add(line.cut())
        for n_iter in range(1, self.max_iter + 1):
            with clock.stage("dual"):
                mean = pool.combine(*pool.minimise(C, C * pool.losses))
                w = -C * mean.direction
                dual = C * mean.loss - 0.5 * float(w @ w)
                pool.forget()
            line.towards(w)
            yield Progress(n_iter, line.passes, C, line.value, dual, True, clock.elapsed, line.w)
            pool.add(line.cut())


class _Line:
    """The best point so far with its scores, and the search along a line from it."""

    def __init__(self, problem: Problem, C: float, clock: Clock) -> None:
        self.problem, self.C, self.clock = problem, C, clock
        self.w = np.zeros(problem.n_features)
        self.scores = problem.scores(self.w)
        self.coefficients, loss = problem.respond(self.scores)
        self.value = C * loss
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
        known = start is not None and isinstance(start.state, CutPool)
        pool = start.state if start is not None and known else CutPool(problem.n_features)
        centre = np.zeros(problem.n_features) if start is None else start.w
        steps = self._steps(problem, C, pool, centre, clock)
        progress, status = drive(steps, self.tol, callback)
        if progress is None:
            progress = _nothing(problem, C, clock)
        return Solution(progress.w.copy(), Result.of(progress, status, clock), pool)

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
        progress, status = drive(self._steps(problem, C, clock), self.tol, callback)
        if progress is None:
            progress = _nothing(problem, C, clock)
        return Solution(progress.w.copy(), Result.of(progress, status, clock))

    def _steps(self, problem: Problem, C: float, clock: Clock) -> Iterator[Progress]:
        everyone = np.arange(problem.n_examples)
        dual = PlaneDual.zero(C * problem.weights, problem.n_features, 4, C)
        tolerance = 1.0  # of a violation; tightened when no example violates it any more

        def optimise() -> None:
            with clock.stage("dual"):
                while dual.sweep(everyone)[0] > 0.1 * tolerance * dual.scales.sum():
                    pass

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
            yield Progress(
                n_iter, 2.0 * n_iter, C, value, dual.value(), True, clock.elapsed, dual.w
            )
            if not added:
                tolerance *= 0.3
                optimise()


def _nothing(problem: Problem, C: float, clock: Clock) -> Progress:
    """What is known when a run was interrupted before its first iteration ended."""
    w = np.zeros(problem.n_features)
    value = C * float(problem.weights @ problem.risks(w))
    return Progress(0, 0.0, C, value, 0.0, True, clock.elapsed, w)
