"""A line search in rounds: many steps are tried in each.

Scores stay where the rows are. Workers are sent both ends of the line and the steps to try, and
answer with two numbers for each; a worker that has just been given the shard scores it anew, others
know the scores of where the last search ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.workers import Workers
from didyma.learning.line import PRECISION, TOWARDS_MODEL
from didyma.learning.problem import Cut
from didyma.learning.solution import Clock

__all__ = ["ShardedLine", "added"]

Vector = NDArray[np.float64]

SPREAD = np.array([0.1, 0.3, 0.6, 0.8, 1.0, 1.25, 1.7, 3.0])  # tried first, times the last step
INSIDE = np.arange(1, 6) / 6  # of a bracket
ROUNDS = 6  # of a search, at most


def added(weights: Vector, cuts: Sequence[Cut]) -> Cut:
    """The weighted sum of the cuts of all shards."""
    direction = sum(weight * cut.direction for weight, cut in zip(weights, cuts))
    return Cut(np.asarray(direction), float(weights @ [cut.loss for cut in cuts]))


class ShardedLine:
    """The best point so far, and a search from it over all shards at once."""

    def __init__(
        self, workers: Workers, weights: Vector, C: float, w: Vector, clock: Clock
    ) -> None:
        self._workers, self._weights, self._C, self._clock = workers, weights, C, clock
        self.w, self.passes = w, 0.0
        self._from, self._to, self._t, self._beyond, self._guess = w, w, 0.0, 0.0, 1.0
        (self.value,), _ = self._try(np.zeros(1))

    def towards(self, w: Vector) -> None:
        """Move to about the minimiser of J on the ray from here through w."""
        self._from, self._to = self.w, w
        with self._clock.stage("line search"):
            t = self._search()
        self.w = self._from + t * (w - self._from)
        self._t, self._beyond = t, t + TOWARDS_MODEL * (1.0 - t)
        self._guess = t or 0.1 * self._guess

    def cut(self) -> Cut:
        """Most violated cut a little beyond the best point."""
        with self._clock.stage("oracle"):
            self.passes += 1.0
            cuts = self._workers.ask(_cut, self._from, self._to, self._t, self._beyond)
        return added(self._weights, cuts)

    def _search(self) -> float:
        """Close in on the zero of J's derivative, which increases along the line."""
        low, high, best = 0.0, np.inf, 0.0
        steps = self._guess * SPREAD
        for _ in range(ROUNDS):
            values, slopes = self._try(steps)
            lowest = int(np.argmin(values))
            if values[lowest] < self.value:
                best, self.value = float(steps[lowest]), float(values[lowest])
            low = max([low, *steps[slopes <= 0.0]])
            high = min([high, *steps[slopes > 0.0]])
            if high - low <= PRECISION * high:
                break
            if np.isinf(high):
                steps = low / SPREAD[0] * SPREAD[1:]
            elif low == 0.0:
                steps = high * SPREAD[:-4]
            else:
                steps = low + INSIDE * (high - low)
        return best

    def _try(self, steps: Vector) -> tuple[Vector, Vector]:
        """J and its derivative at these steps along the line."""
        move = self._to - self._from
        answers = self._workers.ask(_trials, self._from, self._to, steps)
        risks, rises = (np.tensordot(self._weights, np.array(found), 1) for found in zip(*answers))
        points = self._from + steps[:, None] * move
        norms = 0.5 * (points * points).sum(axis=1)
        return norms + self._C * risks, points @ move + self._C * rises


def _trials(part: Any, start: Vector, end: Vector, steps: Vector) -> tuple[Vector, Vector]:
    """Risk and its derivative at some steps from one point towards another."""
    scores, other = _ends(part, start, end)
    risks, rises = np.empty(len(steps)), np.empty(len(steps))
    for k, t in enumerate(steps):
        at = scores + t * (other - scores)
        coefficients, loss = part.problem.respond(at)
        risks[k] = loss + float(coefficients @ at)
        rises[k] = float(coefficients @ (other - scores))
    return risks, rises


def _cut(part: Any, start: Vector, end: Vector, t: float, beyond: float) -> Cut:
    """The cut at one step; the scores at another, where the next search begins, are kept."""
    scores, other = _ends(part, start, end)
    coefficients, loss = part.problem.respond(scores + beyond * (other - scores))
    part.known = [(start + t * (end - start), scores + t * (other - scores))]
    return Cut(part.problem.gather(coefficients), loss)


def _ends(part: Any, start: Vector, end: Vector) -> tuple[Vector, Vector]:
    found = part.scores(start), part.scores(end)
    part.known = list(zip((start, end), found))
    return found
