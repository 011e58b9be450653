"""MonotoneAlignment: rows and columns aligned in their order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from didyma.errors import DataError, check_choice
from didyma.structures.hypergraph import Hypergraph, Integers, Plan, Planned

KINDS = ("pairs", "warp", "frames")


@dataclass(frozen=True)
class MonotoneAlignment(Planned):
    """Alignments of n rows with m columns that never cross: scores (B, n, m), outputs boolean.

    ========= ===================================================================================
    kind      an output is
    ========= ===================================================================================
    "pairs"   pairs in ascending order, each row and column in one at most (Needleman & Wunsch).
              ``row_gaps`` (n,) and ``column_gaps`` (m,) are scores of those in no pair.
    "warp"    a path from the first cell to the last, each step to the next row, the next column or
              both: dynamic time warping.
    "frames"  a column for each row, the same as the row before or the next; the first row has the
              first column, the last the last (n ≥ m): speech frames and their labels, as in CTC.
    ========= ===================================================================================

    Lengths are (B, 2), rows and columns. Where there are none of either, nothing is aligned. O(nm).

    >>> import numpy as np
    >>> scores = np.array([[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]])
    >>> np.argwhere(MonotoneAlignment("pairs").predict(scores)).tolist()
    [[0, 0], [1, 2]]
    >>> np.argwhere(MonotoneAlignment("warp").predict(scores)).tolist()
    [[0, 0], [0, 1], [1, 2]]
    """

    kind: str

    ndim: ClassVar[int] = 2
    lengths_along: ClassVar[tuple[tuple[int, ...], ...]] = ((0,), (1,))

    def __post_init__(self) -> None:
        check_choice(self.kind, KINDS, "kind")

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Scores of gaps."""
        if self.kind != "pairs":
            return {}
        return {"row_gaps": shape[:1], "column_gaps": shape[1:]}

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse more columns than frames."""
        few = np.flatnonzero((sizes[:, 0] < sizes[:, 1]) & (sizes[:, 0] > 0))
        if self.kind == "frames" and len(few):
            n, m = sizes[few[0]]
            raise DataError(
                f"expected at least as many rows as columns, found {n} and {m} in instance "
                f"{few[0]}",
                field="scores",
            )

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """Cell by cell, row by row."""
        return self._pairs(*shape) if self.kind == "pairs" else self._path(*shape)

    def _path(self, n: int, m: int) -> Hypergraph:
        """The best way to each cell, its own score included."""
        steps = [(1, 1), (1, 0)] if self.kind == "frames" else [(1, 1), (1, 0), (0, 1)]
        plan = Plan(n * m)
        goals = np.full((n + 1, m + 1), plan.zero)
        for i in range(n):
            for j in range(m):
                before = [goals[i + 1 - a, j + 1 - b] for a, b in steps if a <= i and b <= j]
                if (i, j) == (0, 0):
                    before = [plan.zero]
                goals[i + 1, j + 1] = plan.add((slot, i * m + j) for slot in before)
        return plan.finish(goals)

    def _pairs(self, n: int, m: int) -> Hypergraph:
        """Between two pairs rows are left out first, then columns: each output has one derivation.

        A cell (i, j) stands for i rows and j columns; its vertices for what came last: a pair, no
        left-out column, or anything.
        """
        plan = Plan(n * m, n + m)
        row_gap, column_gap = plan.n_scores + np.arange(n), plan.n_scores + n + np.arange(m)
        nothing = plan.add([])
        rows = np.full(m + 1, nothing)  # of the row above, no column left out last
        goals = np.full((n + 1, m + 1), plan.zero)
        for i in range(n + 1):
            for j in range(m + 1):
                pair = plan.zero if (i, j) == (0, 0) else nothing
                if i and j:
                    pair = plan.add([(goals[i - 1, j - 1], (i - 1) * m + j - 1)])
                skipped = [(rows[j], row_gap[i - 1])] if i else []
                rows[j] = plan.add([(pair, plan.zero), *skipped])
                skipped = [(goals[i, j - 1], column_gap[j - 1])] if j else []
                goals[i, j] = plan.add([(rows[j], plan.zero), *skipped])
        return plan.finish(goals)
