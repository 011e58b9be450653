"""CCCP: differences of convex functions by a sequence of convex problems.

    J(w) = ½‖w‖² + C Σ_i c_i ( max_{y,h} [Δ_i(y) + w·Ψ_i(y, h)] − max_h w·Ψ_i(y_i, h) )

is such a difference: a latent structural SVM (Yu & Joachims 2009) if h completes the gold output
y_i, the ramp bound (Chapelle et al. 2008) if the second maximum is over all outputs. Each round
finds the second maximiser at the current weights, which replaces that maximum by a linear function
that touches it there, and minimises what is left: an ordinary problem. J never increases if
inference is exact.

Cuts survive a round. With F_k = Σ_i c_i Ψ_i(ŷ_i) and v = Σ_i c_i Ψ*_i a cut's direction is F_k − v,
so after a completion all of them shift by the difference of the v; planes of single examples by
that of their own Ψ*_i.

Where completions are tied, which of them is kept decides whether a run goes on: against one, w may
be the optimum of its round; against another of the same value, not. Optima do lie on such ties. So
a run that gains no more tries completions of weights nearby before it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from didyma.errors import check_choice
from didyma.learning.bcfw import BCFW, PlaneDual
from didyma.learning.cutting_plane import CutPool, OneSlack, ProximalBundle
from didyma.learning.n_slack import NSlack
from didyma.learning.problem import Problem
from didyma.learning.row_bcfw import RowBCFW, RowDual
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive, reached

Vector = NDArray[np.float64]

LOOSEST = 0.05  # relative gap of the first round
SHARE = 0.1  # gap of a round, as a share of what the round before gained
INNER = {"one-slack": OneSlack, "bundle": ProximalBundle, "n-slack": NSlack}
NEARBY = 0.01  # how far completions that are tried look, as a share of ‖w‖


class LatentProblem(Problem, Protocol):
    """A problem whose Ψ*_i depend on the weights of a round.

    With BCFW as inner solver it needs ``golds()`` too: Ψ*_i of each example, as rows; with RowBCFW
    ``gold_rows()``, the same as one coefficient for each row of the data.
    """

    def begin(self, rng: np.random.Generator) -> Vector:
        """Choose first completions; returns Σ_i c_i Ψ*_i."""
        ...

    def complete(self, w: Vector) -> Vector:
        """Complete the gold outputs at w; returns Σ_i c_i Ψ*_i."""
        ...


@dataclass(frozen=True)
class Round(Progress):
    """Progress of a round: ``value`` is J, ``dual`` bounds the convex problem of the round.

    ``convex`` is the value of that problem, so ``convex − dual`` its gap.
    """

    convex: float = np.nan

    @property
    def gap(self) -> float:
        """Certified gap of the round's convex problem."""
        return self.convex - self.dual


@dataclass
class Rounds:
    """The solution of the last convex problem, and the Ψ* that it refers to.

    ``trace`` has J after each round, ``escapes`` counts the tied completions that led lower.
    """

    convex: Solution
    gold: Vector
    trace: list[float] = field(default_factory=list)
    escapes: int = 0

    def move(self, w: Vector, gold: Vector) -> None:
        """Go on at other weights and Ψ*, with all cuts moved along, if they can be."""
        state = self.convex.state
        if isinstance(state, (CutPool, PlaneDual, RowDual)):
            state.shift(self.gold - gold)
        else:
            state = None
        self.convex, self.gold = replace(self.convex, w=w, state=state), gold


@dataclass(frozen=True)
class CCCP:
    """Rounds of completion and convex minimisation until a round gains no more than ``least_gain``.

    That is relative to the objective, and ``tol`` if not given, the relative gap of the last
    rounds; the first ones are solved loosely. ``max_iter`` limits the rounds; ``inner`` solves one.
    Without ``reuse`` every round starts with no cuts, for comparison; ``from_start`` reports the
    start as round 0.
    Before it ends, a run tries up to ``ties`` completions that are tied with the last one or nearly
    so, a round each, in directions of which every second is opposite to the one before, and goes on
    from one that leads lower.

    >>> from didyma import LatentSVMRanker
    >>> X = np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]])
    >>> ranker = LatentSVMRanker(C=10.0).fit(X, [1, 0, 1, 0], qid=[0, 0, 1, 1])  # which uses it
    >>> bool((np.diff(ranker.objective_trace_) <= 1e-9).all())
    True
    """

    tol: float = 1e-3
    max_iter: int = 100
    inner: Any = field(default_factory=OneSlack)
    reuse: bool = True
    from_start: bool = False
    ties: int = 0
    least_gain: float | None = None

    def solve(
        self,
        problem: LatentProblem,
        C: float,
        *,
        start: Vector | None = None,
        known: Rounds | None = None,
        random_state: int = 0,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise J from the completions at ``start``, or from the problem's own first ones.

        The value is never above that at ``start``. ``known``, the state of an earlier solution of
        the same problem for any C, lends its cuts.
        """
        clock, rng = Clock(), np.random.default_rng(random_state)
        with clock.stage("complete"):
            w = np.zeros(problem.n_features) if start is None else start.copy()
            total = problem.begin(rng) if start is None else problem.complete(w)
            value = _objective(problem, C, w)
        first = Round(0, 0.0, C, value, 0.0, False, clock.elapsed, w, value)
        rounds = deepcopy(known)  # what an earlier run has returned stays as it is
        if rounds is None:
            rounds = Rounds(Solution(w, Result.of(first, "stopped", clock)), total)
        rounds.move(w, self._gold(problem, total))
        rounds.trace, rounds.escapes = [], 0
        steps = self._steps(problem, C, rounds, value, rng, clock)
        if self.from_start:
            steps = chain([first], steps)
        progress, status = drive(steps, None, callback)
        progress = progress or first
        ended = status == "limit" and progress.n_iter < self.max_iter  # by a rule of its own
        if ended and rounds.convex.result.converged:
            status = "converged"
        return Solution(progress.w, Result.of(progress, status, clock), rounds)

    def _steps(
        self,
        problem: LatentProblem,
        C: float,
        rounds: Rounds,
        value: float,
        rng: np.random.Generator,
        clock: Clock,
    ) -> Iterator[Progress]:
        w, passes = rounds.convex.w, 0.0
        tol, tries, aside = max(LOOSEST, self.tol), 0, w
        for n_iter in range(1, self.max_iter + 1):
            with clock.stage("convex"):
                inner = replace(self.inner, tol=tol)
                rounds.convex = inner.solve(problem, C, start=rounds.convex)
            convex = rounds.convex.result
            if convex.status == "interrupted":
                raise KeyboardInterrupt  # to `drive`, which keeps the round before
            passes += convex.passes
            before = value
            with clock.stage("complete"):
                if convex.value <= value:  # or else it was solved too loosely to gain anything
                    w = rounds.convex.w
                total = problem.complete(w)
                value = _objective(problem, C, w)
            rounds.trace.append(value)
            yield Round(n_iter, passes, C, value, convex.dual, True, clock.elapsed, w, convex.value)
            gain = (before - value) / value if value > 0.0 else 0.0
            if gain <= (self.tol if self.least_gain is None else self.least_gain):
                if tol <= self.tol or convex.gap <= reached(self.tol) * convex.value:
                    if tries == self.ties:
                        return
                    tries += 1
                    aside = -aside if tries % 2 == 0 else rng.standard_normal(w.shape)
                    with clock.stage("complete"):
                        total = problem.complete(_nearby(w, aside))
                tol = self.tol
            else:
                rounds.escapes += tries > 0
                tries = 0
                tol = min(tol, max(self.tol, SHARE * gain))
            if not self.reuse:
                rounds.convex = replace(rounds.convex, state=None)
            rounds.move(w, self._gold(problem, total))

    def _gold(self, problem: Any, total: Vector) -> Vector:
        """What cuts are relative to: Ψ* of each example, or row, if these have planes."""
        if isinstance(self.inner, RowBCFW):
            return problem.gold_rows()
        return problem.golds() if isinstance(self.inner, BCFW) else total


def inner_solver(name: str) -> Any:
    """The solver of a round's convex problem, by name; its tolerance is that of the round.

    >>> inner_solver("bundle")
    ProximalBundle(tol=0.001, max_iter=1000, mu=1.0)
    """
    check_choice(name, INNER, "solver")
    return INNER[name]()


@dataclass(frozen=True)
class LatentResult(Result):
    """How the best of several runs ended.

    ``values`` are the objectives of all runs, and ``kept`` is the number of the best, from 0, which
    the rest is about; ``escapes`` says how often it went on from a tied completion.
    """

    kept: int = 0
    values: tuple[float, ...] = ()
    escapes: int = 0


def best_of(runs: Iterable[Solution]) -> Solution:
    """The run of CCCP with the lowest objective; one that was stopped is the last."""
    done: list[Solution] = []
    for run in runs:
        done.append(run)
        if run.result.status in ("interrupted", "stopped"):
            break
    values = [run.result.value for run in done]
    kept = int(np.argmin(values))
    best = done[kept]
    result = LatentResult(
        **vars(best.result), kept=kept, values=tuple(values), escapes=best.state.escapes
    )
    return replace(best, result=result)


def _nearby(w: Vector, aside: Vector) -> Vector:
    """Weights that break the ties of w in favour of a direction."""
    length = float(np.linalg.norm(w))
    return aside if length == 0.0 else w + NEARBY * length / float(np.linalg.norm(aside)) * aside


def _objective(problem: LatentProblem, C: float, w: Vector) -> float:
    return 0.5 * float(w @ w) + C * float(problem.weights @ problem.risks(w))
