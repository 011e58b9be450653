"""Forest: sets of edges without a cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.batches import as_flags, as_lengths, check_scores, flatten, pack
from didyma.structures.compiled import CompiledStructure
from didyma.structures.layout import Floats, Layout, Lengths, Parts


@dataclass(frozen=True)
class Forest(CompiledStructure):
    """Undirected forests over n nodes: scores (B, n, n), outputs boolean (B, n, n).

    Entry [i, j] with i < j stands for the edge between i and j; the others are ignored. Any set of
    edges without a cycle is an output, so that the best one has only edges with positive scores.
    Lengths are the numbers of nodes.

    >>> import numpy as np
    >>> scores = np.zeros((3, 3))
    >>> scores[0, 1], scores[0, 2], scores[1, 2] = 1.0, 2.0, 3.0
    >>> np.argwhere(Forest().predict(scores)).tolist()
    [[0, 2], [1, 2]]
    """

    kernel: ClassVar[Any] = core.forest
    ndim: ClassVar[int] = 2
    aligned: ClassVar[bool] = False
    intractable: ClassVar[str] = "sums over forests are #P-hard"

    def arrange(self, batch: Floats, lengths: Lengths) -> Layout:
        """Parts are edges in ascending order; lengths are the numbers of nodes."""
        n, m = shape = batch.shape[1:]
        if n != m:
            raise DataError(
                f"expected a square array, one row and column per node, found shape {shape}",
                field="scores",
            )
        sizes = as_lengths(lengths, len(batch), n)[:, None]
        node = np.arange(n)
        used = (node[:, None] < node) & (node < sizes[:, None])
        return Layout(
            flatten(check_scores(batch, "scores", used)),
            shape,
            max(n - 1, 1),
            dims=np.array([n], np.int64),
            sizes=sizes,
            n_work=n,
            n_index=n,
        )

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Flat indices of the edges."""
        n = layout.shape[0]
        node = np.arange(n) < layout.sizes
        edges = as_flags(outputs, node[:, :, None] & node[:, None, :], layout)
        misplaced = np.argwhere(np.tril(edges))
        if len(misplaced):
            raise DataError(
                f"expected the edge between i and j at [i, j] with i < j only, found one at index "
                f"{misplaced[0].tolist()}",
                field="outputs",
            )
        for b, chosen in enumerate(edges):
            _check_acyclic(np.argwhere(chosen), n, b)
        return pack(edges, layout), layout.no_extra_parts


def _check_acyclic(edges: NDArray[np.int64], n: int, b: int) -> None:
    """Refuse an edge within a tree."""
    tree = np.arange(n)
    for i, j in edges.tolist():
        if tree[i] == tree[j]:
            raise DataError(
                f"instance {b}: the edge between {i} and {j} closes a cycle", field="outputs"
            )
        tree[tree == tree[j]] = tree[i]
