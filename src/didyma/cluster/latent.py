"""A sum over shards whose gold outputs are completed, round after round (CCCP)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.problem import ShardedProblem, ShardState

__all__ = ["ShardedLatentProblem"]

Vector = NDArray[np.float64]

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
