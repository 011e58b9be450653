"""HigherOrderChain: one tag per position, each depending on several before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structures.batches import as_outputs, check_range, check_whole, column_of_row, one_hot
from didyma.structures.hypergraph import Hypergraph, Integers, Plan, Planned
from didyma.structures.layout import Layout, Parts


@dataclass(frozen=True)
class HigherOrderChain(Planned):
    """One of T tags at each of n positions: scores (B, n, T), outputs (B, n) are tags.

    The score of tags t is ``Σᵢ scores[i, tᵢ] + Σᵢ transitions[tᵢ₋ₖ, …, tᵢ₋₁, tᵢ]``, where k is the
    order and ``transitions`` has k + 1 axes; the first k tags have none. Outputs are padded with −1
    beyond the length. O(n Tᵏ⁺¹); for k = 1 `Chain` is faster, and has scores of starts and ends.

    >>> transitions = np.zeros((2, 2, 2))
    >>> transitions[0, 0, 0] = -2.0  # not thrice
    >>> HigherOrderChain(2).predict([[1.0, 0], [0.4, 0], [1.0, 0]], transitions=transitions)
    array([0, 1, 0])
    """

    order: int = 2

    ndim: ClassVar[int] = 2
    lengths_along: ClassVar[tuple[tuple[int, ...], ...]] = ((0,),)

    def __post_init__(self) -> None:
        check_whole(self.order, 1, "order")

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Transitions between tags."""
        return {"transitions": (shape[1],) * (self.order + 1)}

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse no tags."""
        if shape[1] < 1:
            raise DataError(f"expected at least one tag, found shape {shape}", field="scores")

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """Position by position, the best beginning for each choice of its last tags."""
        n, n_tags = shape
        axes = (n_tags,) * (self.order + 1)
        plan = Plan(n * n_tags, int(np.prod(axes)))
        parts = np.arange(plan.n_scores).reshape(shape)
        # the tag that is forgotten comes last, where edges are
        transitions = np.moveaxis(plan.n_scores + np.arange(plan.n_extra).reshape(axes), 0, -1)
        goals = np.full(n + 1, plan.zero)
        best = np.array(plan.zero)
        for i in range(n):
            before = best[..., None]
            if i >= self.order:
                before = plan.add_all(np.moveaxis(best, 0, -1)[..., None, :], transitions)
            best = plan.add_all(before[..., None], parts[i][:, None])
            goals[i + 1] = plan.add((slot, plan.zero) for slot in best.ravel().tolist())
        return plan.finish(goals)

    def flags(self, outputs: ArrayLike, layout: Layout) -> NDArray[np.bool_]:
        """One tag at each position."""
        n, n_tags = layout.shape
        tags = as_outputs(outputs, (n,), layout)
        used = np.arange(n) < layout.sizes
        check_range(tags, 0, n_tags, used, "tag")
        return one_hot(tags, n_tags, used)

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Tags, −1 beyond the length."""
        return column_of_row(parts, *layout.shape)
