"""TopK: k of n options."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.batches import (
    as_flags,
    as_lengths,
    check_scores,
    check_whole,
    impossible,
    pack,
)
from didyma.structures.compiled import CompiledStructure
from didyma.structures.hypergraph import SHAPES, Hypergraph
from didyma.structures.knapsack import fitting_sets
from didyma.structures.layout import Floats, Layout, Lengths, Parts


@dataclass(frozen=True)
class TopK(CompiledStructure):
    """Sets of k options, or with ``exactly=False`` of at most k (a budget).

    Scores (B, n), outputs boolean (B, n); lengths are the numbers of options. An instance
    without options has the empty set.

    >>> TopK(2).predict([0.5, -1.0, -0.2])
    array([ True, False,  True])
    >>> TopK(2, exactly=False).predict([0.5, -1.0, -0.2])
    array([ True, False, False])
    """

    k: int
    exactly: bool = True

    kernel: ClassVar[Any] = core.top_k
    ndim: ClassVar[int] = 1
    aligned: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_whole(self.k, 1, "k")

    def arrange(self, batch: Floats, lengths: Lengths) -> Layout:
        """Parts are chosen options, in ascending order; lengths are the numbers of options."""
        n = batch.shape[1]
        sizes = as_lengths(lengths, len(batch), n)
        few = np.flatnonzero((sizes < self.k) & (sizes > 0))
        if self.exactly and len(few):
            raise DataError(
                f"expected at least k = {self.k} options, found {sizes[few[0]]} in instance "
                f"{few[0]}; exactly=False takes at most k",
                field="scores" if lengths is None else "lengths",
            )
        k = min(self.k, n)
        return Layout(
            check_scores(batch, "scores", np.arange(n) < sizes[:, None]),
            batch.shape[1:],
            k,
            dims=np.array([k, self.exactly], np.int64),
            sizes=sizes[:, None],
            n_work=k,
        )

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Indices of the chosen options."""
        chosen = as_flags(outputs, np.arange(layout.shape[0]) < layout.sizes, layout)
        counts = chosen.sum(axis=1)
        needed = np.where(layout.sizes[:, 0] > 0, self.k, 0)
        wrong = np.flatnonzero(counts != needed if self.exactly else counts > needed)
        if len(wrong):
            raise DataError(
                f"instance {wrong[0]}: expected {'exactly' if self.exactly else 'at most'} "
                f"{self.k} chosen options, found {counts[wrong[0]]}",
                field="outputs",
            )
        return pack(chosen, layout), layout.no_extra_parts

    def planned(self, layout: Layout) -> Layout:
        """A knapsack for options that weigh 1."""
        k = int(layout.dims[0])
        return _plan(layout.shape[0], k, self.exactly).over(layout)

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """By elementary symmetric polynomials e_c, the sums over sets of c options.

        From the last option to the first, the probability that c options up to this one are chosen
        is divided among those with it and those without: no digit of large scores is lost.
        """
        from scipy.special import expit

        k = int(layout.dims[0])
        scores = layout.scores
        sums = [np.full((len(layout), k + 1), -np.inf)]
        sums[0][:, 0] = 0.0
        for column in scores.T:
            sums.append(_with_option(sums[-1], column))
        totals = sums[-1]
        if self.exactly:
            needed = np.where(layout.sizes > 0, k, 0)
            totals = np.where(np.arange(k + 1) == needed, totals, -np.inf)
        log_partition = np.logaddexp.reduce(totals, axis=1)
        empty = np.flatnonzero(log_partition == -np.inf)
        if len(empty):
            raise impossible(int(empty[0]))
        count = np.exp(totals - totals.max(axis=1, keepdims=True))
        count /= count.sum(axis=1, keepdims=True)
        marginals = np.empty(scores.shape)
        for i in reversed(range(layout.shape[0])):
            with np.errstate(invalid="ignore"):  # of counts that cannot be
                odds = sums[i][:, :-1] + scores[:, i : i + 1] - sums[i][:, 1:]
            odds[count[:, 1:] == 0.0] = -np.inf
            chosen = count[:, 1:] * expit(odds)
            marginals[:, i] = chosen.sum(axis=1)
            count[:, 1:] *= expit(-odds)
            count[:, :-1] += chosen
        return log_partition, marginals, layout.no_extra_marginals


@lru_cache(maxsize=SHAPES)
def _plan(n: int, k: int, exactly: bool) -> Hypergraph:
    plan, goals = fitting_sets((1,) * n, k, exactly)
    goals[0] = plan.zero  # of no options none is chosen
    return plan.finish(goals)


def _with_option(sums: Floats, scores: Floats) -> Floats:
    """Logarithms of sums over sets of 0 to k options (B, k + 1), with one more option (B,)."""
    grown = sums.copy()
    grown[:, 1:] = np.logaddexp(sums[:, 1:], sums[:, :-1] + scores[:, None])
    return grown
