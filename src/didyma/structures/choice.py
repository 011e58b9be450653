"""Choice: one of n options."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.structure import (
    CompiledStructure,
    Floats,
    Layout,
    as_batch,
    as_lengths,
    as_outputs,
    check_range,
)

__all__ = ["Choice"]


class Choice(CompiledStructure):
    """One of n options: scores (B, n), outputs (B,) are indices.

    SparseMAP over it is sparsemax, the CRF's marginals are the softmax.

    >>> import didyma
    >>> didyma.sparsemap([1.0, 0.8, 0.0], Choice())
    array([0.6, 0.4, 0. ])
    """

    ndim: ClassVar[int] = 1

    @cached_property
    def kernel(self) -> Any:
        """The compiled argmax."""
        from didyma.kernels.choice import choice

        return choice

    def lay_out(
        self, scores: ArrayLike, lengths: ArrayLike | None = None, **additional: ArrayLike | None
    ) -> Layout:
        """Check a batch and lay it out flat; lengths are the numbers of options."""
        self.refuse(additional)
        batch = as_batch(scores, self.ndim)
        sizes = as_lengths(lengths, *batch.shape)
        return Layout(batch, batch.shape[1:], 1, sizes=sizes[:, None])

    def encode(
        self, outputs: ArrayLike, layout: Layout
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The chosen index is the part."""
        chosen = as_outputs(outputs, (), layout)
        check_range(chosen, 0, layout.sizes[:, 0], np.ones(len(chosen), bool), "option")
        return chosen[:, None], np.zeros((len(layout), 0), np.int32)

    def decode(self, parts: NDArray[np.int32], layout: Layout) -> NDArray[np.int64]:
        """Index of the chosen option."""
        return parts[:, 0].astype(np.int64)

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Softmax and its normaliser."""
        masked = np.where(np.arange(layout.shape[0]) < layout.sizes, layout.scores, -np.inf)
        highest = masked.max(axis=1, keepdims=True)
        weights = np.exp(masked - highest)
        total = weights.sum(axis=1, keepdims=True)
        return (highest + np.log(total))[:, 0], weights / total, np.zeros((len(layout), 0))
