"""How the problem of a ranker is solved: one convex problem, or the rounds of the ramp bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from didyma.learning.cccp import CCCP
from didyma.learning.solution import Callback, Result, Solution

MOST_ROUNDS = 100
START = 0.1  # of C: the hinge has its best weights at a smaller one, and there its optimum is quick
LEAST_GAIN = 5.0  # tolerances by which a round must gain: less is not seen on held-out queries


@dataclass(frozen=True)
class RankingResult(Result):
    """How the training of a ranker ended.

    With the ramp bound ``n_iter`` counts the rounds, ``dual`` and ``gap`` are those of the last
    round's convex problem, and ``start`` is the loss at whose optimum the first one began, None if
    that was at given weights.
    """

    bound: str = "hinge"
    rounds: int = 0
    start: str | None = None


class Fitter(Protocol):
    """Solves one problem for several values of C, each from the solution of the last."""

    problem: Any  # a `RankingProblem`, or a sum over shards of some

    def begin_at(self, w: NDArray[np.float64]) -> None:
        """Let the first solution begin at these weights."""
        ...

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """A solution at C, and how it was found."""
        ...


class HingeFitter:
    """Minimises the hinge bound: a convex problem."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self._last: Solution | None = None

    def begin_at(self, w: NDArray[np.float64]) -> None:
        """Let the first solution begin at these weights, which the optimum does not depend on."""
        self._last = Solution.at(w)

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """A solution at C, from the one of the last C."""
        self._last = solver.solve(self.problem, C, start=self._last, callback=callback)
        return self._last, RankingResult(**vars(self._last.result))


class RampFitter:
    """Minimises the ramp bound by CCCP, from the optimum of a loss without cut-off.

    That is the minimum of the hinge of ``convex`` at a tenth of C; its loss has the name ``start``.
    """

    def __init__(self, problem: Any, convex: Any, start: str | None) -> None:
        self.problem = problem
        self._convex, self._start = convex, start
        self._first: Solution | None = None
        self._last: Solution | None = None

    def begin_at(self, w: NDArray[np.float64]) -> None:
        """Begin at these weights instead, whatever C."""
        self._first, self._start = Solution.at(w), None

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """A local minimum at C, with the cuts of the last C."""
        if self._start is not None:
            self._first = solver.solve(self._convex, START * C, start=self._first)
        first = self._first
        assert first is not None
        interrupted = first.result.status == "interrupted"
        most = 0 if interrupted else MOST_ROUNDS
        rounds = CCCP(
            tol=solver.tol,
            inner=solver,
            max_iter=most,
            from_start=True,
            least_gain=LEAST_GAIN * solver.tol,
        )
        cuts = None if self._last is None else self._last.state
        solution = self._last = rounds.solve(
            self.problem, C, start=first.w, known=cuts, callback=callback
        )
        result = RankingResult(
            **vars(solution.result),
            bound="ramp",
            rounds=solution.result.n_iter,
            start=self._start,
        )
        seconds = {**result.seconds, "start": first.result.seconds.get("total", 0.0)}
        seconds["total"] += seconds["start"]
        return solution, replace(
            result,
            passes=result.passes + first.result.passes,
            seconds=seconds,
            status="interrupted" if interrupted else result.status,
        )
