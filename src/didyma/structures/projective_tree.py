"""ProjectiveTree: a tree over words whose arcs do not cross."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.heads import Heads
from didyma.structures.hypergraph import SHAPES, Hypergraph, Plan
from didyma.structures.layout import Floats, Layout, Parts


@dataclass(frozen=True)
class ProjectiveTree(Heads):
    """A tree over words whose arcs, drawn above the sentence, do not cross.

    Scores are (B, n + 1, n + 1): entry [m, h] is the score of head h for word m, where 0 is the
    root, which stands before the first word; row 0 and the diagonal are ignored. Lengths count
    words. Outputs are (B, n + 1), the head of each word, −1 for the root and beyond the length.
    With ``single_root``, only one word has head 0.

    >>> scores = np.zeros((5, 5))
    >>> scores[[1, 2, 3, 4], [3, 4, 0, 0]] = 1.0
    >>> ProjectiveTree().predict(scores)
    array([-1,  3,  3,  0,  0])

    Eisner, Three new probabilistic models for dependency parsing, 1996.
    """

    kernel: ClassVar[Any] = core.projective_tree
    scratch: ClassVar[Any] = staticmethod(core.projective_tree_scratch)

    def check(self, heads: Parts, lengths: NDArray[np.int64]) -> None:
        """Refuse heads that are no projective tree, naming instance and words."""
        super().check(heads, lengths)
        words = np.arange(heads.shape[1])
        used = (words > 0) & (words <= lengths[:, None])
        start = np.where(used, np.minimum(heads, words), 0)
        stop = np.where(used, np.maximum(heads, words), 0)
        inside = (start[:, :, None] < start[:, None]) & (start[:, None] < stop[:, :, None])
        crossing = np.argwhere(inside & (stop[:, :, None] < stop[:, None]))
        if len(crossing):
            b, m, other = crossing[0]
            raise DataError(
                f"instance {b}, word {m}: expected a projective tree, but the arc from head "
                f"{heads[b, m]} crosses the one from {heads[b, other]} to word {other}",
                field="outputs",
            )

    def planned(self, layout: Layout) -> Layout:
        """Eisner's spans."""
        return _plan(layout.shape[0] - 1, self.single_root).over(layout)

    def sum_over(
        self, log_weights: Floats, lengths: NDArray[np.int64], logarithms: bool
    ) -> tuple[Floats, Floats]:
        """Inside-outside."""
        from didyma._core.marginals import sum_over_projective_trees

        log_partition, marginals = np.empty(len(lengths)), np.zeros(log_weights.shape)
        weights = log_weights if logarithms else np.exp(log_weights)
        sum_over_projective_trees(
            logarithms, weights, lengths, self.single_root, log_partition, marginals
        )
        return log_partition, marginals


@lru_cache(maxsize=SHAPES)
def _plan(n: int, single_root: bool) -> Hypergraph:
    """Spans by their last word: as in the kernel, with a vertex for each.

    ``right[s, t]`` has its head at s and is complete, ``to_right[s, t]`` ends in the arc to t.
    """
    plan = Plan((n + 1) ** 2)
    arc = np.arange(plan.n_scores).reshape(n + 1, n + 1)
    right, left, to_right, to_left = np.full((4, n + 1, n + 1), plan.zero)
    for t in range(1, n + 1):
        for s in range(t - 1, -1, -1):
            last = 1 if s == 0 and single_root else t  # the root's only arc has nothing before it
            joined = int(plan.add_all(right[s, s:last], left[s + 1 : last + 1, t]))
            to_right[s, t] = plan.add([(joined, int(arc[t, s]))])
            right[s, t] = plan.add_all(to_right[s, s + 1 : t + 1], right[s + 1 : t + 1, t])
            if s > 0:
                to_left[s, t] = plan.add([(joined, int(arc[s, t]))])
                left[s, t] = plan.add_all(left[s, s:t], to_left[s:t, t])
    return plan.finish(right[0])
