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
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from didyma.learning.bcfw import BCFW
from didyma.learning.cut_pool import CutPool
from didyma.learning.cutting_plane import OneSlack
from didyma.learning.plane_dual import PlaneDual
from didyma.learning.problem import Problem
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive

__all__ = ["CCCP", "LatentProblem", "Round", "Rounds"]

Vector = NDArray[np.float64]

LOOSEST = 0.05  # relative gap of the first round
SHARE = 0.1  # gap of a round, as a share of what the round before gained


class LatentProblem(Problem, Protocol):
    """A problem whose Ψ*_i depend on the weights of a round.

    With BCFW as inner solver it needs ``golds()`` too: Ψ*_i of each example, as rows.
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
    """Where a run stands: a solution of the last convex problem, and the Ψ* that it refers to."""

    convex: Solution
    gold: Vector

    def move(self, w: Vector, gold: Vector) -> None:
        """Go on at other weights and Ψ*, with all cuts moved along, if they can be."""
        state = self.convex.state
        if isinstance(state, (CutPool, PlaneDual)):
            state.shift(self.gold - gold)
        else:
            state = None
        self.convex, self.gold = replace(self.convex, w=w, state=state), gold


@dataclass(frozen=True)
class CCCP:
    """Rounds of completion and convex minimisation until a round gains less than ``tol``.

    ``tol`` is relative to the objective, and is also the relative gap of the last rounds; the first
    ones are solved loosely. ``max_iter`` limits the rounds; ``inner`` solves one. Without ``reuse``
    every round starts with no cuts, for comparison; ``from_start`` reports the start as round 0.
    """

    tol: float = 1e-3
    max_iter: int = 100
    inner: Any = field(default_factory=OneSlack)
    reuse: bool = True
    from_start: bool = False

    def solve(
        self,
        problem: LatentProblem,
        C: float,
        *,
        start: Vector | None = None,
        known: Rounds | None = None,
        seed: int = 0,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise J from the completions at ``start``, or from the problem's own first ones.

        The value is never above that at ``start``. ``known``, the state of an earlier solution of
        the same problem for any C, lends its cuts.
        """
        clock = Clock()
        with clock.stage("complete"):
            w = np.zeros(problem.n_features) if start is None else start.copy()
            if start is None:
                total = problem.begin(np.random.default_rng(seed))
            else:
                total = problem.complete(w)
            value = _objective(problem, C, w)
        first = Round(0, 0.0, C, value, 0.0, False, clock.elapsed, w, value)
        rounds = deepcopy(known)  # what an earlier run has returned stays as it is
        if rounds is None:
            rounds = Rounds(Solution(w, Result.of(first, "stopped", clock)), total)
        rounds.move(w, self._gold(problem, total))
        steps = self._steps(problem, C, rounds, value, clock)
        if self.from_start:
            steps = chain([first], steps)
        progress, status = drive(steps, -1.0, callback)
        progress = progress or first
        if status == "limit" and progress.n_iter < self.max_iter:
            status = "converged"
        return Solution(progress.w, Result.of(progress, status, clock), rounds)

    def _steps(
        self, problem: LatentProblem, C: float, rounds: Rounds, value: float, clock: Clock
    ) -> Iterator[Progress]:
        w, passes = rounds.convex.w, 0.0
        tol = max(LOOSEST, self.tol)
        for n_iter in range(1, self.max_iter + 1):
            with clock.stage("convex"):
                convex = replace(self.inner, tol=tol).solve(problem, C, start=rounds.convex)
            rounds.convex, found = convex, convex.result
            if found.status == "interrupted":
                raise KeyboardInterrupt  # to `drive`, which keeps the round before
            passes += found.passes
            before = value if n_iter > 1 else np.inf
            with clock.stage("complete"):
                if found.value <= value:  # or else it was solved too loosely to gain anything
                    w = convex.w
                total = problem.complete(w)
                value = _objective(problem, C, w)
            yield Round(n_iter, passes, C, value, found.dual, True, clock.elapsed, w, found.value)
            gain = (before - value) / value if value > 0.0 else 0.0
            if gain <= self.tol:
                if tol <= self.tol:
                    return
                tol = self.tol
            elif np.isfinite(gain):
                tol = min(tol, max(self.tol, SHARE * gain))
            if not self.reuse:
                rounds.convex = replace(convex, state=None)
            rounds.move(w, self._gold(problem, total))

    def _gold(self, problem: Any, total: Vector) -> Vector:
        """What cuts are relative to: Ψ* of each example if they are kept one by one."""
        return problem.golds() if type(self.inner) is BCFW else total


def _objective(problem: LatentProblem, C: float, w: Vector) -> float:
    return 0.5 * float(w @ w) + C * float(problem.weights @ problem.risks(w))
