"""Knapsack: sets of items that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from didyma.errors import DataError
from didyma.structures.batches import check_one_each, check_whole
from didyma.structures.hypergraph import Hypergraph, Integers, Plan, Planned
from didyma.values import as_array


@dataclass(frozen=True)
class Knapsack(Planned):
    """Sets of items whose weights add up to at most the capacity, all of them whole numbers.

    Scores (B, n), one for each item; outputs boolean (B, n). O(n · capacity). Where instances have
    weights or capacities of their own, or these are no whole numbers, take `didyma.solvers.Milp`.

    >>> Knapsack(weights=[3, 2, 2], capacity=4).predict([4.0, 2.5, 2.0])
    array([False,  True,  True])
    """

    weights: Sequence[int]
    capacity: int

    ndim: ClassVar[int] = 1

    def __post_init__(self) -> None:
        weights = as_array(self.weights)
        if weights.ndim != 1 or not (weights.size == 0 or weights.dtype.kind in "iu"):
            raise DataError(f"expected whole numbers, found {self.weights!r}", field="weights")
        if (weights < 0).any():
            raise DataError(f"expected weights from 0 up, found {weights.min()}", field="weights")
        check_whole(self.capacity, 0, "capacity")
        object.__setattr__(self, "weights", tuple(weights.tolist()))

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse scores for another number of items."""
        check_one_each(shape, len(self.weights), "item")

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """All sets that fit, item by item."""
        plan, goals = fitting_sets(self.weights, self.capacity, exactly=False)
        return plan.finish(goals[-1])


def fitting_sets(weights: Sequence[int], capacity: int, exactly: bool) -> tuple[Plan, Integers]:
    """Sets of weight at most (or exactly) the capacity, and their slots for the first 0, 1, ... n.

    The best of weight c among the first i is one of them without item i, or one of weight c − w
    with it.
    """
    plan = Plan(len(weights))
    capacity = capacity if exactly else min(capacity, sum(weights))
    best = np.full(capacity + 1, plan.zero)
    if exactly and capacity:
        best[1:] = plan.add([])
    goals = [best[-1]]
    for item, weight in enumerate(weights):
        if weight <= capacity:
            without, with_it = best[weight:], best[: capacity + 1 - weight]
            edges = np.stack([without, with_it], axis=1)
            best = np.concatenate([best[:weight], plan.add_all(edges, [plan.zero, item])])
        goals.append(best[-1])
    return plan, np.array(goals)
