"""Layers of a network, forward and backward on batches of 32, beside those of other libraries.

All of it in one run, on one thread, in double precision: softmax and our layers here, torch-struct
and entmax in the peers' own environment; what cannot be installed is absent. Softmax, sparsemax and
entmax know no structure: they normalise the last axis. Rows of lp-sparsemap are a benchmark of
their own, without torch, for which it would need an old version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers import ask
from benchmarks.row import Row
from benchmarks.structures import Case
from benchmarks.timing import fastest
from didyma.execution import threads
from didyma.nn import SparseMAP, StructureDistribution
from didyma.structures import Chain, Constituency, Matching, ProjectiveTree, Segmentation, Tree

WORKER = Path(__file__).with_name("layer_worker.py")
BATCH = 32
SECONDS = 1.0  # of each measurement


CASES = (
    Case("sequence 25x5", Chain(), (25, 5), {"transitions": (5, 5)}, "LinearChainCRF"),
    Case("sequence 50x20", Chain(), (50, 20), {"transitions": (20, 20)}, "LinearChainCRF"),
    Case("segments 20x5x3", Segmentation(), (20, 5, 3), peer="SemiMarkovCRF"),
    Case("binary tree 12x3", Constituency(), (12, 12, 3), peer="TreeCRF"),
    Case("projective tree 20", ProjectiveTree(), (21, 21), peer="DependencyCRF"),
    Case("tree 10", Tree(single_root=True), (11, 11), peer="NonProjectiveDependencyCRF"),
    Case("tree 20", Tree(single_root=True), (21, 21), peer="NonProjectiveDependencyCRF"),
    Case("tree 80", Tree(single_root=True), (81, 81), peer="NonProjectiveDependencyCRF"),
    Case("matching 10", Matching(), (10, 10)),
)


def run(scale: float = 1.0) -> list[Row]:
    with threads(1):
        return [
            row
            for case in (CASES if scale >= 1.0 else CASES[:1])
            for row in _rows(case, min(SECONDS, SECONDS * scale))
        ]


def _rows(case: Case, seconds: float) -> Iterator[Row]:
    rng = np.random.default_rng(len(case.name))
    arrays = {"scores": rng.standard_normal((BATCH, *case.shape))}
    arrays |= {name: rng.standard_normal(shape) for name, shape in case.additional.items()}
    scores = torch.tensor(arrays["scores"], requires_grad=True)
    additional = {name: torch.tensor(arrays[name]) for name in case.additional}
    layer = SparseMAP(case.structure, n_jobs=1)
    softmax = _pass(lambda: scores.softmax(-1), scores, seconds)
    yield Row(f"{case.name}: softmax", 1e3 * softmax, "ms")
    for name in ("sparsemax", "entmax15"):
        flat = ask(WORKER, ["torch==2.13.0", "entmax"], name, scores=arrays["scores"])
        label = f"{case.name}: {name}"
        yield Row(label, 1e3 * flat[0], "ms") if flat else Row.absent(label)
    sparse = _pass(lambda: layer(scores, **additional), scores, seconds)
    yield Row(f"{case.name}: SparseMAP", 1e3 * sparse, "ms")
    if not case.peer:
        return

    def distribution() -> StructureDistribution:
        return StructureDistribution(case.structure, scores, **additional)

    ours = _pass(lambda: distribution().marginals, scores, seconds)
    yield Row(f"{case.name}: marginals of p ∝ exp(score)", 1e3 * ours, "ms")
    label = f"{case.name}: torch-struct's {case.peer}"
    theirs = ask(WORKER, ["torch==2.13.0", "numpy", "torch-struct"], case.peer, **arrays)
    if theirs is None:
        yield Row.absent(label)
        return
    total = distribution().log_partition[0].item()
    yield Row.at_least(f"{label} over our marginals", theirs[0] / ours, "x", 1)
    yield Row(f"{label} over our SparseMAP", theirs[0] / sparse, "x")
    yield Row(f"{label}, relative difference of log Z", abs(theirs[1] / total - 1), "")


def _pass(layer: Callable[[], Any], scores: Any, seconds: float) -> float:
    """The best time of a pass forward and backward."""
    weights = torch.randn(scores.shape, dtype=scores.dtype)

    def both() -> None:
        scores.grad = None
        (layer() * weights).sum().backward()

    return fastest(both, seconds)
