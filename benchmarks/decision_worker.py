"""A step of PyEPO's SPO+ around a solver: ``python decision_worker.py SOLVER BATCH.npz``.

It runs in the peers' own environment, on one thread, and prints the seconds of a step forward and
backward, those of it outside of the solver, and the loss.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyepo
import torch
from decision_solvers import SOLVERS, Timed, measure
from pyepo.model.opt import optModel


class Path(optModel):
    """Shortest paths by a given solver."""

    def __init__(self, solver: Timed, n_edges: int) -> None:
        self.solver, self.n_edges = solver, n_edges
        super().__init__()

    def _getModel(self) -> tuple[None, list[int]]:
        return None, list(range(self.n_edges))

    def setObj(self, c: Any) -> None:
        """Costs of the edges."""
        self.costs = np.asarray(c, np.float64)

    def solve(self) -> tuple[Any, float]:
        """The best path and its length."""
        flags = self.solver(self.costs)
        return flags, float(self.costs @ flags)


def main() -> None:
    """Measure a step."""
    torch.set_num_threads(1)
    name, path = sys.argv[1:]
    arrays = {key: torch.tensor(array) for key, array in np.load(path).items()}
    solver = Timed(SOLVERS[name](arrays["edges"].numpy()))
    loss = pyepo.func.SPOPlus(Path(solver, len(arrays["edges"])))
    predicted, true, gold = (arrays[key] for key in ("predicted", "true", "gold"))
    predicted.requires_grad_()
    best = (true * gold).sum(1, keepdim=True)

    def step() -> None:
        predicted.grad = None
        loss(predicted, true, gold, best).backward()

    seconds = measure(step, solver, float(arrays["seconds"]))
    print(*seconds, loss(predicted, true, gold, best).item())


if __name__ == "__main__":
    main()
