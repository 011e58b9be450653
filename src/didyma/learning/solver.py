"""The loop that all solvers share: iterate, report, stop, and go on from a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, TypeVar, get_args

import numpy as np

from didyma import checkpoints
from didyma.execution import one_blas_thread
from didyma.learning.problem import Problem
from didyma.learning.solution import (
    Callback,
    Clock,
    Progress,
    Result,
    Solution,
    Status,
    check_finite,
    reached,
)
from didyma.stateful import Stateful, array_of, record_of


class SolverRun(Stateful):
    """The state of a solver between two iterations, which a checkpoint can hold.

    ``_lasting`` names the attribute that a solution keeps as its ``state``.
    """

    _lasting: ClassVar[str | None] = None

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.n_iter = 0
        self.finished = False  # by a rule of the solver's own, whatever the gap
        self.progress: Progress | None = None

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

    A subclass says how a run begins and what its iterations are.
    """

    tol: float

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
        run = self._begin(problem, C, start)

        def work() -> Solution:
            with one_blas_thread():
                progress, status = drive(self._steps(problem, C, run), self.tol, callback, run)
                status = "converged" if run.finished else status
                progress = self._certified(problem, C, run, progress)
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
        """The last report, with the objective at its weights; None if there was no iteration."""
        if progress is not None:
            return progress
        w = np.zeros(problem.n_features)
        value = C * float(problem.weights @ problem.risks(w))
        return Progress(0, 0.0, C, value, 0.0, True, run.clock.elapsed, w)


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
