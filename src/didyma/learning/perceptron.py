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
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma._core.learning import perceptron_epoch
from didyma.errors import DataError
from didyma.learning.problem import Problem, cut_oracle
from didyma.learning.solution import (
    Callback,
    Progress,
    Result,
    Solution,
    SolverRun,
    drive,
    resumable,
)
from didyma.stateful import Stateful

Vector = NDArray[np.float64]

MOST_VISITS = 10**9
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Perceptron:
    """``epochs`` passes over the examples, shuffled by ``random_state`` (None: as given).

    ``C`` is the weight of the loss in the problem's search, for reports.

    >>> from didyma.learning.problem import OneHinge
    >>> Perceptron(epochs=1).solve(OneHinge()).w.round(2)
    array([1., 2.])
    """

    epochs: int = 10
    random_state: int | None = 0
    C: float = 1.0

    def solve(
        self,
        problem: Problem,
        *,
        multiplicity: Vector | None = None,
        start: Solution | PerceptronState | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Averaged weights; ``start`` is a former run to go on from, or where to begin.

        ``multiplicity`` is how often an epoch visits each example, once if not given.
        """
        former = start.state if isinstance(start, Solution) else start
        zero = PerceptronState(np.zeros(problem.n_features))
        state = zero if former is None else deepcopy(former)
        visits = np.ones(problem.n_examples) if multiplicity is None else multiplicity
        run = _PerceptronRun(state, *_schedule(visits), self.random_state)
        return resumable(
            *(run, str(self), problem, callback), lambda: self._solve(problem, run, callback)
        )

    def _solve(self, problem: Problem, run: _PerceptronRun, callback: Callback | None) -> Solution:
        state, clock = run.averaged, run.clock
        progress, status = drive(self._steps(problem, run), None, callback, run)
        if progress is None:  # interrupted before the first epoch was done
            progress = Progress(0, 0.0, self.C, np.inf, 0.0, False, clock.elapsed, state.mean())
        if status == "limit":
            status = "converged"  # all epochs were done
        return Solution(progress.w, Result.of(progress, status, clock), state)

    def _steps(self, problem: Problem, run: _PerceptronRun) -> Iterator[Progress]:
        oracle = cut_oracle(problem)
        state, order, steps = run.averaged, run.order, run.steps
        while run.n_iter < self.epochs:
            run.n_iter += 1
            if self.random_state is not None:
                run.rng.shuffle(order)
            total = perceptron_epoch(
                *(oracle, run.examples[order], steps[order]),
                *(state.w, state.drift, state.time),
            )
            state.time += float(steps.sum())
            value = total / max(float(steps.sum()), TINY)
            yield run.report(self.C, value, 0.0, state.mean(), certified=False)


class _PerceptronRun(SolverRun):
    """The averaged weights, and the order of the last epoch, which is shuffled again."""

    _changing: ClassVar[tuple[str, ...]] = ("averaged", "rng", "order", "clock", "n_iter")
    _lasting = "averaged"

    def __init__(
        self,
        averaged: PerceptronState,
        examples: NDArray[np.int64],
        steps: Vector,
        random_state: int | None,
    ) -> None:
        super().__init__()
        self.averaged, self.examples, self.steps = averaged, examples, steps
        self.rng = np.random.default_rng(random_state)
        self.order = np.arange(len(examples))

    def check_state(self) -> None:
        """Refuse an order that is no permutation of the visits."""
        if not np.array_equal(np.sort(self.order), np.arange(len(self.examples))):
            raise ValueError("order should name each visit of an epoch once")


class PerceptronState(Stateful):
    """Weights w and the sum that gives the mean of all iterates, w − drift / time."""

    _changing: ClassVar[tuple[str, ...]] = ("w", "drift", "time")

    def __init__(self, w: Vector) -> None:
        self.w = w.copy()
        self.drift = np.zeros(len(w))
        self.time = 0.0

    def check_state(self) -> None:
        """Refuse a negative time."""
        if self.time < 0.0:
            raise ValueError(f"time should be from 0 on, but is {self.time}")

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
