"""Cutting planes: the exact reference, and the learner whose oracle is one sum over shards.

The risk is bounded below by the maximum of its cuts, R(w) ≥ max_k b_k + g_k·w, and the bound's
minimiser is a small quadratic programme over the weights y of the cuts (with the zero cut):

    max over the simplex   C b·y − ½‖C Σ_k y_k g_k‖²,     w = −C Σ_k y_k g_k

which is the projection of `didyma.polytope.active_set`. Where weights must have signs, w is the
projection P of that onto them, and the dual has ½‖P(·)‖². All learners here minimise the same
J(w) = ½‖w‖² + C R(w) and report its value, the bound and the gap between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.checkpoints import restoring
from didyma.learning.problem import Cut, Problem, clipped, signs_of
from didyma.learning.solution import (
    Clock,
    ConvexSolver,
    Progress,
    Solution,
    SolverRun,
    overflow,
    reached,
)
from didyma.polytope.active_set import Projection, minimise_over_columns
from didyma.stateful import Stateful, array_of, record_of

Vector = NDArray[np.float64]

UNUSED = 50  # a cut that was inactive for so many solutions is forgotten

TRIALS = 20  # oracle calls per line search, at most
PRECISION = 0.1  # relative width of the last bracket
TOWARDS_MODEL = 0.1  # cuts are made a little beyond the best point, towards the model's minimiser
NEWTON = 100  # steps where weights have signs, at most
SHORT = 0.5  # a step that ends where P clips other weights than at its beginning
DRIFT = 1e-13  # of scores that are added up along lines, at most, as a share of the scores
RESTART = 20  # steps after which two sets of clipped weights may take turns for ever
LEAST, PATIENCE = 1e-9, 10  # relative progress that counts, iterations without any before the end


class CutPool(Stateful):
    """Cuts with their Gram matrix; slot 0 is the zero cut of the gold outputs.

    ``signs`` are those that weights must have.
    """

    _changing: ClassVar[tuple[str, ...]] = ("directions", "losses", "gram", "unused")
    _growing: ClassVar[tuple[str, ...]] = _changing

    def __init__(self, n_features: int, signs: Vector | None = None) -> None:
        self.n_features, self.signs = n_features, signs
        self.directions = np.zeros((1, n_features))
        self.losses = np.zeros(1)
        self.gram = np.zeros((1, 1))
        self.unused = np.zeros(1, dtype=np.int64)
        self.solution: Projection | None = None

    @classmethod
    def of(cls, start: Solution | None, n_features: int, signs: Vector | None = None) -> CutPool:
        """A copy of the cuts of an earlier solution, which hold for any C, or an empty pool."""
        state = None if start is None else start.state
        return deepcopy(state) if isinstance(state, CutPool) else cls(n_features, signs)

    def state(self) -> dict[str, Any]:
        """Cuts, and the weights of the last minimiser."""
        return {**super().state(), "solution": self.solution and vars(self.solution)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with other cuts."""
        super().restore(state)
        solution = state["solution"]
        self.solution = None if solution is None else self._projection(solution)

    def check_state(self) -> None:
        """Refuse sizes that differ."""
        n = len(self.losses)
        array_of(self.losses, "losses", (max(n, 1),))
        array_of(self.directions, "directions", (n, self.n_features))
        array_of(self.gram, "gram", (n, n))
        array_of(self.unused, "unused", (n,), np.int64, low=0)

    def _projection(self, state: dict[str, Any]) -> Projection:
        """A minimiser over these cuts, or over all but the last."""
        projection, n = record_of(Projection, state), len(self.losses)
        active = array_of(projection.active, "active", (None,), np.int64, low=0, high=n - 1)
        if not 0 < len(active) == len(np.unique(active)):
            raise ValueError("active should be places of different cuts")
        return replace(
            projection,
            active=active,
            weights=array_of(projection.weights, "weights", (len(active),), low=0.0),
            point=array_of(projection.point, "point", (None,)),
        )

    def add(self, cut: Cut) -> None:
        """Remember a cut."""
        column = self.directions @ cut.direction
        corner = [float(cut.direction @ cut.direction)]
        self.gram = np.block([[self.gram, column[:, None]], [column[None, :], np.array([corner])]])
        self.directions = np.vstack([self.directions, cut.direction])
        self.losses = np.append(self.losses, cut.loss)
        self.unused = np.append(self.unused, 0)

    def shift(self, change: Vector) -> None:
        """Move every cut but the zero cut, when the gold features have moved the other way."""
        self.directions[1:] += change
        self.gram = self.directions @ self.directions.T

    def minimise(self, scale: float, offsets: Vector) -> Cut:
        """The mean cut under the optimal weights, for columns ``scale · g_k`` and these offsets."""
        gram = self._scaled(scale)
        return self._remember(
            minimise_over_columns(gram, np.ascontiguousarray(offsets), start=self.solution)
        )

    def _scaled(self, scale: float) -> Vector:
        """The Gram matrix of the columns ``scale · g_k``."""
        gram: Vector = scale**2 * self.gram
        if not np.isfinite(gram).all():
            raise overflow(scale)
        return gram

    def _remember(self, solution: Projection) -> Cut:
        """The mean cut under these weights, from which the next search begins."""
        self.solution = solution
        active, y = solution.active, solution.weights
        self.unused += 1
        self.unused[active] = 0
        return Cut(y @ self.directions[active], float(y @ self.losses[active]))

    def minimiser(self, C: float) -> tuple[Vector, float]:
        """The weights that minimise ½‖w‖² + C max_k (g_k·w + b_k), and the minimum."""
        mean = (
            self.minimise(C, C * self.losses)
            if self.signs is None
            else self._minimise_clipped(C, self.signs)
        )
        w = clipped(-C * mean.direction, self.signs)
        return w, C * mean.loss - 0.5 * float(w @ w)

    def _minimise_clipped(self, C: float, signs: Vector) -> Cut:
        """The mean cut under the weights y that maximise C b·y − ½‖P(v)‖², v = −C Σ_k y_k g_k.

        Newton's method: the dual is quadratic where P clips the same coordinates, whose maximum is
        the end of a line that is searched exactly. Should steps run out, any y bounds J from below.
        """
        self._scaled(C)  # refuses a C that overflows
        columns, gains = -C * self.directions, C * self.losses
        y = np.zeros(len(gains))
        if self.solution is None:
            y[0] = 1.0
        else:
            y[self.solution.active] = self.solution.weights
        curved = np.zeros(self.n_features, dtype=bool)
        for step in range(NEWTON):
            if step == RESTART:
                y, curved = np.eye(len(gains))[0], np.zeros_like(curved)
            v = y @ columns
            here = v * signs >= 0.0
            curved = curved | here
            free = np.ascontiguousarray(columns[:, curved])
            gram = free @ free.T
            slope = gains - columns @ clipped(v, signs)
            peak = minimise_over_columns(gram, slope + gram @ y, start=self.solution)
            end = np.zeros(len(gains))
            end[peak.active] = peak.weights
            move = (end - y) @ columns
            there = (v + move) * signs >= 0.0
            if (here == there).all() and (here == curved).all():  # quadratic between: exact
                y = end
                break
            t = _highest(float((end - y) @ gains), v, move, signs)
            y = y + t * (end - y)
            if t == 0.0 and (there <= curved).all():  # all else is rounding
                break
            # After a short step also what P keeps at its end counts.
            curved = curved | there if t < SHORT else np.zeros_like(curved)
        active = np.flatnonzero(y > 0.0)
        return self._remember(replace(peak, active=active, weights=y[active]))

    def forget(self) -> None:
        """Drop cuts that have not been active for a long time."""
        keep = self.unused < UNUSED
        keep[0] = True
        if keep.all() or self.solution is None:
            return
        place = np.cumsum(keep) - 1
        active, point = place[self.solution.active], self.solution.point[keep]
        self.solution = replace(self.solution, active=active, point=point)
        self.directions, self.losses = self.directions[keep], self.losses[keep]
        self.gram, self.unused = self.gram[np.ix_(keep, keep)], self.unused[keep]


def _highest(gain: float, v: Vector, move: Vector, signs: Vector) -> float:
    """The t in [0, 1] that maximises gain · t − ½‖P(v + t · move)‖²."""

    def slope(t: float) -> float:
        return gain - float(move @ clipped(v + t * move, signs))

    moving = move != 0.0
    turns = -v[moving] / move[moving]
    knots = [0.0, *np.sort(turns[(turns > 0.0) & (turns < 1.0)]), 1.0]
    last = bisect_left(knots, True, key=lambda t: slope(t) <= 0.0)
    if last in (0, len(knots)):
        return 0.0 if last == 0 else 1.0
    low, high = knots[last - 1], knots[last]
    falling = slope(low)  # linearly between knots
    return low + (high - low) * falling / (falling - slope(high))


def ends_of_line(problem: Any) -> tuple[float, float]:
    """Between what steps a line may be followed, from weights at 0 towards others at 1.

    Where weights must have signs, those between have them, as both do.
    """
    return (-np.inf, np.inf) if signs_of(problem) is None else (0.0, 1.0)


class Line(Stateful):
    """The best point so far with its scores, and the search along a line from it.

    A problem whose scores stay where its examples are may bring another one: ``line(C, w, clock)``,
    with ``w``, ``value`` (J at w), ``passes``, ``look``, ``towards`` and ``cut`` as here.
    """

    _changing: ClassVar[tuple[str, ...]] = (
        *("w", "scores", "coefficients", "value", "passes", "_beyond", "_drift"),
    )

    def __init__(self, problem: Problem, C: float, w: Vector, clock: Clock) -> None:
        self.problem, self.C, self.clock = problem, C, clock
        self.w = w
        self.passes = 0.0
        self._ends = ends_of_line(problem)
        self.look()

    def look(self) -> None:
        """Score the best point anew: scores that were added up on the way to it drift from it."""
        with self.clock.stage("scores"):
            self.scores = self._beyond = self.problem.scores(self.w)
        self.coefficients, loss = self.problem.respond(self.scores)
        risk = loss + float(self.coefficients @ self.scores)
        self.value = 0.5 * float(self.w @ self.w) + self.C * risk
        self._drift = float(np.finfo(float).eps)

    def towards(self, w: Vector) -> None:
        """Move to about the minimiser of J on the ray from here through w."""
        with self.clock.stage("scores"):
            step, scores = w - self.w, self.problem.scores(w) - self.scores
        with self.clock.stage("line search"):
            t = self._search(step, scores)
        self.w = self.w + t * step
        self.scores = self.scores + t * scores
        self._beyond = self.scores + TOWARDS_MODEL * (1.0 - t) * scores
        self._drift = abs(1.0 - t) * self._drift + (1.0 + t) * float(np.finfo(float).eps)
        if self._drift > DRIFT:
            self.look()

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
            if np.isfinite(high):
                t = (low * slope_high - high * slope_low) / (slope_high - slope_low)
            else:
                t = 2.0 * t
            t = min(max(t, self._ends[0]), self._ends[1])
            if (high - low <= PRECISION * high < np.inf) or t in (low, high):
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
class OneSlack(ConvexSolver["OneSlackRun"]):
    """One slack for all examples (Joachims et al. 2009), with a line search (Franc & Sonnenburg).

    Each iteration solves the bound, searches the line from the best point so far to the bound's
    minimiser (along which scores are known, so only oracles are called), and cuts there. It costs
    one product with X and one with X', whatever the number of oracle calls. The value is never
    above that at the weights of ``start`` (or zero), where the search begins.

    >>> from didyma.learning.problem import OneHinge
    >>> OneSlack().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000

    takes_signs: ClassVar[bool] = True

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> OneSlackRun:
        return OneSlackRun(problem.n_features, start, signs=signs_of(problem))

    def _steps(self, problem: Problem, C: float, run: OneSlackRun) -> Iterator[Progress]:
        pool, clock = run.pool, run.clock
        search: Any = getattr(problem, "line", None) or partial(Line, problem)
        line = search(C, run.w, clock)
        if run.point and isinstance(line, Stateful):
            with restoring():
                line.restore(run.point)
        while not run.exhausted:  # an inexact oracle may have no cut that closes the gap
            if run.n_iter > 0 or len(pool.losses) == 1:
                pool.add(line.cut())
            if run.n_iter == self.max_iter:
                return
            run.n_iter += 1
            with clock.stage("dual"):
                w, dual = pool.minimiser(C)
                pool.forget()
            line.towards(w)
            met = line.value - max(run.bound, dual) <= reached(self.tol) * line.value
            if met:
                line.look()
            run.update(dual, line)
            yield run.report(C, line.value, run.bound, line.w, passes=line.passes, certified=met)


class _PoolRun(SolverRun):
    """A run that adds cuts of all examples to a pool."""

    _lasting = "pool"

    def __init__(
        self,
        n_features: int,
        start: Solution | None = None,
        clock: Clock | None = None,
        signs: Vector | None = None,
    ) -> None:
        super().__init__(clock)
        self.pool = CutPool.of(start, n_features, signs)
        self.w = np.zeros(n_features) if start is None else clipped(start.w, signs)


class OneSlackRun(_PoolRun):
    """The cuts of `OneSlack`, its best point, and the iterations without progress."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("pool", "w", "point", "clock", "n_iter", "bound", "value", "idle"),
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.point: dict[str, Any] = {}  # what a search that has a state knows at the best point
        self.bound, self.value, self.idle = -np.inf, np.inf, 0

    @property
    def exhausted(self) -> bool:
        """Whether cuts lead no further."""
        return self.idle >= PATIENCE

    def anew(self) -> OneSlackRun:
        """A run from the best point on without these cuts, whose bound holds."""
        run = OneSlackRun(len(self.w), clock=self.clock, signs=self.pool.signs)
        run.w, run.bound = self.w, self.bound
        return run

    def update(self, dual: float, line: Any) -> None:
        """Take over the point and the bounds of an iteration."""
        self.w, value = line.w, line.value
        self.point = line.state() if isinstance(line, Stateful) else {}
        higher = dual > self.bound + LEAST * abs(self.bound)
        lower = value < self.value - LEAST * abs(self.value)
        self.bound, self.value = max(self.bound, dual), value
        self.idle = 0 if higher or lower else self.idle + 1


@dataclass(frozen=True)
class ProximalBundle(ConvexSolver["_BundleRun"]):
    """Cutting planes that stay near the best point: the inner solver of Yu & Joachims 2009.

    The model has ½μ‖w − centre‖² added; a step that delivers a tenth of the predicted decrease
    moves the centre.

    >>> from didyma.learning.problem import OneHinge
    >>> ProximalBundle().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_iter: int = 1000
    mu: float = 1.0

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _BundleRun:
        return _BundleRun(problem.n_features, start)

    def _steps(self, problem: Problem, C: float, run: _BundleRun) -> Iterator[Progress]:
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
                mean = pool.minimise(C / np.sqrt(1.0 + self.mu), offsets)
                run.w = w = shrink * run.centre - C / (1.0 + self.mu) * mean.direction
                # Any weights of the cuts bound J from below, with the proximal term or without it.
                bound = C * mean.loss - 0.5 * C**2 * float(mean.direction @ mean.direction)
                run.dual = max(run.dual, bound)
                highest = float(np.max(pool.losses + pool.directions @ w))
                run.model = 0.5 * float(w @ w) + C * highest
                pool.forget()
            yield run.report(C, run.value, run.dual, run.centre)


class _BundleRun(_PoolRun):
    """The cuts, the best point, the next one, and the value of the model there."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("pool", "clock", "n_iter", "centre", "value", "dual", "w", "model"),
    )

    def __init__(self, n_features: int, start: Solution | None) -> None:
        super().__init__(n_features, start)
        self.centre = self.w
        self.value, self.model, self.dual = np.inf, -np.inf, 0.0
