"""Choice: one of n options."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import didyma._core.structures as core
from didyma.structures.batches import (
    as_lengths,
    as_outputs,
    check_range,
    check_scores,
    impossible,
)
from didyma.structures.compiled import CompiledStructure
from didyma.structures.hypergraph import SHAPES, Hypergraph, Plan
from didyma.structures.layout import Floats, Layout, Lengths, Parts


class Choice(CompiledStructure):
    """One of n options: scores (B, n), outputs (B,) are indices, −1 where there is no option.

    SparseMAP over it is sparsemax, the CRF's marginals are the softmax.

    >>> import didyma
    >>> didyma.sparsemap([1.0, 0.8, 0.0], Choice())
    array([0.6, 0.4, 0. ])
    """

    kernel: ClassVar[Any] = core.choice
    closed_form: ClassVar[Any] = (core.sparsemax, core.sparsemax_derivative)
    ndim: ClassVar[int] = 1

    def arrange(self, batch: Floats, lengths: Lengths) -> Layout:
        """Lengths are the numbers of options."""
        sizes = as_lengths(lengths, *batch.shape)[:, None]
        used = None if lengths is None else np.arange(batch.shape[1]) < sizes
        batch = check_scores(batch, "scores", used)
        return Layout(batch, batch.shape[1:], 1, sizes=sizes)

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """The chosen index is the part."""
        chosen = as_outputs(outputs, (), layout)
        some = layout.sizes[:, 0] > 0
        check_range(chosen, 0, layout.sizes[:, 0], some, "option")
        return np.where(some, chosen, -1)[:, None], layout.no_extra_parts

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Index of the chosen option."""
        return parts[:, 0].astype(np.int64)

    def planned(self, layout: Layout) -> Layout:
        """Option by option, the best so far or the next."""
        return _plan(layout.shape[0]).over(layout)

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Softmax and its normaliser."""
        highest = layout.scores.max(axis=1, keepdims=True, initial=-np.inf)
        empty = layout.sizes == 0
        failed = np.isneginf(highest) & ~empty
        if failed.any():
            raise impossible(int(np.argmax(failed)))
        highest[empty] = 0.0
        weights = np.exp(layout.scores - highest)
        # one after the other, so that padding changes no bit
        total = empty + np.cumsum(weights, axis=1)[:, -1:] if weights.size else np.ones(empty.shape)
        return (highest + np.log(total))[:, 0], weights / total, layout.no_extra_marginals


@lru_cache(maxsize=SHAPES)
def _plan(n: int) -> Hypergraph:
    plan = Plan(n)
    goals = [plan.zero]
    for option in range(n):
        so_far = [(goals[-1], plan.zero)] if option else []
        goals.append(plan.add([*so_far, (option, plan.zero)]))
    return plan.finish(goals)
