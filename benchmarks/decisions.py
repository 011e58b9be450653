"""A training step through a solver, beside PyEPO's with the same one; what passes outside of it.

SPO+ forward and backward for a batch of 32 shortest paths on a 5x5 grid, on one thread, in double
precision. The solver is the same Python function in both libraries, and is timed inside of the
step: the rest is the library's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import didyma
from benchmarks.decision_solvers import SOLVERS, Timed, measure
from benchmarks.peers import ask
from benchmarks.row import Row
from benchmarks.timing import fastest
from didyma.execution import threads
from didyma.nn import PoolLoss, SPOPlusLoss
from didyma.structures import ShortestPath

WORKER = Path(__file__).with_name("decision_worker.py")
BATCH = 32
SECONDS = 1.0  # of each measurement
OUTSIDE = 20.0  # µs for an instance
GRID = ShortestPath.grid(5, 5, diagonal=False)


class Solved(didyma.Structure):
    """Shortest paths by a given solver."""

    def __init__(self, solver: Timed) -> None:
        self.solver = solver

    def argmax(self, scores: Any, **additional: Any) -> Any:
        """Edges of the best path."""
        return np.flatnonzero(self.solver(-scores))


def run(scale: float = 1.0) -> list[Row]:
    rng = np.random.default_rng(0)
    true, predicted = (
        ((rng.normal(size=(BATCH, len(GRID.edges))) + 3) / 3.5) ** 4 for _ in range(2)
    )
    gold = GRID.predict(-true).astype(np.float64)
    arrays = {"true": true, "predicted": predicted, "gold": gold}
    seconds = min(SECONDS, SECONDS * scale)
    with threads(1):
        rows = [row for name in SOLVERS for row in _rows(name, arrays, seconds)]
        return rows + list(_native(arrays, seconds))


def _rows(name: str, arrays: dict[str, Any], seconds: float) -> Iterator[Row]:
    edges = np.array(GRID.edges)
    solver = Timed(SOLVERS[name](edges))
    loss = SPOPlusLoss(Solved(solver), n_jobs=1)
    step, value = _step(loss, arrays, decision=torch.tensor(arrays["gold"]))
    ours, outside = measure(step, solver, seconds)
    yield Row(f"{name}: a step", 1e3 * ours, "ms")
    yield Row.at_most(f"{name}: outside of the solver", 1e6 * outside / BATCH, "µs", OUTSIDE)
    yield Row(f"{name}: share outside of the solver", 100 * outside / ours, "%")
    found = ask(WORKER, PACKAGES, name, edges=edges, seconds=np.array(seconds), **arrays)
    if found is None:
        yield Row.absent(f"{name}: PyEPO's step over ours")
        return
    yield Row.at_least(f"{name}: PyEPO's step over ours", found[0] / ours, "x", 0.95)
    yield Row(f"{name}: PyEPO outside of the solver", 1e6 * found[1] / BATCH, "µs")
    yield Row(f"{name}: relative difference of the loss", abs(found[2] / value - 1), "")


def _native(arrays: dict[str, Any], seconds: float) -> Iterator[Row]:
    """With our kernel there is no outside: all of it, for each instance."""
    gold = torch.tensor(arrays["gold"])
    losses = {
        "SPO+": (SPOPlusLoss(GRID, n_jobs=1), {"decision": gold}),
        "SPO+, the best decision solved for": (SPOPlusLoss(GRID, n_jobs=1), {}),
        "smoothed SPO+, SparseMAP": (SPOPlusLoss(GRID, "sparsemap", n_jobs=1), {"decision": gold}),
        "pool, nce, a tenth solved": (PoolLoss(GRID, solve_ratio=0.1, n_jobs=1), {}),
    }
    for name, (loss, options) in losses.items():
        step, _ = _step(loss, arrays, **options)
        took = 1e6 * fastest(step, seconds) / BATCH
        yield Row.at_most(f"ShortestPath: {name}, solver included", took, "µs", OUTSIDE)


def _step(loss: Any, arrays: dict[str, Any], **options: Any) -> tuple[Any, float]:
    """A step, and the loss."""
    predicted = torch.tensor(arrays["predicted"], requires_grad=True)
    true = torch.tensor(-arrays["true"])

    def step() -> None:
        predicted.grad = None
        loss(-predicted, true, **options).backward()

    return step, loss(-predicted, true, **options).item()


PACKAGES = ["torch==2.13.0", "pyepo"]
