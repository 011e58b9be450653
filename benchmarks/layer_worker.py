"""Peers of our layers, forward and backward: ``python layer_worker.py PEER BATCH.npz``.

It runs in the peers' own environment, on one thread, and prints the seconds of one pass and the log
partition of the first instance (not a number for layers that have none).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


def linear_chain(scores: Any, transitions: Any) -> Any:
    from torch_struct import LinearChainCRF

    # Potentials are (batch, n - 1, next tag, tag); the first unary joins the first pair.
    pairs = scores[:, 1:, :, None] + transitions.T
    first = torch.nn.functional.pad(scores[:, :1, None, :], (0, 0, 0, 0, 0, pairs.shape[1] - 1))
    return LinearChainCRF(pairs + first)


def semi_markov(scores: Any) -> Any:
    from torch_struct import SemiMarkovCRF

    # Potentials are (batch, n, length, next label, label); a segment of length 0 does not exist.
    batch, n, _, labels = scores.shape
    potentials = scores[..., None].expand(-1, -1, -1, -1, labels)
    nothing = torch.full((batch, n, 1, labels, labels), -1e9, dtype=scores.dtype)
    start = torch.zeros(labels, dtype=scores.dtype)
    start[1:] = -1e9  # any label before the first segment, but one
    opening = torch.zeros(n, dtype=scores.dtype)
    opening[0] = 1.0
    return SemiMarkovCRF(
        torch.cat([nothing, potentials], dim=2) + opening[:, None, None, None] * start
    )


def arborescences(scores: Any) -> Any:
    from torch_struct import NonProjectiveDependencyCRF

    return NonProjectiveDependencyCRF(_arcs(scores))


def projective(scores: Any) -> Any:
    from torch_struct import DependencyCRF

    return DependencyCRF(_arcs(scores))


def _arcs(scores: Any) -> Any:
    """Entry [head, word] for words alone, root scores on the diagonal."""
    words = scores[:, 1:, 1:].transpose(1, 2)
    return (
        words
        - torch.diag_embed(words.diagonal(dim1=1, dim2=2))
        + torch.diag_embed(scores[:, 1:, 0])
    )


def binary_trees(scores: Any) -> Any:
    from torch_struct import TreeCRF

    return TreeCRF(scores)


STRUCTURES = {
    "LinearChainCRF": linear_chain,
    "SemiMarkovCRF": semi_markov,
    "NonProjectiveDependencyCRF": arborescences,
    "DependencyCRF": projective,
    "TreeCRF": binary_trees,
}


def rows(name: str, scores: Any) -> Any:
    """A layer over the last axis, without any structure."""
    import entmax

    return {"sparsemax": entmax.sparsemax, "entmax15": entmax.entmax15}[name](scores, dim=-1)


def main() -> None:
    torch.set_num_threads(1)
    name, path = sys.argv[1:]
    arrays = {key: torch.tensor(array) for key, array in np.load(path).items()}
    scores = arrays.pop("scores").requires_grad_()
    log_partition = float("nan")
    run: Callable[[], Any]
    if name in STRUCTURES:
        log_partition = STRUCTURES[name](scores, **arrays).partition.detach().ravel()[0].item()

        def run() -> Any:
            return STRUCTURES[name](scores, **arrays).marginals
    else:

        def run() -> Any:
            return rows(name, scores)

    weights = torch.randn(run().shape, dtype=scores.dtype)
    best, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < 1.0:
        begin = time.perf_counter()
        (run() * weights).sum().backward()
        best = min(best, time.perf_counter() - begin)
        scores.grad = None
    print(best, log_partition)


if __name__ == "__main__":
    main()
