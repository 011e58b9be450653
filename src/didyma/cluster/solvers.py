"""Solvers that work on all shards at once: CoCoA for a structural SVM, and a perceptron.

`CoCoA` is block-coordinate Frank-Wolfe on each shard (CoCoA+, Ma et al. 2015).

With K shards, whose dual variables α_k add v_k to the common v, and s = K, a worker maximises

    s Σ_i C c_i α_i·b_i − ½‖P(v + s Δv_k)‖²

over its own α_k, from the common v: the dual of its own examples, all scales times s. That is BCFW,
unchanged. As ½‖P(·)‖² is convex, the mean of what the workers gain bounds from below what
v + Σ_k Δv_k gains, and no step has to be taken back.

A round is one question: each worker tells its cut at the common weights, then works on its dual,
and tells all of v_k and of its share of the dual. The cuts make the risk at these weights. With the
mean planes of all examples under α, which are cuts too, they bound the objective from below, better
than the dual of a round alone; the two certify a gap. Nothing has to be known about a worker that
was lost: its shard begins again at α = 0, and tells that.

`MixedPerceptron` is iterative parameter mixing (McDonald et al. 2010): in an epoch every worker
visits its examples from the common weights on; their weights at the end, in proportion to their
examples, are the next common ones. It returns the mean of all iterates, as the perceptron on one
machine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.problem import ShardedProblem, ShardState, added
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import CutPool, OneSlack
from didyma.learning.perceptron import Perceptron, PerceptronState
from didyma.learning.problem import Cut, clipped
from didyma.learning.solution import Callback, Clock, Progress, Result, Solution, drive

Vector = NDArray[np.float64]

PASSES = 3  # of a worker in a round: more save few rounds
STALLED = 0.7  # a round that leaves more of the gap is worth less than one of one-slack


@dataclass
class _Common:
    """What the workers share, as of the last round, and the cuts of all rounds."""

    v: Vector
    C: float
    cuts: CutPool
    begun: bool = False  # workers go on with the α that they have


@dataclass(frozen=True)
class CoCoA:
    """Minimise J over shards to the tolerance of ``inner``, by which workers solve their parts.

    A worker makes ``n_passes`` over its examples in a round. Where C is large, or shards have few
    examples for their number, rounds gain little, and `OneSlack` needs fewer. So a C that BCFW
    would approach in stages is left to it, and where a round gains little it goes on, from the
    weights and the bound that were reached: the mean plane of all examples under α is a cut.
    """

    inner: BCFW
    n_passes: int = PASSES

    @property
    def tol(self) -> float:
        """Relative gap at which training stops."""
        return self.inner.tol

    def solve(
        self,
        problem: ShardedProblem,
        C: float,
        *,
        start: Solution | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise ½‖w‖² + C R(w).

        ``start`` is the last solution of the same problem, for any other C, whose dual variables
        the workers still have.
        """
        clock, n_features = Clock(), problem.n_features
        common = _Common(np.zeros(n_features), C, CutPool(n_features, problem.weight_signs))
        if start is not None and isinstance(start.state, _Common):
            v = start.state.v * (C / start.state.C)
            common = _Common(v, C, deepcopy(start.state.cuts), begun=True)
        elif start is not None and isinstance(start.state, CutPool):
            return self._one_slack(problem, C, start, callback)
        elif len(self.inner._stages(problem, C)[0]) > 1:
            return self._one_slack(problem, C, None, callback)
        progress, status = drive(self._steps(problem, common, clock), self.tol, callback)
        if progress is None:  # interrupted before the first round was done
            w = clipped(common.v, problem.weight_signs)
            value = 0.5 * float(w @ w) + C * float(problem.weights @ problem.risks(w))
            progress = Progress(0, 1.0, C, value, 0.0, True, clock.elapsed, w)
        solution = Solution(progress.w.copy(), Result.of(progress, status, clock), common)
        if status != "limit":
            return solution
        solution = replace(solution, state=common.cuts)
        return self._one_slack(problem, C, solution, callback, before=solution.result)

    def _one_slack(
        self,
        problem: ShardedProblem,
        C: float,
        start: Solution | None,
        callback: Callback | None,
        before: Result | None = None,
    ) -> Solution:
        """Go on from there with cuts of all examples."""
        n_iter, passes, seconds = (
            (0, 0.0, 0.0)
            if before is None
            else (before.n_iter, before.passes, before.seconds["total"])
        )

        def told(progress: Progress) -> bool | None:
            return callback and callback(
                replace(
                    progress,
                    n_iter=progress.n_iter + n_iter,
                    passes=progress.passes + passes,
                    seconds=progress.seconds + seconds,
                )
            )

        solver = OneSlack(self.tol, self.inner.max_passes)
        solution = solver.solve(problem, C, start=start, callback=told)
        result = solution.result
        spent = {**result.seconds, "total": result.seconds["total"] + seconds}
        result = replace(
            result, n_iter=result.n_iter + n_iter, passes=result.passes + passes, seconds=spent
        )
        return replace(solution, result=result)

    def _steps(self, problem: ShardedProblem, common: _Common, clock: Clock) -> Iterator[Progress]:
        best, value, bound, gap = common.v, np.inf, -np.inf, np.inf
        passes, n_iter = 0.0, 0
        while n_iter == 0 or passes < self.inner.max_passes:
            w = clipped(common.v, problem.weight_signs)
            with clock.stage("workers"):
                risk, dual, visited = self._round(problem, common, n_iter)
            n_iter, passes = n_iter + 1, passes + 1.0 + visited
            if (objective := 0.5 * float(w @ w) + common.C * risk) < value:
                best, value = w, objective
            bound = max(bound, dual)
            yield Progress(n_iter, passes, common.C, value, bound, True, clock.elapsed, best)
            before, gap = gap, value - bound
            if gap > STALLED * before:
                return

    def _round(
        self, problem: ShardedProblem, common: _Common, number: int
    ) -> tuple[float, float, float]:
        """The risk at the common weights, a bound after the round, and passes that it took."""
        seed = (self.inner.random_state, number)
        answers = problem.workers.ask(
            *(_advance, self.inner, common.v, problem.n_examples, self.n_passes),
            *(seed, not common.begun),
            each=(common.C * problem.weights).tolist(),
        )
        cuts, parts, linear, passes = zip(*answers)
        cut = added(problem.weights, cuts)
        risk = cut.loss + float(cut.direction @ clipped(common.v, problem.weight_signs))
        common.v, common.begun = np.sum(parts, axis=0), True
        loss, w = float(np.sum(linear)), clipped(common.v, problem.weight_signs)
        common.cuts.add(cut)
        common.cuts.add(Cut(-common.v / common.C, loss / common.C))
        bound = max(loss - 0.5 * float(w @ w), common.cuts.minimiser(common.C)[1])
        common.cuts.forget()
        return risk, bound, float(np.mean(passes))


def _advance(
    part: ShardState,
    inner: BCFW,
    v: Vector,
    spread: float,
    n_passes: int,
    seed: tuple[int, int],
    anew: bool,
    C: float,
) -> tuple[Cut, Vector, float, float]:
    """The cut of a shard at the common v; then its v_k, its share of the dual, and passes made."""
    problem, scale, clock = part.problem, C * spread, Clock()
    dual: Any = part.dual
    if anew or dual is None:
        dual = part.dual = inner.begin(problem, scale)
        part.v = np.zeros(problem.n_features)
    assert part.v is not None
    if scale != dual.C:
        part.v = part.v * (scale / dual.C)
        dual.move_to(scale)
    dual.set_v(v)
    cut = problem.cut_all(dual.w)
    rng = np.random.default_rng(seed)
    passes = sum(inner.advance(problem, dual, rng, clock) for _ in range(n_passes))
    part.v = part.v + (dual.v - v) / spread
    return cut, part.v, dual.linear_part() / spread, passes


@dataclass(frozen=True)
class MixedPerceptron:
    """``epochs`` passes over the examples of all shards, shuffled by ``random_state``."""

    epochs: int = 10
    random_state: int = 0

    def solve(self, problem: ShardedProblem, *, callback: Callback | None = None) -> Solution:
        """Averaged weights."""
        clock = Clock()
        progress, status = drive(self._steps(problem, clock), None, callback)
        if progress is None:  # interrupted before the first epoch was done
            w = np.zeros(problem.n_features)
            progress = Progress(0, 0.0, 1.0, np.inf, 0.0, False, clock.elapsed, w)
        if status == "limit":
            status = "converged"  # all epochs were done
        return Solution(progress.w, Result.of(progress, status, clock))

    def _steps(self, problem: ShardedProblem, clock: Clock) -> Iterator[Progress]:
        w, total = np.zeros(problem.n_features), np.zeros(problem.n_features)
        seeds = np.random.default_rng(self.random_state).integers(2**31, size=self.epochs)
        for epoch, seed in enumerate(seeds.tolist(), 1):
            answers = problem.workers.ask(_epoch, w, seed)
            ends, means, losses = (np.array(parts) for parts in zip(*answers))
            w = problem.weights @ ends
            total += problem.weights @ means
            value = float(problem.weights @ losses)
            mean = total / epoch
            yield Progress(epoch, float(epoch), 1.0, value, 0.0, False, clock.elapsed, mean)


def _epoch(part: ShardState, w: Vector, seed: int) -> tuple[Vector, Vector, float]:
    """Weights at the end of an epoch from w on, their mean during it, and the mean loss."""
    solution = Perceptron(1, seed).solve(part.problem, start=PerceptronState(w))
    return solution.state.w, solution.w, solution.result.value
