"""Seconds that a peer's argmax takes for a batch: ``python structure_worker.py PEER BATCH.npz``.

It runs in the peers' own environment, on one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def lap(scores: Any) -> Callable[[], Any]:
    import lap as library

    return lambda: [library.lapjv(costs) for costs in scores]


def torch_struct(scores: Any, transitions: Any) -> Callable[[], Any]:
    import torch
    from torch_struct import LinearChainCRF

    torch.set_num_threads(1)
    batch, n, tags = scores.shape
    # Its potentials are (batch, n - 1, next tag, tag); the first unary joins the first pair.
    potentials = np.broadcast_to(transitions.T, (batch, n - 1, tags, tags)).copy()
    potentials += scores[:, 1:, :, None]
    potentials[:, 0] += scores[:, 0, None, :]
    tensor = torch.tensor(potentials)
    return lambda: LinearChainCRF(tensor).argmax


def main() -> None:
    peer, path = sys.argv[1:]
    arrays = dict(np.load(path))
    run = {"lap": lap, "torch_struct": torch_struct}[peer](**arrays)
    run()
    best = float("inf")
    start = time.perf_counter()
    while time.perf_counter() - start < 1.0:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    print(best)


if __name__ == "__main__":
    main()
