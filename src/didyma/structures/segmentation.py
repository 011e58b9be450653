"""Segmentation: a sequence cut into labelled segments (semi-Markov)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structures.batches import as_outputs, check_range, flatten
from didyma.structures.hypergraph import Hypergraph, Integers, Plan, Planned
from didyma.structures.layout import Layout, Parts


@dataclass(frozen=True)
class Segmentation(Planned):
    """n positions cut into segments of at most L positions: scores (B, n, L, T), outputs (B, n).

    Entry [i, l, t] is the score of a segment with label t that begins at position i and has l + 1
    positions. ``transitions`` (T, T) score the labels of neighbours. Outputs are the tags known as
    BIO: 2t where a segment with label t begins, 2t + 1 inside of it, −1 beyond the length; see
    `segments`. O(n T (L + T)).

    >>> scores = np.zeros((4, 3, 2))
    >>> scores[0, 1, 0], scores[2, 1, 1] = 1.0, 1.0
    >>> tags = Segmentation().predict(scores)
    >>> tags
    array([0, 1, 2, 3])
    >>> Segmentation.segments(tags)
    [(0, 2, 0), (2, 4, 1)]

    Sarawagi & Cohen, Semi-Markov conditional random fields for information extraction, 2004.
    """

    ndim: ClassVar[int] = 3
    lengths_along: ClassVar[tuple[tuple[int, ...], ...]] = ((0,),)

    @staticmethod
    def segments(tags: ArrayLike) -> list[tuple[int, int, int]]:
        """First position, position after the last, and label of each segment of one output."""
        used = np.asarray(tags)
        used = used[used >= 0]
        starts = np.flatnonzero(used % 2 == 0).tolist()
        return [
            (start, stop, int(used[start]) // 2)
            for start, stop in zip(starts, [*starts[1:], len(used)])
        ]

    def additional(self, shape: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        """Transitions between labels."""
        return {"transitions": (shape[2], shape[2])}

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse segments without a length or without a label."""
        if shape[1] < 1 or shape[2] < 1:
            raise DataError(
                f"expected at least one length and one label, found shape {shape}", field="scores"
            )

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """Position by position: the best cuts before it by last label, and by the next one."""
        n, longest, n_labels = shape
        plan = Plan(n * longest * n_labels, n_labels**2)
        parts = np.arange(plan.n_scores).reshape(shape)
        transitions = plan.n_scores + np.arange(n_labels**2).reshape(n_labels, n_labels)
        before = np.full((n + 1, n_labels), plan.zero)  # by the label of the segment to come
        goals = np.full(n + 1, plan.zero)
        for j in range(1, n + 1):
            length = np.arange(min(j, longest))
            start = j - 1 - length
            last = plan.add_all(before[start].T, parts[start, length].T)
            goals[j] = plan.add((int(slot), plan.zero) for slot in last)
            before[j] = plan.add_all(last, transitions.T)
        return plan.finish(goals)

    def flags(self, outputs: ArrayLike, layout: Layout) -> NDArray[np.bool_]:
        """Segments of tags."""
        n, longest, n_labels = layout.shape
        tags = as_outputs(outputs, (n,), layout)
        used = np.arange(n) < layout.sizes
        check_range(tags, 0, 2 * n_labels, used, "tag")
        chosen = np.zeros((len(layout), *layout.shape), bool)
        for b, (row, (length,)) in enumerate(zip(tags, layout.sizes)):
            instance_tags = row[:length]
            inside = instance_tags % 2 == 1
            if (inside & (np.append(-1, instance_tags[:-1] // 2) != instance_tags // 2)).any():
                raise DataError(
                    f"instance {b}: expected inside a segment the tag of its beginning plus 1, "
                    f"found {instance_tags.tolist()}",
                    field="outputs",
                )
            for start, stop, label in self.segments(instance_tags):
                if stop - start > longest:
                    raise DataError(
                        f"instance {b}: expected segments of at most {longest} positions, found "
                        f"{stop - start}",
                        field="outputs",
                    )
                chosen[b, start, stop - start - 1, label] = True
        return flatten(chosen)

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Tags, −1 beyond the length."""
        n, longest, n_labels = layout.shape
        tags = np.full((len(parts), n), -1, np.int64)
        first = np.zeros((len(parts), n), np.int64)  # position of each position's segment
        stop = np.zeros(len(parts), np.int64)
        output, place = np.nonzero(parts >= 0)
        span, label = np.divmod(parts[output, place], n_labels)
        start, more = np.divmod(span, longest)
        tags[output, start] = 2 * label
        first[output, start] = start
        np.maximum.at(stop, output, start + more + 1)
        position = np.arange(n)
        first = np.maximum.accumulate(first, axis=1)
        tags = np.take_along_axis(tags, first, axis=1) + (first < position)
        return np.where(position < stop[:, None], tags, -1)
