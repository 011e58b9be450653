"""What all solvers share: progress, results, and the loop that stops, reports and goes on later."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from didyma import checkpoints
from didyma.errors import DataError, check_choice
from didyma.execution import one_blas_thread
from didyma.learning.problem import Problem, signs_of
from didyma.stateful import Stateful, array_of, record_of
from didyma.values import is_number

__all__ = [
    *("Callback", "Clock", "Progress", "Result", "Solution", "Status"),
    *("check_C", "check_finite", "overflow", "reached"),
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

    @property
    def relative_gap(self) -> float:
        """Gap as a share of the objective value."""
        return self.gap / self.value if self.value > 0 else 0.0

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

    @classmethod
    def at(cls, w: NDArray[np.float64]) -> Solution:
        """Weights to begin at, of which nothing else is known."""
        return cls(w, Result(np.inf, -np.inf, np.inf, False, 0, 0.0, "stopped", {}))


def check_C(C: Any) -> float:
    """C, if it is a number to train with."""
    if not (is_number(C) and 1.0 / LARGEST_C <= float(C) <= LARGEST_C):
        raise DataError(
            f"expected a positive number from {1 / LARGEST_C:g} to {LARGEST_C:g}, found {C!r:.40}",
            field="C",
        )
    return float(C)


def check_start(weights: Any, n_weights: int) -> NDArray[np.float64]:
    """Weights to begin at, if they are one number for each."""
    with suppress(ValueError):  # of rows that differ in length
        numbers = np.asarray(weights)
        right = numbers.dtype.kind in "biuf" and numbers.shape == (n_weights,)
        if right and np.all(np.abs(numbers) <= LARGEST_C):
            return numbers.astype(np.float64)
    raise DataError(
        f"expected {n_weights} numbers, one for each weight, none beyond {LARGEST_C:g}",
        field="coef_init",
    )


def reached(tol: float) -> float:
    """The relative gap that a tolerance can mean."""
    return max(tol, ROUNDING)


def check_finite(progress: Progress) -> Progress:
    """Refuse weights and values that are not finite."""
    if not (np.isfinite(progress.value + progress.dual) and np.isfinite(progress.w).all()):
        raise overflow(progress.C)
    return progress


def overflow(C: float) -> DataError:
    """The error where numbers become too large."""
    return DataError(
        f"training at C={C:g} overflows double precision: lower C or scale the features"
    )


class Clock(Stateful):
    """Seconds of a run by stage, which go on where a checkpoint left them."""

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
    """The state of a solver between two iterations, which a checkpoint can hold.

    ``_lasting`` names the attribute that a solution keeps as its ``state``.
    """

    _lasting: ClassVar[str | None] = None

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock, self.n_iter = clock or Clock(), 0
        self.finished = False  # by a rule of the solver's own, whatever the gap
        self.progress: Progress | None = None

    def report(
        self,
        C: float,
        value: float,
        dual: float,
        w: NDArray[np.float64],
        *,
        passes: float | None = None,
        certified: bool = True,
    ) -> Progress:
        """Progress after this iteration; an iteration is a pass unless ``passes`` are counted."""
        passes = float(self.n_iter) if passes is None else passes
        return Progress(self.n_iter, passes, C, value, dual, certified, self.clock.elapsed, w)

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {**super().state(), "progress": self.progress and vars(self.progress)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        super().restore(state)
        progress = state["progress"]
        self.progress = None if progress is None else record_of(Progress, progress)

    @property
    def lasting(self) -> Any:
        """What a next run can start from."""
        return None if self._lasting is None else getattr(self, self._lasting)


Run = TypeVar("Run", bound=SolverRun)


class ConvexSolver(ABC, Generic[Run]):
    """A solver of J(w) = ½‖w‖² + C R(w) that knows a lower bound of it.

    A subclass says how a run begins and what its iterations are, and whether it can keep to the
    signs that some problems ask of their weights.
    """

    tol: float

    takes_signs: ClassVar[bool] = False

    def solve(
        self,
        problem: Problem,
        C: float,
        *,
        start: Solution | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise J to a relative duality gap of ``tol``.

        ``start`` is a solution of the same problem by the same solver, for any C, or weights to
        begin at (`Solution.at`). It is not changed.
        """
        if signs_of(problem) is not None and not self.takes_signs:
            raise DataError("weights must have signs, to which this solver cannot keep")
        run = self._begin(problem, C, start)

        def work() -> Solution:
            with one_blas_thread():
                progress, status = drive(self._steps(problem, C, run), self.tol, callback, run)
                progress = self._certified(problem, C, run, progress)
                met = status == "limit" and progress.relative_gap <= reached(self.tol)
                status = "converged" if run.finished or met else status
            result = Result.of(progress, status, run.clock)
            return Solution(progress.w.copy(), result, run.lasting)

        return resumable(run, f"{self} at C={C}", problem, callback, work)

    @abstractmethod
    def _begin(self, problem: Problem, C: float, start: Solution | None) -> Run:
        """The state before the first iteration."""

    @abstractmethod
    def _steps(self, problem: Problem, C: float, run: Run) -> Iterator[Progress]:
        """Iterate, and report each time."""

    def _certified(
        self, problem: Problem, C: float, run: Run, progress: Progress | None
    ) -> Progress:
        """The last report, with the objective at its weights: w = 0 if there was no iteration."""
        if progress is None:
            zero = np.zeros(problem.n_features)
            progress = Progress(0, 0.0, C, 0.0, 0.0, False, run.clock.elapsed, zero)
        if progress.certified:
            return progress
        w = progress.w
        value = 0.5 * float(w @ w) + C * float(problem.weights @ problem.risks(w))
        return replace(progress, value=value, certified=True)


def drive(
    steps: Iterable[Progress],
    tol: float | None,
    callback: Callback | None,
    run: SolverRun | None = None,
) -> tuple[Progress | None, Status]:
    """Iterate to a tolerance.

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
    checkpoint = checkpoints.active()
    if checkpoint is None:
        return work()
    name = f"{name} on {problem.n_examples} × {problem.n_features}"
    watch = callback if isinstance(callback, Stateful) else None

    def watched() -> Any:
        return None if watch is None else watch.state()

    step = checkpoint.begin(name, lambda: {"run": run.state(), "watch": watched()})
    before = step.answer or step.state
    if before is not None:
        with checkpoints.restoring():
            solution = _restored(run, problem, step)
            if watch is not None:
                watch.restore(before["watch"])
                _check_weights(getattr(watch, "best_w", None), problem)
        if solution is not None:
            checkpoint.end(name, None, solution, written=True)
            return solution
    try:
        solution = work()
    except KeyboardInterrupt:
        checkpoint.give_up()
        raise
    if solution.result.status == "interrupted":
        checkpoint.give_up()
    else:
        answer = {"w": solution.w, "result": vars(solution.result), "watch": watched()}
        checkpoint.end(name, answer, solution)
    return solution


def _restored(run: SolverRun, problem: Problem, step: checkpoints.StepState) -> Solution | None:
    """The solution that a run had found, or None after the run was put where it stood."""
    if step.answer is None:
        run.restore(step.state["run"])
        _check_weights(run.progress and run.progress.w, problem)
        return None
    if step.live is not None:
        run.lasting.restore(step.live)
    state = None if step.live is None else run.lasting
    result = record_of(Result, step.answer["result"])
    if result.status not in get_args(Status):
        raise ValueError(f"status should be a text, but is {result.status!r:.40}")
    return Solution(_check_weights(step.answer["w"], problem), result, state)


def _check_weights(w: Any, problem: Problem) -> Any:
    return None if w is None else array_of(w, "w", (problem.n_features,))


# Names of solvers, and their classes in `didyma.learning`.
SOLVERS = {
    "bcfw": "BCFW",
    "one-slack": "OneSlack",
    "n-slack": "NSlack",
    "bundle": "ProximalBundle",
}


def make_solver(name: str, tol: float, max_iter: int, random_state: int) -> Any:
    """The solver of that name; for "bcfw" ``max_iter`` limits its passes.

    >>> make_solver("one-slack", 0.01, 50, 0)
    OneSlack(tol=0.01, max_iter=50)
    """
    from didyma import learning

    check_choice(name, SOLVERS, "solver")
    if name == "bcfw":
        return learning.BCFW(tol=tol, max_passes=max_iter, random_state=random_state)
    return getattr(learning, SOLVERS[name])(tol=tol, max_iter=max_iter)
