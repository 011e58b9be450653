"""Tree: a head for each word, with no other constraint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.structures.batches import flatten
from didyma.structures.heads import Heads
from didyma.structures.layout import Floats, Layout, Parts

NEGLIGIBLE = 1e-12  # share of second roots
STEPS = 1000  # of a walk, per word, before it is given up
LEAST_SHARE = 1e-6  # of what a marginal is a difference of: nine of its digits are left
LARGEST_AMPLIFICATION = 1e6  # of a rounding in covariances, likewise
LOWERED = 115.0  # e^-115 is small, and far from the smallest float


@dataclass(frozen=True)
class Tree(Heads):
    """A tree over words: every word has a head, another word or the root; arcs may cross.

    Scores are (B, n + 1, n + 1): entry [m, h] is the score of head h for word m, where 0 is the
    root; row 0 and the diagonal are ignored. Lengths count words. Outputs are (B, n + 1), the head
    of each word, −1 for the root and beyond the length. With ``single_root``, only one word has
    head 0.

    >>> scores = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [0.5, 2.0, 0.0]])
    >>> Tree().predict(scores)
    array([-1,  0,  1])
    >>> Tree().marginals(scores).round(2)
    array([[0.  , 0.  , 0.  ],
           [0.67, 0.  , 0.33],
           [0.45, 0.55, 0.  ]])

    Chu & Liu 1965, Edmonds 1967; Tutte's matrix-tree theorem for the marginals.
    """

    kernel: ClassVar[Any] = core.tree
    scratch: ClassVar[Any] = staticmethod(core.tree_scratch)

    def sum_over(
        self, log_weights: Floats, lengths: NDArray[np.int64], logarithms: bool
    ) -> tuple[Floats, Floats]:
        """The matrix-tree theorem.

        A single root is the limit of root arcs that weigh next to nothing. Since nothing cancels,
        such weights cost no accuracy, and the expected number of roots tells whether they are small
        enough.
        """
        if not self.single_root:
            return _sum(log_weights, lengths, logarithms)
        if not logarithms:
            log_partition, marginals = _sum_lowered(log_weights, lengths, LOWERED, logarithms)
            second = marginals[:, :, 0].sum(axis=1) - 1.0
            log_partition[second > NEGLIGIBLE] = -np.inf
            return log_partition, marginals
        log_partition = np.full(len(lengths), -np.inf)
        marginals = np.zeros(log_weights.shape)
        enough = _enough(log_weights, lengths)
        negligible = NEGLIGIBLE + np.finfo(float).eps * enough
        for b in range(len(lengths)):
            one, lowered, second = slice(b, b + 1), LOWERED, 1.0
            while second > negligible[b] and lowered < enough[b]:
                lowered = min(16.0 * lowered, enough[b])
                log_partition[one], marginals[one] = _sum_lowered(
                    log_weights[one], lengths[one], lowered, logarithms
                )
                second = marginals[b, :, 0].sum() - 1.0
            if second > 0.5:
                log_partition[b] = -np.inf
        return log_partition, marginals

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """By the inverse of the Laplacian; where digits of marginals are lost, by elimination."""
        from didyma._core.marginals import tree_marginals

        scores = layout.scores.reshape(-1, *layout.shape)
        log_partition, marginals = np.empty(len(layout)), np.zeros(scores.shape)
        tree_marginals(
            scores, layout.sizes[:, 0], self.single_root, LEAST_SHARE, log_partition, marginals
        )
        lost = np.flatnonzero(np.isneginf(log_partition))
        if len(lost):
            log_partition[lost], marginals[lost] = self.eliminated(layout, lost)
        return log_partition, flatten(marginals), layout.no_extra_marginals

    def covariances(self, layout: Layout, p: Floats, p_extra: Floats) -> tuple[Floats, Floats]:
        """The derivative of an inverse; where that is lost in rounding, by elimination."""
        from didyma._core.marginals import tree_covariances

        q, amplification = np.zeros_like(p), np.empty(len(layout))
        scores, direction, moved = (
            np.ascontiguousarray(flat).reshape(-1, *layout.shape) for flat in (layout.scores, p, q)
        )
        tree_covariances(
            scores, layout.sizes[:, 0], self.single_root, direction, moved, amplification
        )
        lost = np.flatnonzero(~(amplification <= LARGEST_AMPLIFICATION))
        if len(lost):
            nothing = np.zeros_like(p[lost])
            q[lost] = self._eliminated(layout.select(lost), p[lost], nothing)[..., 1]
        return q, np.zeros_like(p_extra)

    def third_cumulants(
        self, layout: Layout, p: Floats, p_extra: Floats, r: Floats, r_extra: Floats
    ) -> tuple[Floats, Floats]:
        """By elimination, which loses nothing."""
        return self._eliminated(layout, p, r)[..., 3], np.zeros_like(p_extra)

    def _eliminated(self, layout: Layout, p: Floats, r: Floats) -> Floats:
        """Marginals with their derivatives along p, along r, and along both, (B, d, 4)."""
        from didyma._core.marginals import derivatives_over_trees

        lengths = layout.sizes[:, 0]
        p, r = (np.where(np.isneginf(layout.scores), 0.0, along) for along in (p, r))
        log_weights, _, _ = self.normalised(layout)
        if self.single_root:
            log_weights[:, :, 0] -= _enough(log_weights, lengths)[:, None]
        log_weights = flatten(log_weights)
        numbers = np.stack([log_weights, p, r, np.zeros_like(p)], axis=-1)
        numbers = numbers.reshape(len(layout), layout.shape[0], -1)
        moments = np.zeros_like(numbers)
        derivatives_over_trees(numbers, lengths, np.empty(len(layout)), moments)
        return moments.reshape(len(layout), -1, 4)

    def _sample(self, layout: Layout, n: int, random_state: int) -> Parts:
        """Wilson's walks; where these go round and round, one head after the other."""
        from didyma._core.marginals import sample_trees

        _, marginals, _ = self.expectations(layout)
        size = layout.shape[0]
        heads = np.empty((len(layout), n, size), np.int64)
        for b, (length,) in enumerate(layout.sizes):
            generator = np.random.default_rng((random_state, b))
            scores = layout.scores[b].reshape(size, size)[: length + 1, : length + 1]
            weights = np.zeros(scores.shape)
            weights[1:] = np.exp(scores[1:] - scores[1:].max(axis=1, keepdims=True))
            roots = np.cumsum(marginals[b].reshape(size, size)[: length + 1, 0])
            heads[b] = -1
            drawn = np.empty((n, length + 1), np.int64)
            sample_trees(
                np.cumsum(weights, axis=1),
                roots if self.single_root else np.zeros(0),
                length,
                STEPS * (length + 1),
                generator,
                drawn,
            )
            for late in np.flatnonzero((drawn[:, 1:] < 0).any(axis=1)):
                self._head_by_head(layout, b, drawn[late], generator)
            heads[b, :, : length + 1] = drawn
        words = np.arange(1, size)
        parts = np.where(heads[:, :, 1:] >= 0, words * size + heads[:, :, 1:], -1)
        return parts.astype(np.int32)

    def _head_by_head(
        self, layout: Layout, b: int, heads: NDArray[np.int64], generator: np.random.Generator
    ) -> None:
        """Draw the heads that are still −1, each given those before it."""
        size, length = layout.shape[0], len(heads) - 1
        scores = layout.scores[b].reshape(size, size).copy()
        one = layout.select([b])
        for word in sorted(range(1, length + 1), key=lambda m: heads[m] < 0):
            if heads[word] < 0:
                row = self.sums(replace(one, scores=scores.reshape(1, -1)))[1].reshape(size, size)
                share = row[word, : length + 1]
                heads[word] = generator.choice(length + 1, p=share / share.sum())
            scores[word, np.arange(size) != heads[word]] = -np.inf


def _enough(log_weights: Floats, lengths: NDArray[np.int64]) -> Floats:
    """By how much to lower root arcs: no second root makes up for that.

    The worst tree does not lose more than this in all of its arcs.
    """
    lowest = np.where(np.isneginf(log_weights), 0.0, log_weights).min(axis=(1, 2))
    enough: Floats = LOWERED + lengths * (100.0 + np.log(np.maximum(lengths, 1)) - lowest)
    return enough


def _sum_lowered(
    log_weights: Floats, lengths: NDArray[np.int64], lowered: float, logarithms: bool
) -> tuple[Floats, Floats]:
    shifted = log_weights.copy()
    shifted[:, :, 0] -= lowered
    log_partition, marginals = _sum(shifted, lengths, logarithms)
    return log_partition + np.where(lengths > 0, lowered, 0.0), marginals


def _sum(
    log_weights: Floats, lengths: NDArray[np.int64], logarithms: bool
) -> tuple[Floats, Floats]:
    from didyma._core.marginals import sum_over_trees

    log_partition, marginals = np.empty(len(lengths)), np.zeros(log_weights.shape)
    weights = log_weights if logarithms else np.exp(log_weights)
    sum_over_trees(logarithms, weights, lengths, log_partition, marginals)
    return log_partition, marginals
