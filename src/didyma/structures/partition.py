"""The k best outputs from nothing but an argmax, by splitting the set of outputs.

Whatever is not the best output lacks one of its parts, or has all of them and one more. So the rest
splits into sets that agree with it on the first parts and differ in the next, and the best of each
is an argmax with some parts forbidden and some forced (Lawler 1972, Murty 1968).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SUSPECT", "k_best"]

SUSPECT = 1e3  # scores so many times lower than the highest is high may be meant as masks

Floats = NDArray[np.float64]
Solve = Callable[[Floats], tuple[NDArray[np.int32], NDArray[np.bool_]]]
"""Parts (S, n_parts) of the best output at each row of scores (S, d), and whether it exists."""


class Cell(NamedTuple):
    """Outputs with all of the forced parts and none of the forbidden ones, and the best of them."""

    forced: frozenset[int]
    forbidden: frozenset[int]
    best: NDArray[np.int32]


def k_best(scores: Floats, solve: Solve, k: int) -> list[tuple[float, NDArray[np.int32]]]:
    """Scores and parts of the k best outputs, or of all, best first.

    Forced parts gain more than any two outputs differ by. Lest masks such as −1e30 make that so
    much that nothing else is left of a score, outputs with such parts are looked for only where
    they can be among the k best.
    """
    highest = scores.max(initial=0.0)
    low = scores < -SUSPECT * max(highest, 1.0)
    best = _enumerate(np.where(low, -np.inf, scores), solve, k)
    suspects = scores[low & (scores > -np.inf)]
    if not len(suspects):
        return best
    reachable = suspects.max() + scores[scores > 0.0].sum()
    if len(best) == k and best[-1][0] >= reachable:
        return best
    listed = {tuple(sorted(parts.tolist())) for _, parts in best}
    others = [
        one for one in _enumerate(scores, solve, k) if tuple(sorted(one[1].tolist())) not in listed
    ]
    return sorted(best + others, key=lambda one: -one[0])[:k]


def _enumerate(scores: Floats, solve: Solve, k: int) -> list[tuple[float, NDArray[np.int32]]]:
    parts, possible = solve(scores[None])
    if not possible[0]:
        return []
    finite = scores[scores > -np.inf]
    gain = 1.0 + 2.0 * parts.shape[1] * np.abs(finite).max(initial=0.0)
    order = count()
    best: list[tuple[float, NDArray[np.int32]]] = []
    queue: list[tuple[float, int, Cell]] = []

    def push(cells: list[tuple[frozenset[int], frozenset[int]]]) -> None:
        if not cells:
            return
        batch = np.tile(scores, (len(cells), 1))
        for row, (forced, forbidden) in zip(batch, cells):
            row[list(forced)] += gain
            row[list(forbidden)] = -np.inf
        rows, possible = solve(batch)
        for (forced, forbidden), row, exists in zip(cells, rows, possible):
            chosen = row[row >= 0]
            if exists and forced <= set(chosen.tolist()):
                total = float(scores[chosen].sum())
                heappush(queue, (-total, next(order), Cell(forced, forbidden, row)))

    push([(frozenset(), frozenset())])
    while queue and len(best) < k:
        negative, _, cell = heappop(queue)
        best.append((-negative, cell.best))
        if len(best) < k:
            push([*_without(cell), *_beyond(cell, scores, solve)])
    return best


def _without(cell: Cell) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Outputs of a cell that lack a part of its best one: the first that they lack tells which."""
    free = [int(p) for p in cell.best if p >= 0 and int(p) not in cell.forced]
    return [(cell.forced | set(free[:i]), cell.forbidden | {part}) for i, part in enumerate(free)]


def _beyond(
    cell: Cell, scores: Floats, solve: Solve
) -> list[tuple[frozenset[int], frozenset[int]]]:
    """Outputs of a cell that have all parts of its best one and more, by the first of these."""
    best = frozenset(int(p) for p in cell.best if p >= 0)
    others = [
        p for p in np.flatnonzero(scores > -np.inf).tolist() if p not in best | cell.forbidden
    ]
    probe = np.full(len(scores), -np.inf)  # the largest output that has all of them
    probe[others] = 1.0
    probe[list(best)] = 1.0 + len(scores)
    parts: Any
    parts, _ = solve(probe[None])
    if int((parts[0] >= 0).sum()) == len(best):
        return []
    return [(best | {part}, cell.forbidden | set(others[:i])) for i, part in enumerate(others)]
