"""Heads: what trees over words have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.structures.batches import (
    CACHED_SHAPES,
    as_lengths,
    as_outputs,
    check_scores,
    flatten,
    impossible,
)
from didyma.structures.compiled import CompiledStructure
from didyma.structures.layout import Floats, Layout, Lengths, Parts

ROUNDING = 1e-6  # in the sum of a word's marginals


@dataclass(frozen=True)
class Heads(CompiledStructure):
    """A head for each word, so that all words hang from the root.

    Scores are (B, n + 1, n + 1): entry [m, h] is the score of head h for word m, where 0 is the
    root; row 0 and the diagonal are ignored. Lengths count words. Outputs are (B, n + 1), the head
    of each word, −1 for the root and beyond the length.
    """

    single_root: bool = False

    ndim: ClassVar[int] = 2

    scratch: ClassVar[Any]
    """How many floats and integers the kernel needs for n words."""

    @abstractmethod
    def sum_over(
        self, log_weights: Floats, lengths: NDArray[np.int64], logarithms: bool
    ) -> tuple[Floats, Floats]:
        """Log partitions (B,) and marginals, shaped as the weights.

        Without logarithms, a log partition of −∞ means that logarithms are needed.
        """

    def arrange(self, batch: Floats, lengths: Lengths) -> Layout:
        """Lengths are the numbers of words."""
        if batch.shape[1] != batch.shape[2] or batch.shape[1] < 1:
            raise DataError(
                "expected a row and a column for the root and for each word, found shape "
                f"{batch.shape[1:]}",
                field="scores",
            )
        n = batch.shape[1] - 1
        sizes = as_lengths(lengths, len(batch), n)[:, None]
        dims, n_work, n_index, arcs = _frame(self, n)
        return Layout(
            flatten(check_scores(batch, "scores", arcs if lengths is None else _arcs(n, sizes))),
            batch.shape[1:],
            n,
            dims=dims,
            sizes=sizes,
            n_work=n_work,
            n_index=n_index,
        )

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Part m·(n + 1) + h for each word m with head h; the root's own entry is ignored."""
        heads = as_outputs(outputs, layout.shape[:1], layout)
        self.check(heads, layout.sizes[:, 0])
        words = np.arange(1, layout.shape[0], dtype=np.int32)
        parts = np.where(words <= layout.sizes, words * layout.shape[0] + heads[:, 1:], -1)
        return parts.astype(np.int32), layout.no_extra_parts

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Head of each word."""
        heads = np.full((len(parts), layout.shape[0]), -1, np.int64)
        heads[:, 1:] = np.where(parts >= 0, parts % layout.shape[0], -1)
        return heads

    def check(self, heads: Parts, lengths: NDArray[np.int64]) -> None:
        """Refuse heads that are no tree, naming instance and word."""
        words = np.arange(heads.shape[1])
        used = (words > 0) & (words <= lengths[:, None])
        wrong = used & ((heads < 0) | (heads > lengths[:, None]) | (heads == words))
        if wrong.any():
            b, m = np.argwhere(wrong)[0]
            raise _not_a_tree(
                b, f"expected a head from 0 to {lengths[b]}, not itself, found {heads[b, m]}", m
            )
        ancestors = np.where(used, heads, 0)
        for _ in range(heads.shape[1].bit_length()):  # twice as far each time
            ancestors = np.take_along_axis(ancestors, ancestors, axis=1)
        if ancestors.any():
            b = np.argwhere(ancestors)[0, 0]
            m = ancestors[b].max()
            cycle = [m, heads[b, m]]
            while cycle[-1] != m:
                cycle.append(heads[b, cycle[-1]])
            arrows = " → ".join(str(word) for word in cycle)
            raise _not_a_tree(b, f"expected a tree, found heads in a cycle, {arrows}", m)
        roots = used & (heads == 0)
        if self.single_root and (roots.sum(axis=1) > 1).any():
            b = np.argmax(roots.sum(axis=1) > 1)
            first, second = np.flatnonzero(roots[b])[:2]
            raise _not_a_tree(
                b, f"expected a single word with head 0, but so has word {first}", second
            )

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Sums over all trees.

        Their relative error is about that of the scores, 1e-16 of the range of these; where nothing
        is left of marginals, an error says so.
        """
        log_partition, marginals = self.eliminated(layout, np.arange(len(layout)))
        return log_partition, flatten(marginals), layout.no_extra_marginals

    def eliminated(self, layout: Layout, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Log partitions and marginals (rows, n + 1, n + 1) of some instances."""
        some = layout.select(rows)
        lengths = some.sizes[:, 0]
        log_weights, log_scale, headless = self.normalised(some)
        if headless >= 0:
            raise impossible(int(rows[headless]))
        log_partition, marginals = self.sum_over(log_weights, lengths, logarithms=False)
        wide = np.flatnonzero(np.isneginf(log_partition))
        if len(wide):
            log_partition[wide], marginals[wide] = self.sum_over(
                log_weights[wide], lengths[wide], logarithms=True
            )
            words = np.arange(layout.shape[0])
            has_head = (words > 0) & (words <= some.sizes[wide])
            lost = np.abs(marginals[wide].sum(axis=2) - has_head) > ROUNDING
            lost |= np.isneginf(log_partition[wide])[:, None]
            if lost.any():
                self.best(layout)  # raises if there is no tree at all
                raise DataError(
                    f"instance {rows[wide[lost.any(axis=1)][0]]}: scores differ by so much that "
                    "marginals are lost in rounding; scale the scores, or use SparseMAP",
                    field="scores",
                )
        log_partition += np.cumsum(log_scale, axis=1)[:, -1]
        return log_partition, marginals

    @staticmethod
    def normalised(layout: Layout) -> tuple[Floats, Floats, int]:
        """Scores such that the weights of a word's heads sum to 1, and what was taken off each.

        Last is the first instance with a word that has no head, or −1.
        """
        from didyma._core.marginals import normalise

        scores = layout.scores.reshape(-1, *layout.shape)
        log_weights, log_scale = np.empty_like(scores), np.empty(scores.shape[:2])
        headless = normalise(scores, layout.sizes[:, 0], log_weights, log_scale)
        return log_weights, log_scale, headless


def _arcs(n: int, sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which entries are arcs: from a head that exists to another word that does."""
    words = np.arange(n + 1)
    exists = words <= sizes
    arcs: NDArray[np.bool_] = (exists & (words > 0))[:, :, None] & exists[:, None, :]
    arcs[:, words, words] = False
    return arcs


@lru_cache(maxsize=CACHED_SHAPES)
def _frame(trees: Heads, n: int) -> tuple[NDArray[np.int64], int, int, NDArray[np.bool_]]:
    """What all batches of n words share: dims, scratch, and the arcs without lengths."""
    dims = np.array([n + 1, bool(trees.single_root)], np.int64)
    return dims, *trees.scratch(n), _arcs(n, np.array([[n]]))


def _not_a_tree(b: np.integer[Any], problem: str, word: np.integer[Any]) -> DataError:
    return DataError(f"instance {b}, word {word}: {problem}", field="outputs")
