"""The k best outputs from nothing but an argmax, by splitting the set of outputs.

Whatever is not the best output lacks one of its parts, or has all of them and one more. So the rest
splits into sets that agree with it on the first parts and differ in the next, and the best of each
is an argmax with some parts forbidden and some forced (Lawler 1972, Murty 1968).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.structures.layout import Floats, Layout, Parts
from didyma.structures.oracles import SUSPECT, best_outputs, total
from didyma.values import aligned

Solve = Callable[[Floats], tuple[Parts, NDArray[np.bool_], Floats]]
"""Of the best output at each row of scores (S, d): parts (S, n_parts), whether there is one, and
what its additional parts score."""
Listed = list[tuple[float, Parts]]
Constraints = tuple[frozenset[int], frozenset[int]]


class Cell(NamedTuple):
    """Outputs with all of the forced parts and none of the forbidden ones, and the best of them."""

    forced: frozenset[int]
    forbidden: frozenset[int]
    best: Parts


def k_best(scores: Floats, solve: Solve, k: int, spread: float, reads_infinity: bool) -> Listed:
    """Scores and parts of the k best outputs, or of all, best first.

    Two outputs differ in a part. ``spread`` is how much additional scores can differ by. Forced
    parts gain more than any two outputs differ by, and forbidden ones score −∞, or lose as much
    where an oracle cannot read −∞. Lest masks such as −1e30 make that so much that nothing else is
    left of a score, outputs with such parts are looked for only where they can be among the k best.
    """
    search = _Search(solve, k, spread, reads_infinity)
    highest = scores.max(initial=0.0)
    low = scores < -SUSPECT * max(highest, 1.0)
    best = search.run(scores, low)
    suspects = scores[low & (scores > -np.inf)]
    if not len(suspects):
        return best
    reachable = suspects.max() + scores[scores > 0.0].sum() + spread
    if len(best) == k and best[-1][0] >= reachable:
        return best
    listed = {tuple(sorted(parts.tolist())) for _, parts in best}
    others = [
        one
        for one in search.run(scores, scores == -np.inf)
        if tuple(sorted(one[1].tolist())) not in listed
    ]
    return sorted(best + others, key=lambda one: -one[0])[:k]


@dataclass(frozen=True)
class _Search:
    """The search, best cell first."""

    solve: Solve
    k: int
    spread: float
    reads_infinity: bool

    def run(self, scores: Floats, barred: NDArray[np.bool_]) -> Listed:
        """The k best of the outputs without a barred part."""
        scores = np.where(barred, 0.0, scores)
        gain = 1.0 + 2.0 * (float(np.abs(scores).sum()) + self.spread)
        order = count()
        best: Listed = []
        queue: list[tuple[float, int, Cell]] = []

        def push(cells: list[Constraints]) -> None:
            if not cells:
                return
            rows, possible, more = self.solve(
                np.array([self._constrained(scores, gain, *cell) for cell in cells])
            )
            for (forced, forbidden), row, exists, extra in zip(cells, rows, possible, more):
                chosen = row[row >= 0]
                parts = set(chosen.tolist())
                if exists and forced <= parts and not forbidden & parts:
                    total = float(scores[chosen].sum() + extra)
                    heappush(queue, (-total, next(order), Cell(forced, forbidden, row)))

        push([(frozenset(), frozenset(np.flatnonzero(barred).tolist()))])
        while queue and len(best) < self.k:
            negative, _, cell = heappop(queue)
            best.append((-negative, cell.best))
            if len(best) < self.k:
                push([*_without(cell), *self._beyond(cell, len(scores))])
        return best

    def _constrained(
        self, scores: Floats, gain: float, forced: frozenset[int], forbidden: frozenset[int]
    ) -> Floats:
        row = scores.copy()
        row[list(forced)] += gain
        places = list(forbidden)
        row[places] = -np.inf if self.reads_infinity else row[places] - gain
        return row

    def _beyond(self, cell: Cell, d: int) -> list[Constraints]:
        """Outputs of a cell that have all parts of its best one and more, by the first of these."""
        best = frozenset(int(p) for p in cell.best if p >= 0)
        others = [p for p in range(d) if p not in best | cell.forbidden]
        # the largest output that has all of them; what additional parts score must not decide
        probe = self._constrained(np.ones(d), 1.0 + 2.0 * d, best, cell.forbidden)
        probe *= 1.0 + 2.0 * self.spread
        parts, _, _ = self.solve(probe[None])
        if int((parts[0] >= 0).sum()) == len(best):
            return []
        return [(best | {part}, cell.forbidden | set(others[:i])) for i, part in enumerate(others)]


def _without(cell: Cell) -> list[Constraints]:
    """Outputs of a cell that lack a part of its best one: the first that they lack tells which."""
    free = [int(p) for p in cell.best if p >= 0 and int(p) not in cell.forced]
    return [(cell.forced | set(free[:i]), cell.forbidden | {part}) for i, part in enumerate(free)]


def k_best_outputs(
    oracle: Any, layout: Layout, k: int, reads_infinity: bool
) -> tuple[Parts, Floats]:
    """Parts (B, k, n_parts) and scores (B, k) of the k best outputs of each instance."""
    parts = np.full((len(layout), k, layout.n_parts), -1, np.int32)
    totals = np.full((len(layout), k), -np.inf)
    for b in range(len(layout)):
        one = layout.select([b])
        extra = one.extra[0]

        def solve(scores: Floats, one: Layout = one, extra: Floats = extra) -> Any:
            sizes = np.repeat(one.sizes, len(scores), axis=0)
            best, extra_parts, possible = best_outputs(
                oracle, replace(one, scores=aligned(scores), sizes=sizes)
            )
            return (
                best,
                possible,
                total(np.broadcast_to(extra, (len(best), len(extra))), extra_parts),
            )

        finite = np.abs(extra[extra > -np.inf])
        spread = layout.n_extra * float(finite.max(initial=0.0))
        for rank, (score, row) in enumerate(
            k_best(one.scores[0], solve, k, spread, reads_infinity)
        ):
            parts[b, rank], totals[b, rank] = row, score
    return parts, totals
