"""A sum over shards is a problem too: its examples are the shards.

    R(w) = Σ_k c_k R_k(w),   R_k the risk of shard k, c_k its share of the weight of all examples

So whatever learns from a problem learns from shards, and only vectors of the width of w travel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.line import ShardedLine, added
from didyma.cluster.workers import Workers
from didyma.learning.problem import Cut, PythonProblem
from didyma.learning.solution import Clock

__all__ = ["ShardState", "ShardedProblem"]

Vector = NDArray[np.float64]


@dataclass
class ShardState:
    """The state of a shard: its data, their problem, and what solvers keep to be fast."""

    data: Any
    problem: Any = None  # a `Problem`, once there is one
    gold: Vector | None = None  # Σ_i c_i Ψ*_i, of a latent problem
    dual: Any = None  # of `CoCoA`
    v: Vector | None = None  # what that adds to the common one
    known: list[tuple[Vector, Vector]] = field(default_factory=list)  # weights and their scores

    def scores(self, w: Vector) -> Vector:
        """Those of the problem, looked up if they are known."""
        for known, scores in self.known:
            if np.array_equal(known, w):
                return scores
        found: Vector = self.problem.scores(w)
        return found


class ShardedProblem(PythonProblem):
    """The sum over shards of problems that workers keep, each in its `ShardState`.

    ``weights`` are the shares of the shards; ``grades`` is that of all problems, and ``feasible``
    the projection onto the weights that they allow.
    """

    def __init__(
        self,
        workers: Workers,
        n_features: int,
        weights: Vector,
        *,
        grades: str | None = None,
        feasible: Callable[[Vector], Vector] | None = None,
    ) -> None:
        super().__init__(workers.n_shards, n_features, weights)
        self.workers, self.grades, self._feasible = workers, grades, feasible

    @property
    def constrained(self) -> bool:
        """Whether some weights are not allowed."""
        return self._feasible is not None

    def feasible(self, w: Vector) -> Vector:
        """The nearest weights that are allowed."""
        return w if self._feasible is None else self._feasible(w)

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
        return ShardedLine(self.workers, self.weights, C, w, clock)


def _cut(part: ShardState, w: Vector) -> Cut:
    found: Cut = part.problem.cut_all(w)
    return found


def _risk(part: ShardState, w: Vector) -> float:
    return float(part.problem.weights @ part.problem.risks(w))
