"""Train through PyEPO's losses, in an environment of its own where didyma does not exist.

    python decisions_worker.py

reads names of folders, one a line. From each it takes tasks.npz (features, costs, decisions,
outputs) and settings.json (method, seeds, rates, steps), writes the weights at each checkpoint to
weights.npy, and prints the processor's seconds of the training and the calls of the
solver as a line of JSON.

    python decisions_worker.py --data PROBLEM N DEGREE NOISE SEED FILE

writes what PyEPO's own generator draws to an .npz file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyepo
import torch
from decisions_training import (
    SAMPLES,
    SOLVE_RATIO,
    Criterion,
    Tasks,
    jointly,
    of_decisions,
    separately,
    train,
)
from pyepo.model.opt import optModel


class Listed(optModel):
    """A problem by the list of its outputs: the solver is one product and one argmin."""

    def __init__(self, outputs: Any) -> None:
        self.outputs, self.n_calls = outputs, 0
        super().__init__()

    def _getModel(self) -> tuple[None, list[int]]:
        return None, list(range(self.outputs.shape[1]))

    def setObj(self, c: Any) -> None:
        """Costs of the parts."""
        self.costs = np.asarray(c, np.float64)

    def solve(self) -> tuple[Any, float]:
        """The best output and its cost."""
        self.n_calls += 1
        values = self.outputs @ self.costs
        best = values.argmin()
        return self.outputs[best], values[best]


@dataclass(frozen=True)
class Seen:
    """What a loss over a pool asks of a data set: decisions that the pool begins with."""

    sols: Any


Make = Callable[[Listed, Any], Criterion]
"""The loss over a solver; the best decisions of the training instances of each run are known."""


def spo_plus(model: Listed, decisions: Any) -> Criterion:
    """SPO+."""
    loss = pyepo.func.SPOPlus(model)
    return jointly(lambda p, c, w: loss(p, c, w, (c * w).sum(1, keepdim=True)))


def supervised(name: str, **options: Any) -> Make:
    """A loss of predicted costs and the best decision."""

    def make(model: Listed, decisions: Any) -> Criterion:
        loss = getattr(pyepo.func, name)(model, **options)
        return jointly(lambda p, c, w: loss(p, w))

    return make


def layer(name: str, **options: Any) -> Make:
    """A layer, and the cost of its decisions."""
    return lambda model, decisions: jointly(
        of_decisions(getattr(pyepo.func, name)(model, **options))
    )


def adaptive(model: Listed, decisions: Any) -> Criterion:
    """Adaptive I-MLE, whose step is a memory."""
    return separately(lambda run: of_decisions(pyepo.func.AIMLE(model, n_samples=1)))


def pool(name: str, by_costs: bool = False) -> Make:
    """A loss over a pool, of the true costs or of the best decision."""

    def make(model: Listed, decisions: Any) -> Criterion:
        def one(run: int) -> Criterion:
            seen = Seen(decisions[run])
            loss = getattr(pyepo.func, name)(model, solve_ratio=SOLVE_RATIO, dataset=seen)
            return lambda p, c, w: loss(p, c if by_costs else w)

        return separately(one)

    return make


METHODS: dict[str, Make] = {
    "SPO+": spo_plus,
    "PFYL": supervised("perturbedFenchelYoung", n_samples=SAMPLES),
    "RFYL": supervised("regularizedFrankWolfeFenchelYoung", max_iter=20),
    "DPO": layer("perturbedOpt", n_samples=SAMPLES),
    "DBB": layer("blackboxOpt"),
    "NID": layer("negativeIdentity"),
    "I-MLE": layer("implicitMLE", n_samples=1),
    "AI-MLE": adaptive,
    "NCE": pool("NCE"),
    "CMAP": pool("contrastiveMAP"),
    "LTR pairwise": pool("pairwiseLearningToRank", by_costs=True),
    "LTR listwise": pool("listwiseLearningToRank", by_costs=True),
}


def generate(problem: str, n: str, degree: str, noise: str, seed: str, path: str) -> None:
    """PyEPO's data, 5 features: costs, features and what else there is."""
    size = {"shortest path": ((5, 5),), "knapsack": (16, 2), "tour": (7,)}[problem]
    module = {"shortest path": "shortestpath", "knapsack": "knapsack", "tour": "tsp"}[problem]
    draw = getattr(pyepo.data, module).genData
    *_, features, costs = draw(
        int(n), 5, *size, deg=int(degree), noise_width=float(noise), seed=int(seed)
    )
    np.savez(path, features=features, costs=costs)


def work(folder: Path) -> dict[str, float]:
    """Do what a folder asks for."""
    torch.manual_seed(0)
    wanted = json.loads((folder / "settings.json").read_text())
    arrays = np.load(folder / "tasks.npz")
    tensors = (torch.tensor(arrays[name]) for name in ("features", "costs", "decisions"))
    tasks, model = Tasks(*tensors, wanted["seeds"]), Listed(arrays["outputs"])
    decisions = tasks.decisions.repeat_interleave(len(wanted["rates"]), dim=0)
    criterion = METHODS[wanted["method"]](model, decisions)
    start = time.process_time()
    weights = train(tasks, criterion, wanted["rates"], wanted["steps"])
    seconds = time.process_time() - start
    np.save(folder / "weights.npy", weights)
    return {"seconds": seconds, "calls": model.n_calls}


def main() -> None:
    """Write data, or train until there is no further folder."""
    if sys.argv[1:2] == ["--data"]:
        return generate(*sys.argv[2:])
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(work(Path(line.rstrip("\n")))), flush=True)
    return None


if __name__ == "__main__":
    main()
