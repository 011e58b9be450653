"""The perceptron on all shards at once: iterative parameter mixing (McDonald et al. 2010).

In an epoch every worker visits its examples from the common weights on; their weights at the end,
in proportion to their examples, are the next common ones. What is returned is the mean of all
iterates, as of the perceptron on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.problem import ShardedProblem, ShardState
from didyma.learning.perceptron import Perceptron, PerceptronState
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class MixedPerceptron:
    """``epochs`` passes over the examples of all shards, shuffled by ``random_state``."""

    epochs: int = 10
    random_state: int = 0

    def solve(self, problem: ShardedProblem, *, callback: Callback | None = None) -> Solution:
        """Averaged weights."""
        clock = Clock()
        progress, status = drive(self._steps(problem, clock), None, callback)
        if progress is None:  # interrupted before the first epoch was done
            w = np.zeros(problem.n_features)
            progress = Progress(0, 0.0, 1.0, np.inf, 0.0, False, clock.elapsed, w)
        if status == "limit":
            status = "converged"  # all epochs were done
        return Solution(progress.w, Result.of(progress, status, clock))

    def _steps(self, problem: ShardedProblem, clock: Clock) -> Iterator[Progress]:
        w, total = np.zeros(problem.n_features), np.zeros(problem.n_features)
        seeds = np.random.default_rng(self.random_state).integers(2**31, size=self.epochs)
        for epoch, seed in enumerate(seeds.tolist(), 1):
            answers = problem.workers.ask(_epoch, w, seed)
            ends, means, losses = (np.array(found) for found in zip(*answers))
            w = problem.weights @ ends
            total += problem.weights @ means
            value = float(problem.weights @ losses)
            mean = total / epoch
            yield Progress(epoch, float(epoch), 1.0, value, 0.0, False, clock.elapsed, mean)


def _epoch(part: ShardState, w: Vector, seed: int) -> tuple[Vector, Vector, float]:
    """Weights at the end of an epoch from w on, their mean during it, and the mean loss."""
    found = Perceptron(1, seed).solve(part.problem, start=PerceptronState(w))
    return found.state.w, found.w, found.result.value
