"""A sum over shards is a problem too: its examples are the shards.

    R(w) = Σ_k c_k R_k(w),   R_k the risk of shard k, c_k its share of the weight of all examples

So whatever learns from a problem learns from shards, and only vectors of the width of w travel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.workers import Workers
from didyma.learning.cutting_plane import PRECISION, TOWARDS_MODEL, ends_of_line
from didyma.learning.problem import Cut, PythonProblem
from didyma.learning.solution import Clock

Vector = NDArray[np.float64]

SPREAD = np.array([0.1, 0.3, 0.6, 0.8, 1.0, 1.25, 1.7, 3.0])  # tried first, times the last step
INSIDE = np.arange(1, 6) / 6  # of a bracket
ROUNDS = 6  # of a search, at most


def added(weights: Vector, cuts: Sequence[Cut]) -> Cut:
    """The weighted sum of the cuts of all shards."""
    direction = sum(weight * cut.direction for weight, cut in zip(weights, cuts))
    return Cut(np.asarray(direction), float(weights @ [cut.loss for cut in cuts]))


class ShardedLine:
    """The best point so far, and a search from it over all shards at once: in rounds of many steps.

    Scores stay where the rows are. Workers are sent both ends of the line and the steps to try, and
    answer with two numbers for each; a worker that has just been given the shard scores it anew,
    others know the scores of where the last search ended.
    """

    def __init__(
        self,
        workers: Workers,
        weights: Vector,
        C: float,
        w: Vector,
        clock: Clock,
        ends: tuple[float, float],
    ) -> None:
        self._workers, self._weights, self._C, self._clock = workers, weights, C, clock
        self._ends = ends
        self.w, self.passes, self._guess = w, 0.0, 1.0
        self.look()

    def look(self) -> None:
        """Score the best point anew: see `Line`."""
        self._workers.ask(_forget)
        self._from, self._to, self._t, self._beyond = self.w, self.w, 0.0, 0.0
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
            cuts = self._workers.ask(_cut_on_line, self._from, self._to, self._t, self._beyond)
        return added(self._weights, cuts)

    def _search(self) -> float:
        """Close in on the zero of J's derivative, which increases along the line."""
        low, high, best = 0.0, np.inf, 0.0
        steps = self._guess * SPREAD
        for _ in range(ROUNDS):
            steps = np.unique(np.clip(steps, *self._ends))
            values, slopes = self._try(steps)
            lowest = int(np.argmin(values))
            if values[lowest] < self.value:
                best, self.value = float(steps[lowest]), float(values[lowest])
            low = max([low, *steps[slopes <= 0.0]])
            high = min([high, *steps[slopes > 0.0]])
            if (high - low <= PRECISION * high < np.inf) or low == self._ends[1]:
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
        risks, rises = (np.tensordot(self._weights, np.array(parts), 1) for parts in zip(*answers))
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


def _cut_on_line(part: Any, start: Vector, end: Vector, t: float, beyond: float) -> Cut:
    """The cut at one step; the scores at another, where the next search begins, are kept."""
    scores, other = _ends(part, start, end)
    coefficients, loss = part.problem.respond(scores + beyond * (other - scores))
    part.scored = [(start + t * (end - start), scores + t * (other - scores))]
    return Cut(part.problem.gather(coefficients), loss)


def _forget(part: Any) -> None:
    part.scored = []


def _ends(part: Any, start: Vector, end: Vector) -> tuple[Vector, Vector]:
    scores = part.scores(start), part.scores(end)
    part.scored = list(zip((start, end), scores))
    return scores


@dataclass
class ShardState:
    """The state of a shard: its data, their problem, and what solvers keep to be fast."""

    data: Any
    problem: Any = None  # a `Problem`, once there is one
    gold: Vector | None = None  # Σ_i c_i Ψ*_i, of a latent problem
    dual: Any = None  # of `CoCoA`
    v: Vector | None = None  # what that adds to the common one
    scored: list[tuple[Vector, Vector]] = field(default_factory=list)  # weights and their scores

    def scores(self, w: Vector) -> Vector:
        """Those of the problem, looked up if they are known."""
        for weights, scores in self.scored:
            if np.array_equal(weights, w):
                return np.asarray(scores)
        scores = self.problem.scores(w)
        return np.asarray(scores)


class ShardedProblem(PythonProblem):
    """The sum over shards of problems that workers keep, each in its `ShardState`.

    ``weights`` are the shares of the shards; ``grades`` is that of all problems, and so are the
    signs that weights must have.
    """

    def __init__(
        self,
        workers: Workers,
        n_features: int,
        weights: Vector,
        *,
        grades: str | None = None,
        weight_signs: Vector | None = None,
    ) -> None:
        super().__init__(workers.n_shards, n_features, weights)
        self.workers, self.grades, self.weight_signs = workers, grades, weight_signs

    def cut(self, w: Vector, i: int) -> Cut:
        """Most violated cut of a shard."""
        return self.workers.ask(_cut, w)[i]

    def risks(self, w: Vector) -> Vector:
        """Risk of each shard."""
        return np.array(self.workers.ask(_risk, w))

    def respond(self, scores: Vector) -> tuple[Vector, float]:
        """The sum of the shards' cuts at w = scores, in one round."""
        cut = added(self.weights, self.workers.ask(_cut, scores))
        return cut.direction, cut.loss

    def line(self, C: float, w: Vector, clock: Clock) -> ShardedLine:
        """A line search that tries many steps in a round."""
        return ShardedLine(self.workers, self.weights, C, w, clock, ends_of_line(self))


def _cut(part: ShardState, w: Vector) -> Cut:
    cut: Cut = part.problem.cut_all(w)
    return cut


def _risk(part: ShardState, w: Vector) -> float:
    return float(part.problem.weights @ part.problem.risks(w))


COMPLETE = 2  # place of the completion in the recipe of a shard's state


class ShardedLatentProblem(ShardedProblem):
    """A `ShardedProblem` of latent ones.

    Completions are a step of the recipe: a worker that has to make a shard again completes it too.
    """

    def begin(self, rng: np.random.Generator) -> Vector:
        """Choose first completions; returns Σ_i c_i Ψ*_i."""
        return self._follow(partial(_begin, int(rng.integers(2**31))))

    def complete(self, w: Vector) -> Vector:
        """Complete the gold outputs at w; returns Σ_i c_i Ψ*_i."""
        return self._follow(partial(_complete, w))

    def _follow(self, step: Callable[[ShardState], ShardState]) -> Vector:
        self.workers.follow(step, COMPLETE)
        golds = self.workers.ask(_gold)
        return np.asarray(self.weights @ np.array(golds))


def _begin(seed: int, part: ShardState) -> ShardState:
    part.gold = part.problem.begin(np.random.default_rng(seed))
    return part


def _complete(w: Vector, part: ShardState) -> ShardState:
    part.gold = part.problem.complete(w)
    return part


def _gold(part: ShardState) -> Vector:
    assert part.gold is not None
    return part.gold
