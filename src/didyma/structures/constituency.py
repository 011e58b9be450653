"""Constituency: binary trees over words, with labelled spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structures.batches import as_outputs, check_range, column_of_row, one_hot
from didyma.structures.hypergraph import Hypergraph, Integers, Plan, Planned
from didyma.structures.layout import Layout, Parts


@dataclass(frozen=True)
class Constituency(Planned):
    """Binary trees over n words: scores (B, n, n, T), outputs (B, n, n).

    Entry [i, j, t] is the score of label t for the span of words i to j, both included; entries
    with i > j are ignored. An output has the label of each span of the tree, single words too, and
    −1 elsewhere. Without labels T is 1. Lengths are the numbers of words. O(n³ + n² T) (CKY).

    >>> scores = np.zeros((3, 3, 1))
    >>> scores[1, 2] = 1.0
    >>> Constituency().predict(scores)
    array([[ 0, -1,  0],
           [-1,  0,  0],
           [-1, -1,  0]])
    """

    ndim: ClassVar[int] = 3
    lengths_along: ClassVar[tuple[tuple[int, ...], ...]] = ((0, 1),)

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse spans that are not square, and no labels."""
        if shape[0] != shape[1] or shape[2] < 1:
            raise DataError(
                "expected a row and a column for each word and at least one label, found shape "
                f"{shape}",
                field="scores",
            )

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """Span by span, ordered by the last word, so that a shorter sentence is a beginning."""
        n, _, n_labels = shape
        plan = Plan(n * n * n_labels)
        parts = np.arange(plan.n_scores).reshape(shape)
        spans = np.full((n, n), plan.zero)
        goals = np.full(n + 1, plan.zero)
        for j in range(n):
            for i in range(j, -1, -1):
                inside = plan.zero
                if i < j:
                    inside = int(plan.add_all(spans[i, i:j], spans[i + 1 : j + 1, j]))
                spans[i, j] = int(plan.add_all(inside, parts[i, j]))
            goals[j + 1] = spans[0, j]
        return plan.finish(goals)

    def flags(self, outputs: ArrayLike, layout: Layout) -> NDArray[np.bool_]:
        """Labels of spans, one of them at each that is in the tree."""
        n, _, n_labels = layout.shape
        labels = as_outputs(outputs, (n, n), layout)
        last = np.arange(n)
        used = (last[:, None] <= last) & (last < layout.sizes[:, :, None])
        check_range(labels, -1, n_labels, used, "label")
        return one_hot(labels, n_labels, used)

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Label of each span, −1 where there is none."""
        n, _, n_labels = layout.shape
        return column_of_row(parts, n * n, n_labels).reshape(len(parts), n, n)
