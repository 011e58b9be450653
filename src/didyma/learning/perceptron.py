"""The averaged structured perceptron: take a step whenever an example's answer is wrong.

With w the current weights and (direction, loss) the cut of an example there,

    w ← w − direction   if loss > 0,

and the mean of all iterates is returned. An example of weight m is visited m times an epoch; what m
is above a whole number is a visit with so small a step. A problem whose gold outputs are completed
at the current weights makes it the latent perceptron of Haponchyk & Moschitti 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.kernels.jit import bind, specialise
from didyma.learning.problem import Problem
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive

__all__ = ["Perceptron"]

Vector = NDArray[np.float64]

MOST_VISITS = 10**9
TINY = float(np.finfo(np.float64).tiny)

cut: Any = None  # bound per problem


def _epoch(arrays, order, steps, w, drift, time, direction):  # type: ignore[no-untyped-def]
    """Visits in this order, each with its step; returns the weighted sum of losses.

    ``time`` is the sum of all steps before, and ``drift`` collects time · change of w, so that
    w − drift / time is the mean of all iterates.
    """
    total = 0.0
    for t in range(order.shape[0]):
        loss = cut(arrays, w, order[t], direction)
        if loss > 0.0:
            total += steps[t] * loss
            for f in range(w.shape[0]):
                w[f] -= steps[t] * direction[f]
                drift[f] -= time * steps[t] * direction[f]
        time += steps[t]
    return total


@dataclass(frozen=True)
class Perceptron:
    """``epochs`` passes over the examples, shuffled by ``random_state`` (None: as given)."""

    epochs: int = 10
    random_state: int | None = 0

    def solve(
        self,
        problem: Problem,
        *,
        multiplicity: Vector | None = None,
        start: Solution | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Averaged weights; ``start`` is a former run to go on from.

        ``multiplicity`` is how often an epoch visits each example, once if not given.
        """
        clock = Clock()
        state = _State(problem) if start is None else deepcopy(start.state)
        visits = np.ones(problem.n_examples) if multiplicity is None else multiplicity
        progress, status = drive(self._steps(problem, visits, state, clock), None, callback)
        if progress is None:  # interrupted before the first epoch was done
            progress = Progress(0, 0.0, 1.0, np.inf, 0.0, False, clock.elapsed, state.mean())
        if status == "limit":
            status = "converged"  # all epochs were done
        return Solution(progress.w, Result.of(progress, status, clock), state)

    def _steps(
        self, problem: Problem, visits: Vector, state: _State, clock: Clock
    ) -> Iterator[Progress]:
        rng = np.random.default_rng(self.random_state)
        run, arrays = _compiled(problem)
        examples, steps = _schedule(visits)
        order = np.arange(len(examples))
        direction = np.zeros(problem.n_features)
        for epoch in range(1, self.epochs + 1):
            if self.random_state is not None:
                rng.shuffle(order)
            total = run(
                arrays, examples[order], steps[order], state.w, state.drift, state.time, direction
            )
            state.time += float(steps.sum())
            value = float(total) / max(float(steps.sum()), TINY)
            yield Progress(epoch, float(epoch), 1.0, value, 0.0, False, clock.elapsed, state.mean())


class _State:
    def __init__(self, problem: Problem) -> None:
        self.w = np.zeros(problem.n_features)
        self.drift = np.zeros(problem.n_features)
        self.time = 0.0

    def mean(self) -> Vector:
        """Mean of the weights after each step so far."""
        return self.w - self.drift / max(self.time, TINY)


def _schedule(visits: Vector) -> tuple[NDArray[np.int64], Vector]:
    """The visits of an epoch, each with its step: whole ones, and one for what is left over."""
    if visits.sum() > MOST_VISITS:
        raise DataError(
            f"weights ask for {visits.sum():.1e} visits an epoch, more than {MOST_VISITS:.0e}: "
            "divide them all by a number",
            field="sample_weight",
        )
    counts = np.ceil(visits).astype(np.int64)
    examples = np.repeat(np.arange(len(visits)), counts)
    steps = np.ones(len(examples))
    last = np.cumsum(counts)[counts > 0] - 1
    steps[last] = (visits - counts + 1.0)[counts > 0]
    return examples, steps


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
