"""What a learner reports while it works and returns at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from didyma import checkpoints
from didyma.errors import DataError
from didyma.learning.problem import Problem
from didyma.stateful import Stateful, array_of, record_of

__all__ = [
    *("Callback", "Clock", "Progress", "Result", "Solution", "SolverRun"),
    *("check_C", "check_finite", "conclude", "drive", "overflow", "reached", "resumable"),
]

ROUNDING = 1e-12  # no relative gap below this means anything
LARGEST_C = 1e100  # so that products of C and features stay within double precision

Status: TypeAlias = Literal["converged", "limit", "stopped", "interrupted"]


@dataclass(frozen=True)
class Progress:
    """State of a run after one iteration, as given to callbacks.

    ``value`` and ``dual`` bound the optimum for ``C``, which solvers may approach in stages.
    """

    n_iter: int
    passes: float
    C: float
    value: float
    dual: float
    certified: bool
    seconds: float
    w: NDArray[np.float64] = field(repr=False)

    @property
    def gap(self) -> float:
        """Primal minus dual objective; an estimate unless `certified`."""
        return self.value - self.dual

    @property
    def relative_gap(self) -> float:
        """Gap as a share of the primal objective."""
        return self.gap / self.value if self.value > 0 else 0.0


# A callback may return True to stop the run; the weights at that point are returned.
Callback: TypeAlias = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Result:
    """How a run ended: objective value, its lower bound and what it cost.

    ``gap = value − dual`` bounds the distance to the optimum; ``passes`` counts full passes over
    the examples, ``seconds`` is split by stage. ``grades`` is the bound that a ranker chose for a
    loss over more than two grades.
    """

    value: float
    dual: float
    gap: float
    converged: bool
    n_iter: int
    passes: float
    status: Status
    seconds: Mapping[str, float]
    grades: str | None = None

    @classmethod
    def of(cls, progress: Progress, status: Status, clock: Clock) -> Result:
        """Sum up a run by its last progress."""
        return cls(
            value=progress.value,
            dual=progress.dual,
            gap=progress.gap,
            converged=status == "converged",
            n_iter=progress.n_iter,
            passes=progress.passes,
            status=status,
            seconds={**clock.stages, "total": clock.elapsed},
        )


@dataclass(frozen=True)
class Solution:
    """Weights, the report about them, and whatever a next run can start from."""

    w: NDArray[np.float64]
    result: Result
    state: Any = field(default=None, repr=False)


def drive(
    steps: Iterable[Progress],
    tol: float | None,
    callback: Callback | None,
    run: SolverRun | None = None,
) -> tuple[Progress | None, Status]:
    """Run a solver to its tolerance: the loop that all solvers share.

    ``steps`` yields after each iteration. The run ends when a certified gap meets ``tol`` (None
    leaves that to the solver), when the callback says so, when the solver gives up, or at Ctrl-C,
    which keeps what was learned so far. A ``run`` knows how far it had come before.
    """
    progress = None if run is None else run.progress
    try:
        for progress in steps:
            check_finite(progress)
            if run is not None:
                run.progress = progress
            stop = callback is not None and callback(progress)
            if tol is not None and progress.certified and progress.relative_gap <= reached(tol):
                return progress, "converged"
            if stop:
                return progress, "stopped"
            checkpoints.maybe_save()
    except KeyboardInterrupt:
        return progress, "interrupted"
    return progress, "limit"


def check_C(C: Any) -> float:
    """C, if it is a number to train with."""
    if not (isinstance(C, Real) and 1.0 / LARGEST_C <= float(C) <= LARGEST_C):
        raise DataError(
            f"expected a positive number from {1 / LARGEST_C:g} to {LARGEST_C:g}, found {C!r}",
            field="C",
        )
    return float(C)


def reached(tol: float) -> float:
    """The relative gap that a tolerance can mean."""
    return max(tol, ROUNDING)


def check_finite(progress: Progress) -> Progress:
    """Refuse weights and values that double precision does not hold."""
    if not (np.isfinite(progress.value + progress.dual) and np.isfinite(progress.w).all()):
        raise overflow(progress.C)
    return progress


def overflow(C: float) -> DataError:
    """What to say where numbers become too large."""
    return DataError(
        f"training at C={C:g} overflows double precision: lower C or scale the features"
    )


class Clock(Stateful):
    """Time by stage, whatever happens to the clock on the wall."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._start

    def state(self) -> dict[str, Any]:
        """The time so far."""
        return {"stages": self.stages, "elapsed": self.elapsed}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a time."""
        self.stages = {str(name): float(seconds) for name, seconds in state["stages"].items()}
        self._start = time.perf_counter() - float(state["elapsed"])

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a block under a name."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start


class SolverRun(Stateful):
    """A solver at work: all that it knows between two iterations.

    ``_lasting`` names the attribute that a solution keeps as its ``state``.
    """

    _lasting: ClassVar[str | None] = None

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.n_iter = 0
        self.progress: Progress | None = None

    def state(self) -> dict[str, Any]:
        """All of that."""
        return {**super().state(), "progress": self.progress and vars(self.progress)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        super().restore(state)
        progress = state["progress"]
        self.progress = None if progress is None else record_of(Progress, progress)

    @property
    def lasting(self) -> Any:
        """What a next run can start from."""
        return None if self._lasting is None else getattr(self, self._lasting)


def resumable(
    run: SolverRun,
    name: str,
    problem: Problem,
    callback: Callback | None,
    work: Callable[[], Solution],
) -> Solution:
    """The solution that ``work`` finds by going on with a run: a step of a checkpoint.

    ``name`` says what solves the problem, with all settings. A callback that has a state goes on
    with the run; others hear only of what is yet to come.
    """
    kept = checkpoints.active()
    if kept is None:
        return work()
    name = f"{name} on {problem.n_examples} × {problem.n_features}"
    watch = callback if isinstance(callback, Stateful) else None

    def watched() -> Any:
        return None if watch is None else watch.state()

    known = kept.begin(name, lambda: {"run": run.state(), "watch": watched()})
    before = known.answer or known.state
    if before is not None:
        with checkpoints.restoring():
            solution = _taken_up(run, problem, known)
            if watch is not None:
                watch.restore(before["watch"])
                _check_weights(getattr(watch, "best_w", None), problem)
        if solution is not None:
            kept.end(name, None, solution, written=True)
            return solution
    try:
        solution = work()
    except KeyboardInterrupt:
        kept.give_up()
        raise
    if solution.result.status == "interrupted":
        kept.give_up()
    else:
        answer = {"w": solution.w, "result": vars(solution.result), "watch": watched()}
        kept.end(name, answer, solution)
    return solution


def _taken_up(run: SolverRun, problem: Problem, known: checkpoints.StepState) -> Solution | None:
    """The solution that a run had found, or None after the run was put where it stood."""
    if known.answer is None:
        run.restore(known.state["run"])
        _check_weights(run.progress and run.progress.w, problem)
        return None
    if known.live is not None:
        run.lasting.restore(known.live)
    state = None if known.live is None else run.lasting
    result = record_of(Result, known.answer["result"])
    if result.status not in get_args(Status):
        raise ValueError(f"status should be a text, but is {result.status!r:.40}")
    return Solution(_check_weights(known.answer["w"], problem), result, state)


def _check_weights(w: Any, problem: Problem) -> Any:
    return None if w is None else array_of(w, "w", (problem.n_features,))


def conclude(
    problem: Problem,
    C: float,
    run: SolverRun,
    steps: Iterable[Progress],
    tol: float,
    callback: Callback | None,
) -> Solution:
    """`drive` a solver whose every step is certified, and sum it up."""
    progress, status = drive(steps, tol, callback, run)
    clock = run.clock
    if progress is None:  # interrupted before the first step
        w = np.zeros(problem.n_features)
        value = C * float(problem.weights @ problem.risks(w))
        progress = Progress(0, 0.0, C, value, 0.0, True, clock.elapsed, w)
    return Solution(progress.w.copy(), Result.of(progress, status, clock), run.lasting)
