"""Block-coordinate Frank-Wolfe: the fast learner on one machine.

It maximises the dual of J example by example (Lacoste-Julien et al. 2013). Visiting an example
costs one cut of it, and for rankings that is one trip of its rows through the cache. The few
planes that are remembered of each example make every visit exact over them, and allow passes that
call no oracle at all as long as those pay better than a real one (after Shah et al. 2015).
Examples with small gaps are visited less often (after Osokin et al. 2016).

It ascends one example at a time, which creeps where few features tie the examples to each other and
C is large. So when passes stop paying, the mean of all planes becomes the first cut of `OneSlack`,
which weighs what it finds jointly: its bound begins at the dual of these passes.

Planes are stored without C, so that the dual of one C is a feasible start for the next: w scales
by C'/C and the rest stays; a few passes over planes alone settle them at C', and examples with
small gaps at C may wait. Where these passes find little to do, w is certified at once, and often
that is all. A large C is approached in stages this way, in far fewer passes than from zero, and a
path over eight values costs about two fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma._core.learning import insert, sweep, sweep_planes
from didyma.errors import DataError
from didyma.learning.cutting_plane import OneSlack, OneSlackRun
from didyma.learning.problem import Cut, Problem, cut_oracle, signs_of
from didyma.learning.solution import (
    Clock,
    ConvexSolver,
    Progress,
    Solution,
    SolverRun,
    check_C,
    check_finite,
    overflow,
    reached,
)
from didyma.stateful import Stateful, array_of

Vector = NDArray[np.float64]

NEIGHBOURS = 8
RUNS = 1000  # of neighbours, at most: rows that do not fit into memory are read in long runs
MANY_PLANES = 5  # remembered per example ...
CHEAP_PLANES = 32  # ... or so many of all examples together
CHEAP_PASSES = 20
SETTLING = 3  # passes over planes alone at a new C, before the oracle is asked
SETTLED = 0.5  # tolerances: planes whose gap at a new C is no larger have little to settle ...
PROBE = 20  # ... and then every so manieth example tells whether w may be optimal
LOOK = 2.0  # certify at an estimated gap of so many tolerances: it dates from before each visit
EASY, GROWTH = 48.0, 8.0  # first stage of a run, and factor between stages
PATIENCE = 10  # passes in which the gap should halve, or they no longer pay
SAMPLE = 50  # examples in each of two samples, by which the first stage is chosen
ROUNDING = 1e-6  # more than weights on a simplex can lose
MEMORY = 0.1  # planes may take this share of the data's memory ...
FREE_MEMORY = 2**24  # ... or this many bytes, which nobody misses


@dataclass
class PlaneDual(Stateful):
    """Planes g·w + b of each example with weights α on its simplex:  w = −Σ_i s_i Σ_k α_ik g_ik.

    Planes are stored without the scales s_i = C c_i. So for another C the same α stay feasible, and
    only w changes.
    """

    g: Vector  # (examples, slots, features)
    b: Vector
    alpha: Vector
    gram: Vector
    size: NDArray[np.int64]  # slots in use
    scales: Vector
    gaps: Vector  # of each example when it was last looked at; infinite before
    w: Vector
    C: float

    _changing: ClassVar[tuple[str, ...]] = (
        *("g", "b", "alpha", "gram", "size", "scales", "gaps", "w", "C"),
    )
    _growing: ClassVar[tuple[str, ...]] = ("g", "b", "alpha", "gram")
    _unbounded: ClassVar[tuple[str, ...]] = ("gaps",)

    def check_state(self) -> None:
        """Refuse sizes that differ, slots that are not there, and α off the simplex."""
        n, slots = len(self.scales), self.g.shape[1]
        array_of(self.g, "g", (n, slots, len(self.w)))
        array_of(self.b, "b", (n, slots))
        array_of(self.gram, "gram", (n, slots, slots))
        array_of(self.scales, "scales", (n,), low=0.0)
        array_of(self.size, "size", (n,), np.int64, low=1, high=slots)
        check_simplex(self.alpha, (n, slots))
        if self.alpha[np.arange(slots) >= self.size[:, None]].any():
            raise ValueError("alpha should be 0 where there is no plane")
        check_C(self.C)

    @classmethod
    def zero(cls, scales: Vector, n_features: int, n_planes: int, C: float) -> PlaneDual:
        """Start at w = 0."""
        n = len(scales)
        return cls(
            g=np.zeros((n, n_planes, n_features)),
            b=np.zeros((n, n_planes)),
            alpha=first_plane(n, n_planes),
            gram=np.zeros((n, n_planes, n_planes)),
            size=np.ones(n, dtype=np.int64),
            scales=scales,
            gaps=np.full(n, np.inf),
            w=np.zeros(n_features),
            C=C,
        )

    def move_to(self, C: float) -> None:
        """Go on with another C: α stays feasible, w is proportional to C."""
        ratio = C / self.C
        self.scales = self.scales * ratio
        self.w *= ratio
        self.gaps[:] = np.inf
        self.C = C

    def shift(self, moves: Vector) -> None:
        """Move every plane of example i by ``moves[i]``, when its Ψ*_i has moved the other way.

        α stays feasible. The plane of the former Ψ*_i moves too: it is now that of an output like
        any other.
        """
        self.g += moves[:, None, :]
        self.gram = self.g @ self.g.transpose(0, 2, 1)
        self.w -= self.scales @ moves
        self.gaps[:] = np.inf

    @property
    def planes(self) -> tuple[Any, ...]:
        """Arrays in the order in which kernels take them."""
        return self.g, self.b, self.alpha, self.gram, self.size

    @property
    def v(self) -> Vector:
        """−Σ_i s_i Σ_k α_ik g_ik, which is w, as all weights are allowed."""
        return self.w

    def set_v(self, v: Vector) -> None:
        """Replace v by the sum over this dual and those of other shards."""
        self.w = v.copy()

    def mean(self) -> Cut:
        """The cut of all examples whose direction is −w / C: its bound is the dual objective."""
        return Cut(-self.w / self.C, self.linear_part() / self.C)

    def linear_part(self) -> float:
        """Linear part of the dual objective: Σ s_i α_i·b_i."""
        return float(self.scales @ (self.alpha * self.b).sum(axis=1))

    def value(self) -> float:
        """Dual objective: Σ s_i α_i·b_i − ½‖w‖²."""
        return self.linear_part() - float(0.5 * self.w @ self.w)

    def certify(self, risks: Vector) -> float:
        """Primal objective at w, given each example's risk; the gaps are renewed with it."""
        self.gaps[:] = self.scales * (risks - (self.alpha * (self.b + self.g @ self.w)).sum(axis=1))
        return float(0.5 * self.w @ self.w + self.scales @ risks)

    def sweep(self, order: NDArray[np.int64]) -> tuple[float, float]:
        """Optimise the examples in `order` over their planes: (gap before, increase)."""
        return sweep_planes(order, self.planes, self.scales, self.w)

    def add(self, i: int, cut: Cut) -> None:
        """Remember a plane without forgetting any."""
        if self.size[i] == self.g.shape[1]:
            self._double()
        insert(self.planes, i, cut.direction, cut.loss)

    def slack(self, i: int) -> float:
        """Largest remembered plane of an example at w."""
        n = self.size[i]
        return float(np.max(self.b[i, :n] + self.g[i, :n] @ self.w))

    def _double(self) -> None:
        none, more = (0, 0), (0, self.g.shape[1])
        self.g = np.pad(self.g, (none, more, none))
        self.b, self.alpha = np.pad(self.b, (none, more)), np.pad(self.alpha, (none, more))
        self.gram = np.pad(self.gram, (none, more, more))


def first_plane(n_examples: int, n_planes: int) -> Vector:
    """Weights α that are all on the plane of the gold output, which is zero."""
    alpha = np.zeros((n_examples, n_planes))
    alpha[:, 0] = 1.0
    return alpha


def check_simplex(alpha: Vector, shape: tuple[int, int]) -> None:
    """Raise a ValueError unless each row is on the simplex, up to rounding."""
    array_of(alpha, "alpha", shape, low=-ROUNDING)
    if not np.allclose(alpha.sum(axis=1), 1.0, rtol=0.0, atol=ROUNDING):
        raise ValueError("alpha should add up to 1 for each example")


class _BCFWRun(SolverRun):
    """The dual, the values of C ahead, and whether the next one is due."""

    _changing: ClassVar[tuple[str, ...]] = (
        *("dual", "rng", "clock", "stages", "staged", "passes", "n_iter", "due", "mark", "since"),
        *("cuts", "alone"),
    )
    _unbounded: ClassVar[tuple[str, ...]] = ("mark",)
    _lasting = "dual"

    def __init__(self, dual: Any, C: float, random_state: int, signs: Vector | None) -> None:
        super().__init__()
        self.dual, self.rng = dual, np.random.default_rng(random_state)
        self.stages, self.due = [C], True
        self.passes = 0.0
        self.staged = False  # whether a large C is approached in stages
        # Cuts of all examples, once passes no longer pay, and whether they are without the mean.
        self.alone = False
        self.cuts = OneSlackRun(len(dual.w), clock=self.clock, signs=signs)
        self.mark, self.since = np.inf, 0  # the gap when it last halved, and iterations since then

    def next_stage(self) -> None:
        """Move to the next value of C."""
        self.dual.move_to(self.stages.pop(0))
        self.due, self.mark, self.since = False, np.inf, 0

    def watch(self, gap: float) -> None:
        """Count the iterations since the gap last halved."""
        if gap < 0.5 * self.mark:
            self.mark, self.since = gap, 0
        self.since += 1

    @property
    def joined(self) -> bool:
        """Whether cuts of all examples have taken over."""
        return self.alone or len(self.cuts.pool.losses) > 1

    @property
    def stalled(self) -> bool:
        """Whether passes no longer pay."""
        return self.since > PATIENCE

    def check_state(self) -> None:
        """Refuse stages that are no values of C, or missing where one is due; negative counts."""
        for C in self.stages:
            check_C(C)
        if self.due and not self.stages:
            raise ValueError("stages should have the value of C that is due")
        if self.passes < 0.0 or self.since < 0:
            raise ValueError("passes should be from 0 on")


@dataclass(frozen=True)
class BCFW(ConvexSolver["_BCFWRun"]):
    """Minimise J to a relative duality gap of ``tol``.

    ``n_planes`` remembered per example (None: five, 32 for a single example, or as many as fit into
    a tenth of the data's memory); ``random_state`` orders the visits.

    >>> from didyma.learning.problem import OneHinge
    >>> BCFW().solve(OneHinge(), C=10.0).w.round(2)
    array([0.2, 0.4])
    """

    tol: float = 1e-3
    max_passes: int = 1000
    n_planes: int | None = None
    random_state: int = 0

    def _begin(self, problem: Problem, C: float, start: Solution | None) -> _BCFWRun:
        dual = self._dual(problem, C, start)
        run = _BCFWRun(dual, C, self.random_state, signs_of(problem))
        run.staged = start is None or start.state is None
        run.passes = float(run.staged and run.dual.w.any())  # which the planes at a start took
        return run

    def _certified(
        self, problem: Problem, C: float, run: _BCFWRun, progress: Progress | None
    ) -> Progress:
        if progress is not None and (progress.certified or run.joined):
            return super()._certified(problem, C, run, progress)
        run.dual.move_to(C)  # the run may have ended at an earlier stage
        n_iter, passes = (progress.n_iter, progress.passes) if progress else (0, 0.0)
        return check_finite(self._certify(problem, run.dual, n_iter, passes, run.clock))

    def _dual(self, problem: Problem, C: float, start: Solution | None) -> PlaneDual:
        if start is not None and isinstance(start.state, PlaneDual):
            return deepcopy(start.state)
        dual = self.begin(problem, C)
        if start is not None and start.state is None and start.w.any():
            for i in range(problem.n_examples):
                dual.add(i, problem.cut(start.w, i))
            for _ in range(CHEAP_PASSES):
                dual.sweep(np.arange(problem.n_examples))
        return dual

    def begin(self, problem: Problem, C: float) -> PlaneDual:
        """The dual at w = 0."""
        n_planes = self._planes_for(problem)
        return PlaneDual.zero(C * problem.weights, problem.n_features, n_planes, C)

    def advance(
        self, problem: Problem, dual: PlaneDual, rng: np.random.Generator, clock: Clock
    ) -> float:
        """A pass over the examples with large gaps and some of the others; returns their share."""
        order = self._choose(dual.gaps, rng)
        self._pass(problem, dual, order, rng, clock)
        return len(order) / problem.n_examples

    def _steps(self, problem: Problem, C: float, run: _BCFWRun) -> Iterator[Progress]:
        dual, clock, tol = run.dual, run.clock, reached(self.tol)
        if run.n_iter == 0 and run.due and (run.staged or not dual.w.any()):
            with clock.stage("stages"):
                run.stages, passes = self._stages(problem, C)
                run.passes += passes
        while not run.stalled or run.stages:
            if run.n_iter > 0 and run.passes >= self.max_passes:
                return
            if run.due:
                gaps, C_before = dual.gaps.copy(), dual.C
                run.next_stage()
                if not run.staged and self._settle(problem, dual, gaps * (dual.C / C_before)):
                    certified = self._certify(problem, dual, run.n_iter, run.passes, clock)
                    run.passes = certified.passes
                    yield certified
            run.passes += self.advance(problem, dual, run.rng, clock)
            run.n_iter += 1
            lower = dual.value()
            value = lower + float(dual.gaps.sum())  # each as it was when its example was visited
            done = value - lower <= (tol if run.stages else LOOK * tol) * value
            if done and not run.stages:
                certified = self._certify(problem, dual, run.n_iter, run.passes, clock)
                run.passes = certified.passes
                run.watch(certified.gap)
                yield certified
                continue
            run.watch(value - lower)
            run.due = bool(run.stages) and (done or run.stalled)
            if run.stages and run.passes >= self.max_passes / 2:
                run.stages = run.stages[-1:]  # what is left belongs to the C that was asked for
                run.due = True
            w = dual.w.copy()
            yield run.report(dual.C, value, lower, w, passes=run.passes, certified=False)
        yield from self._join(problem, C, run)

    def _settle(self, problem: Problem, dual: PlaneDual, gaps: Vector) -> bool:
        """Optimise over remembered planes at a new C; returns whether w may be optimal by then.

        Old gaps tell which examples may wait.
        """
        dual.gaps[:] = gaps
        before = [dual.sweep(np.arange(len(dual.scales)))[0] for _ in range(SETTLING)]
        tol = self.tol * dual.value()
        return before[0] <= SETTLED * tol and self._probe(problem, dual) <= tol

    @staticmethod
    def _probe(problem: Problem, dual: PlaneDual) -> float:
        """An estimate of the duality gap at w, from a few examples."""
        probed = np.arange(PROBE // 2, problem.n_examples, PROBE)
        risks = np.array([problem.cut(dual.w, int(i)).at(dual.w) for i in probed])
        below = (dual.alpha[probed] * (dual.b[probed] + dual.g[probed] @ dual.w)).sum(axis=1)
        return PROBE * float(dual.scales[probed] @ (risks - below))

    def _join(self, problem: Problem, C: float, run: _BCFWRun) -> Iterator[Progress]:
        """Go on with cuts of all examples, of which the mean of all planes is the first.

        That is short where others are long, and may hide what tells these apart: once it leads no
        further, they go on without it.
        """
        if not run.joined:
            run.cuts.pool.add(run.dual.mean())
            run.cuts.w = run.dual.w.copy()
        while run.passes < self.max_passes:
            limit, passes = max(1, int(self.max_passes - run.passes)), 0.0
            for progress in OneSlack(self.tol, limit)._steps(problem, C, run.cuts):
                n_iter, passes = run.n_iter + progress.n_iter, progress.passes
                yield replace(progress, n_iter=n_iter, passes=run.passes + passes)
            if run.alone or not run.cuts.exhausted:
                return
            run.n_iter += run.cuts.n_iter
            run.passes += passes
            run.alone, run.cuts = True, run.cuts.anew()

    def _pass(
        self,
        problem: Problem,
        dual: PlaneDual,
        order: NDArray[np.int64],
        rng: np.random.Generator,
        clock: Clock,
    ) -> None:
        """Visit the examples of ``order``, then go over remembered planes alone while that pays.

        It pays while it gains more per unit of work than the pass so far.
        """
        with clock.stage("oracle"):
            gain = sweep(*(cut_oracle(problem), order, dual.planes, dual.scales, dual.gaps, dual.w))
        cost = problem.cut_cost * len(order)
        with clock.stage("planes"):
            for _ in range(CHEAP_PASSES):
                _, more = dual.sweep(rng.permutation(problem.n_examples))
                work = float(dual.size.sum())
                if more * cost <= gain * work:
                    break
                gain, cost = gain + more, cost + work

    @staticmethod
    def _stages(problem: Problem, C: float) -> tuple[list[float], float]:
        """Values of C to go through on the way to a large one, and the passes this look costs.

        What is large: many times b / ‖g‖², the C at which the first cut alone, b + g·w, is overcome
        by its own minimiser. Of many examples a sample tells that.
        """
        loss, norm, passes = _first_cut(problem)
        stages = [C]
        if not np.isfinite(C * norm):
            raise overflow(C)
        while 0.0 < EASY * loss < stages[0] * norm:
            stages.insert(0, stages[0] / GROWTH)
        return stages, passes

    @staticmethod
    def _certify(
        problem: Problem, dual: PlaneDual, n_iter: int, passes: float, clock: Clock
    ) -> Progress:
        """Evaluate the primal objective, which bounds the gap: a pass that reads each row once."""
        with clock.stage("certificate"):
            value = dual.certify(problem.risks(dual.w))
        lower = dual.value()
        w = dual.w.copy()  # which the next pass would move
        return Progress(n_iter, passes + 1.0, dual.C, value, lower, True, clock.elapsed, w)

    def _planes_for(self, problem: Problem) -> int:
        vectors = 8 * problem.n_examples * problem.n_features
        data = vectors * problem.cut_cost
        if self.n_planes is not None:
            return max(self.n_planes, 2)
        many = max(MANY_PLANES, CHEAP_PLANES // max(problem.n_examples, 1))
        count = max(2, min(many, int(max(MEMORY * data, FREE_MEMORY) // vectors)))
        if count * vectors > max(2 * data, 2**30):
            raise DataError(
                f"BCFW keeps at least two vectors of {problem.n_features} features for each of "
                f"{problem.n_examples} queries: {count * vectors / 2**30:.1f} GiB; "
                "use solver='one-slack' for data as wide and sparse as this"
            )
        return count

    @staticmethod
    def _choose(gaps: Vector, rng: np.random.Generator) -> NDArray[np.int64]:
        """Visit an example with a probability proportional to its gap, at least one in ten.

        A few neighbours at a time, as their rows follow each other in memory, and many where
        examples are so many that they may have to be read from disk; where they are few, one by
        one.
        """
        mean = gaps.mean()
        chosen = np.arange(len(gaps))
        if np.isfinite(mean) and mean > 0.0:
            chosen = np.flatnonzero(rng.random(len(gaps)) < np.maximum(gaps / mean, 0.1))
        together = max(min(NEIGHBOURS, 1 + len(chosen) // 100), len(chosen) // RUNS)
        firsts = rng.permutation(np.arange(0, len(chosen), together))
        places = (firsts[:, None] + np.arange(together)).ravel()
        return chosen[places[places < len(chosen)]]


def _first_cut(problem: Problem) -> tuple[float, float, float]:
    """Loss b and ‖g‖² of the cut of all examples at w = 0, and the passes that it takes.

    Of many examples two samples are looked at. The product of their cuts estimates ‖g‖² without
    the noise that a norm would add.
    """
    n, zero = problem.n_examples, np.zeros(problem.n_features)
    if n <= 2 * SAMPLE:
        cut = problem.cut_all(zero)
        return cut.loss, float(cut.direction @ cut.direction), 1.0
    loss, directions = 0.0, np.zeros((2, problem.n_features))
    sample = np.linspace(0, n - 1, 2 * SAMPLE).astype(np.int64)
    for k, i in enumerate(sample):
        cut, share = problem.cut(zero, int(i)), n / SAMPLE * problem.weights[i]
        directions[k % 2] += share * cut.direction
        loss += 0.5 * share * cut.loss
    return float(loss), float(directions[0] @ directions[1]), 2 * SAMPLE / n
