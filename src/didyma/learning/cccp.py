"""CCCP: latent structural SVMs by a sequence of convex ones (Yu & Joachims 2009).

    J(w) = ½‖w‖² + C Σ_i c_i ( max_{y,h} [Δ_i(y) + w·Ψ_i(y, h)] − max_h w·Ψ_i(y_i, h) )

is a difference of convex functions. Each round completes the gold outputs at the current weights,
which replaces the second maximum by a linear function that touches it there, and minimises what is
left: an ordinary problem. J never increases if inference is exact.

Cuts survive a round. With F_k = Σ_i c_i Ψ_i(ŷ_i) and v = Σ_i c_i Ψ*_i a cut's direction is F_k − v,
so after a completion all of them shift by the difference of the v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from didyma.learning.cut_pool import CutPool
from didyma.learning.cutting_plane import OneSlack
from didyma.learning.problem import Problem
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive

__all__ = ["CCCP", "LatentProblem"]

Vector = NDArray[np.float64]

LOOSEST = 0.05  # relative gap of the first round
SHARE = 0.1  # gap of a round, as a share of what the round before gained


class LatentProblem(Problem, Protocol):
    """A problem whose gold outputs have a latent part."""

    def begin(self, rng: np.random.Generator) -> Vector:
        """Choose first completions; returns Σ_i c_i Ψ*_i."""
        ...

    def complete(self, w: Vector) -> Vector:
        """Complete the gold outputs at w; returns Σ_i c_i Ψ*_i."""
        ...


@dataclass(frozen=True)
class CCCP:
    """Rounds of completion and convex minimisation until a round gains less than ``tol``.

    ``tol`` is relative to the objective, and is also the relative gap of the last rounds; the first
    ones are solved loosely. ``max_iter`` limits the rounds, ``max_inner`` the cuts of one. Without
    ``reuse`` every round starts with no cuts, for comparison.
    """

    tol: float = 1e-3
    max_iter: int = 100
    max_inner: int = 1000
    reuse: bool = True

    def solve(
        self,
        problem: LatentProblem,
        C: float,
        *,
        start: Vector | None = None,
        seed: int = 0,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise J from the completions at ``start``, or from the problem's own first ones."""
        clock = Clock()
        rng = np.random.default_rng(seed)
        steps = self._steps(problem, C, start, rng, clock)
        progress, status = drive(steps, -1.0, callback)
        if progress is None:
            w = np.zeros(problem.n_features) if start is None else start
            progress = Progress(0, 0.0, C, np.inf, 0.0, False, clock.elapsed, w)
        if status == "limit" and progress.n_iter < self.max_iter:
            status = "converged"
        return Solution(progress.w, Result.of(progress, status, clock))

    def _steps(
        self,
        problem: LatentProblem,
        C: float,
        start: Vector | None,
        rng: np.random.Generator,
        clock: Clock,
    ) -> Iterator[Progress]:
        gold = problem.begin(rng) if start is None else problem.complete(start)
        w = np.zeros(problem.n_features) if start is None else start
        known: Solution | None = None
        value, passes = np.inf, 0.0
        tol = max(LOOSEST, self.tol)
        for n_iter in range(1, self.max_iter + 1):
            inner = OneSlack(tol=tol, max_iter=self.max_inner)
            with clock.stage("convex"):
                known = inner.solve(problem, C, start=known, at=w)
            w = known.w
            passes += known.result.passes
            with clock.stage("complete"):
                completed = problem.complete(w)
                risk = float(problem.weights @ problem.risks(w))
            before, value = value, 0.5 * float(w @ w) + C * risk
            yield Progress(n_iter, passes, C, value, known.result.dual, False, clock.elapsed, w)
            gain = (before - value) / value if value > 0.0 else 0.0
            if gain <= self.tol:
                if tol <= self.tol:
                    return
                tol = self.tol
            elif np.isfinite(gain):
                tol = min(tol, max(self.tol, SHARE * gain))
            pool = known.state
            if self.reuse and isinstance(pool, CutPool):
                pool.shift(gold - completed)
            else:
                known = None
            gold = completed
