"""The averaged structured perceptron: take a step whenever an example's answer is wrong.

With w the current weights and (direction, loss) the cut of an example there,

    w ← w − direction   if loss > 0,

and the mean of all iterates is returned. A problem whose gold outputs are completed at the current
weights makes it the latent perceptron of Haponchyk & Moschitti 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.kernels.jit import bind, specialise
from didyma.learning.problem import Problem
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive

__all__ = ["Perceptron"]

Vector = NDArray[np.float64]

cut: Any = None  # bound per problem


def _epoch(arrays, order, w, drift, step, direction):  # type: ignore[no-untyped-def]
    """One visit to each example; returns the sum of losses.

    ``drift`` collects step · change of w, so that w − drift / steps is the mean of all iterates.
    """
    total = 0.0
    for t in range(order.shape[0]):
        loss = cut(arrays, w, order[t], direction)
        if loss > 0.0:
            total += loss
            for f in range(w.shape[0]):
                w[f] -= direction[f]
                drift[f] -= (step + t) * direction[f]
    return total


@dataclass(frozen=True)
class Perceptron:
    """``epochs`` passes over the examples, in an order shuffled by ``seed`` (None: as given)."""

    epochs: int = 10
    seed: int | None = 0

    def solve(
        self, problem: Problem, *, start: Solution | None = None, callback: Callback | None = None
    ) -> Solution:
        """Averaged weights; ``start`` is a former run to go on from."""
        clock = Clock()
        state = _State(problem) if start is None else start.state
        progress, status = drive(self._steps(problem, state, clock), -1.0, callback)
        if progress is None:  # interrupted before the first epoch was done
            progress = Progress(0, 0.0, 1.0, np.inf, 0.0, False, clock.elapsed, state.mean())
        if status == "limit":
            status = "converged"  # all epochs were done
        return Solution(progress.w, Result.of(progress, status, clock), state)

    def _steps(self, problem: Problem, state: _State, clock: Clock) -> Iterator[Progress]:
        rng = np.random.default_rng(self.seed)
        run, arrays = _compiled(problem)
        order = np.arange(problem.n_examples)
        direction = np.zeros(problem.n_features)
        for epoch in range(1, self.epochs + 1):
            if self.seed is not None:
                rng.shuffle(order)
            total = run(arrays, order, state.w, state.drift, state.steps, direction)
            state.steps += problem.n_examples
            value = float(total) / max(problem.n_examples, 1)
            yield Progress(epoch, float(epoch), 1.0, value, 0.0, False, clock.elapsed, state.mean())


class _State:
    def __init__(self, problem: Problem) -> None:
        self.w = np.zeros(problem.n_features)
        self.drift = np.zeros(problem.n_features)
        self.steps = 0

    def mean(self) -> Vector:
        """Mean of the weights after each step so far."""
        return self.w - self.drift / max(self.steps, 1)


def _compiled(problem: Problem) -> tuple[Any, Any]:
    kernel = problem.kernel
    if kernel is not None:
        return _native(kernel.name, kernel.cut, kernel.cached), kernel.arrays

    def cut(arrays: Any, w: Vector, i: int, direction: Vector) -> float:
        found = problem.cut(w, i)
        direction[:] = found.direction
        return found.loss

    return bind(_epoch, "perceptron_python", cut=cut), None


@cache
def _native(name: str, cut: Any, cached: bool) -> Any:
    return specialise(_epoch, f"perceptron_{name}", cached=cached, cut=cut)
