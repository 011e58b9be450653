"""The line search of a cutting-plane learner, which cuts at its end."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from didyma.learning.problem import Cut, Problem
from didyma.learning.solution import Clock
from didyma.stateful import Stateful

__all__ = ["PRECISION", "TOWARDS_MODEL", "Line", "LineSearch", "Searchable", "line_of"]

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
