"""Learning through solvers: our losses and PyEPO's on the same data, with the same solver.

    python -m reproductions.decisions --python PATH     PATH: Python of an environment with pyepo
    python -m reproductions.decisions --quick           one cell of each problem, two seeds
    python -m reproductions.decisions --write           everything, into docs/RESULTS.md

Each run trains a linear predictor of costs by Adam, in batches of 32. Of all rates and checkpoints
the one with the lowest regret on validation instances (a quarter as many as for training) is tested
once, on 1,000 further instances. Seeds from 1000 on served for developing the protocol, seeds 0 to
9 are the evidence.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.peers import ONE_THREAD, environment
from numpy.typing import NDArray

import didyma
from didyma.errors import DataError
from didyma.nn import (
    BlackboxArgmax,
    FenchelYoungLoss,
    IdentityArgmax,
    ImplicitMLE,
    PerturbedArgmax,
    PerturbedLoss,
    PoolLoss,
    SPOPlusLoss,
)
from didyma.structures import Hypergraph, Plan, Planned, ShortestPath
from reproductions import study
from reproductions.decisions_tables import (
    PEER_CORE,
    PEER_OTHERS,
    SMOOTHED,
    SPO,
    TWO_STAGE,
    Cell,
    cost_table,
    sections_of,
    warm_up_table,
)
from reproductions.decisions_training import (
    BATCH,
    PROBLEMS,
    SAMPLES,
    SOLVE_RATIO,
    Criterion,
    Problem,
    Tasks,
    grid_edges,
    jointly,
    of_decisions,
    separately,
    squared_error,
    train,
)
from reproductions.kept import Kept

WORKER = Path(__file__).with_name("decisions_worker.py")
PEER = "PyEPO "
RATES = (0.01, 0.03, 0.1)
STEPS = 240
SIDE = 5
DEGREES, NOISES, SIZES = (1, 2, 4, 6), (0.0, 0.5), (100, 1000)


class Listed(Planned):
    """The outputs of a problem, found in a tree of their first parts; sums over them as well."""

    def __init__(self, outputs: NDArray[np.float64]) -> None:
        self.outputs = [tuple(np.flatnonzero(output).tolist()) for output in outputs]

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """A vertex for each beginning of an output."""
        plan = Plan(*shape)
        slots: dict[tuple[int, ...], int] = {(): plan.zero}
        for parts in self.outputs:
            for n in range(len(parts)):
                if parts[: n + 1] not in slots:
                    slots[parts[: n + 1]] = plan.add([(slots[parts[:n]], parts[n])])
        return plan.finish(plan.add([(slots[parts], plan.zero) for parts in self.outputs]))


class Counted(didyma.Structure):
    """The same outputs, with the number of argmaxes that were asked for."""

    def __init__(self, outputs: NDArray[np.float64]) -> None:
        self.outputs, self.n_calls = outputs, 0

    def argmax(self, scores: Any, **additional: Any) -> Any:
        """The best of the list."""
        self.n_calls += 1
        return np.flatnonzero(self.outputs[(self.outputs @ scores).argmax()])


# --- Losses ---------------------------------------------------------------------------------------


def of_scores(make: Callable[[Any], Any]) -> Callable[[Any], Criterion]:
    """A loss of predicted and true scores, which are negative costs."""

    def criterion(structure: Any) -> Criterion:
        loss = make(structure)
        return jointly(lambda p, c, w: loss(-p, -c, decision=w))

    return criterion


def of_decision(make: Callable[[Any], Any]) -> Callable[[Any], Criterion]:
    """A loss of predicted scores and the best decision."""

    def criterion(structure: Any) -> Criterion:
        loss = make(structure)
        return jointly(lambda p, c, w: loss(-p, w))

    return criterion


def after(make: Callable[[Any], Any], remembers: bool = False) -> Callable[[Any], Criterion]:
    """A layer, and the cost of its decisions."""

    def criterion(structure: Any) -> Criterion:
        def one(run: int) -> Criterion:
            layer = make(structure)
            return of_decisions(lambda predicted: layer(-predicted))

        return separately(one) if remembers else jointly(one(0))

    return criterion


def pool(kind: str) -> Callable[[Any], Criterion]:
    """A loss over a pool of outputs."""

    def criterion(structure: Any) -> Criterion:
        def one(run: int) -> Criterion:
            loss = PoolLoss(structure, kind, solve_ratio=SOLVE_RATIO, n_jobs=1)
            return lambda predicted, costs, decisions: loss(-predicted, -costs)

        return separately(one)

    return criterion


CORE: dict[str, Callable[[Any], Criterion]] = {
    TWO_STAGE: lambda structure: squared_error(),
    SPO: of_scores(lambda s: SPOPlusLoss(s, n_jobs=1)),
    SMOOTHED[0]: of_scores(lambda s: SPOPlusLoss(s, "sparsemap", n_jobs=1)),
    SMOOTHED[1]: of_scores(lambda s: SPOPlusLoss(s, "crf", n_jobs=1)),
    "SparseMAP": of_decision(lambda s: FenchelYoungLoss(s, "sparsemap", n_jobs=1)),
    "CRF": of_decision(lambda s: FenchelYoungLoss(s, "crf", n_jobs=1)),
    "perceptron": of_decision(lambda s: FenchelYoungLoss(s, "perceptron", n_jobs=1)),
    "PerturbedLoss": of_decision(lambda s: PerturbedLoss(s, n_samples=SAMPLES, n_jobs=1)),
    "BlackboxArgmax": after(lambda s: BlackboxArgmax(s, n_jobs=1)),
    "IdentityArgmax": after(lambda s: IdentityArgmax(s, n_jobs=1)),
}
OTHERS = {
    "PerturbedArgmax": after(lambda s: PerturbedArgmax(s, n_samples=SAMPLES, n_jobs=1)),
    "ImplicitMLE": after(lambda s: ImplicitMLE(s, n_jobs=1)),
    "ImplicitMLE, adaptive": after(lambda s: ImplicitMLE(s, adaptive=True, n_jobs=1), True),
    "pool, nce": pool("nce"),
    "pool, map": pool("map"),
    "pool, pairwise": pool("pairwise"),
    "pool, listwise": pool("listwise"),
}
METHODS = CORE | OTHERS
SUMS = (SMOOTHED[1], "CRF")  # need more of a structure than its argmax

# --- Runs -----------------------------------------------------------------------------------------


def structure_of(problem: str, data: Problem) -> Any:
    """Its solver."""
    if problem == "shortest path":
        return ShortestPath(grid_edges(SIDE), 0, SIDE * SIDE - 1)
    return Listed(data.outputs)


def weights_of(
    method: str, structure: Any, data: Problem, tasks: Tasks, peer: Peer | None, **how: Any
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Trained weights, as `train` returns them, and what it took; all data have these outputs."""
    if method.startswith(PEER):
        assert peer is not None
        return peer.train(method.removeprefix(PEER), data.outputs, tasks, how)
    torch.manual_seed(0)
    start = time.process_time()
    weights = train(tasks, METHODS[method](structure), **how)
    return weights, {"seconds": time.process_time() - start}


class Peer:
    """PyEPO in its own environment, in one process from the first training on."""

    def __init__(self, python: Path) -> None:
        self.python = python

    @cached_property
    def process(self) -> Any:
        """The worker."""
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen([self.python, WORKER], env=os.environ | ONE_THREAD, **pipes)

    def train(
        self, method: str, outputs: Any, tasks: Tasks, how: Mapping[str, Any]
    ) -> tuple[NDArray[np.float64], dict[str, float]]:
        """As `weights_of`."""
        with tempfile.TemporaryDirectory() as folder:
            tensors = {name: getattr(tasks, name) for name in ("features", "costs", "decisions")}
            np.savez(Path(folder, "tasks.npz"), outputs=outputs, **tensors)
            wanted = {"method": method, "seeds": list(tasks.seeds), **how}
            Path(folder, "settings.json").write_text(json.dumps(wanted))
            print(folder, file=self.process.stdin, flush=True)
            if not (answer := self.process.stdout.readline()):
                raise DataError(f"PyEPO's {method} failed: its worker says why above")
            return np.load(Path(folder, "weights.npy")), json.loads(answer)


def regret(data: Problem, weights: Any, rows: slice) -> float:
    """Normalised regret of a linear predictor on some instances."""
    return data.regret(data.features[rows] @ weights[:-1] + weights[-1], rows)


def chosen(data: Problem, n: int, weights: Any) -> dict[str, float]:
    """Test regret of the checkpoint and rate that are best on validation; of equals the first."""
    held_out, test = slice(n, n + n // 4), slice(n + n // 4, None)
    values = np.array([[regret(data, w, held_out) for w in by_rate] for by_rate in weights])
    checkpoint, rate = np.unravel_index(values.argmin(), values.shape)
    return {"regret": regret(data, weights[checkpoint, rate], test), "rate": RATES[rate]}


def run_cell(cell: Cell, method: str, seeds: Sequence[int], peer: Peer | None) -> dict[str, Any]:
    """Test regret and rate for each seed; data sets with the same outputs are trained at once."""
    data = [cell.draw(seed) for seed in seeds]
    shared = cell.problem != "knapsack"
    found = []
    for some in [range(len(seeds))] if shared else [[k] for k in range(len(seeds))]:
        own = [data[k] for k in some]
        tasks = Tasks.of(own, cell.n, [seeds[k] for k in some])
        structure = structure_of(cell.problem, own[0])
        how = {"rates": RATES, "steps": STEPS}
        weights, _ = weights_of(method, structure, own[0], tasks, peer, **how)
        found += [chosen(one, cell.n, weights[:, k]) for k, one in enumerate(own)]
    return {key: [one[key] for one in found] for key in ("regret", "rate")}


def warm_up(method: str, peer: Peer | None) -> dict[str, Any]:
    """The setting of PyEPO's notebook 03, for five first weights and orders of the same data."""
    n, seeds = 1000, range(42, 47)
    data = PROBLEMS["shortest path"](2 * n, 4, 0.5, 42)
    tasks = Tasks.of([data] * len(seeds), n, seeds)
    structure = structure_of("shortest path", data)
    how = {"rates": (0.01,), "steps": 20 * -(-n // BATCH)}
    weights, _ = weights_of(method, structure, data, tasks, peer, **how)
    return {"regret": [regret(data, w[0], slice(n, None)) for w in weights[-1]]}


def cost(method: str, peer: Peer | None) -> dict[str, float]:
    """The processor's milliseconds for a step of one run, and argmaxes for each instance."""
    data, steps = PROBLEMS["shortest path"](1000, 4, 0.5, 0), 64
    tasks = Tasks.of([data], 1000, [0])
    how: dict[str, Any] = {"rates": (0.01,), "steps": steps}
    structure = structure_of("shortest path", data)
    instances = sum(BATCH if step % 32 else 1000 % BATCH for step in range(1, steps + 1))
    weights_of(method, structure, data, tasks, peer, **{**how, "steps": 4})  # loads libraries
    _, took = weights_of(method, structure, data, tasks, peer, **how)
    calls = took.get("calls", math.nan)
    if not method.startswith(PEER) and method not in SUMS:
        counted = Counted(data.outputs)
        weights_of(method, counted, data, tasks, peer, **how)
        calls = counted.n_calls
    return {"ms": 1e3 * took["seconds"] / steps, "calls": calls / instances}


# --- Command line ---------------------------------------------------------------------------------


class NotKept(Exception):
    """A result that was not computed before."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = ("cache", "quick", "seed", "seeds")
    parser = study.Arguments(__doc__, *options, parts=("warm_up", "cost", "grid"))
    parser.set_defaults(seeds=10)
    parser.add_argument("--python", type=Path, help="of an environment with pyepo")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--degrees", nargs="+", type=int, default=DEGREES)
    parser.add_argument("--noises", nargs="+", type=float, default=NOISES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument(
        "--losses", nargs="+", choices=["core", "others"], default=["core", "others"]
    )
    parser.add_argument(
        "--libraries", nargs="+", choices=["ours", "pyepo"], default=["ours", "pyepo"]
    )
    parser.add_argument("--kept", action="store_true", help="tables of what the cache has")
    return parser.run(arguments, reproduce)


def methods_of(options: argparse.Namespace, peer: Peer | None) -> list[str]:
    """Names of the losses that were asked for."""
    ours = {"core": tuple(CORE), "others": tuple(OTHERS)}
    peers = {"core": PEER_CORE, "others": PEER_OTHERS}
    sets = []
    for losses in options.losses:
        sets += [ours[losses]] if "ours" in options.libraries else []
        sets += [peers[losses]] if "pyepo" in options.libraries and peer else []
    return [name for names in sets for name in names]


def reproduce(options: argparse.Namespace) -> None:
    """Run the parts that were asked for."""
    torch.set_num_threads(1)
    python = options.python or environment("pyepo")
    peer = Peer(python) if python else None
    if options.quick:
        options.degrees, options.noises, options.sizes = [4], [0.5], [100]
        options.seed, options.seeds = 1000, 2
    kept, methods = Kept(options.cache), methods_of(options, peer)

    def record(key: Any, compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any] | None:
        def one() -> Mapping[str, Any]:
            if options.kept:
                raise NotKept
            study.say(" ".join(map(str, key)))
            return compute()

        try:
            return kept.record(key, one)
        except NotKept:
            return None

    sections = {}
    if "warm_up" in options.parts:
        found = {name: record(["warm up", name], partial(warm_up, name, peer)) for name in methods}
        sections["decisions_warm_up"] = warm_up_table({k: v for k, v in found.items() if v})
    if "cost" in options.parts:
        found = {name: record(["cost", name], partial(cost, name, peer)) for name in methods}
        sections["decisions_cost"] = cost_table({k: v for k, v in found.items() if v})
    if "grid" in options.parts:
        sections |= sections_of(grid(options, methods, peer, record))
    study.publish(options, sections, seed=f"{options.seed} to {options.seed + options.seeds - 1}")


def grid(
    options: argparse.Namespace, methods: Iterable[str], peer: Peer | None, record: Any
) -> dict[Cell, dict[str, list[float]]]:
    """Test regrets by cell and method, the cells of one problem after those of another."""
    choices = options.problems, options.sizes, options.noises, options.degrees
    cells = [Cell(problem, degree, noise, n) for problem, n, noise, degree in product(*choices)]
    results: dict[Cell, dict[str, list[float]]] = {cell: {} for cell in cells}
    seeds = list(range(options.seed, options.seed + options.seeds))
    for cell, method in product(cells, methods):
        key = [*asdict(cell).values(), method, seeds]
        found = record(key, partial(run_cell, cell, method, seeds, peer))
        if found:
            results[cell][method] = found["regret"]
    return {cell: found for cell, found in results.items() if found}


if __name__ == "__main__":
    raise SystemExit(main())
