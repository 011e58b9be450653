"""SparseMAP beside lp-sparsemap, on whole structures and on factor graphs, one thread.

It is installed from its wheels, which are for Python 3.8 and 3.9 alone: its archive lacks sources
that it is built from. Without one of these on the path as ``python3.9`` or ``python3.8`` it is
absent. Its time is that of solves and products in C++; ours is that of the public functions, on
whole batches but for one row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.local import LOGIC, grid
from benchmarks.peers import ask
from benchmarks.row import Row
from benchmarks.sparsemap import instances
from benchmarks.timing import blas_threads, fastest
from didyma import local_sparsemap, sparsemap
from didyma.structures import FactorGraph

WORKER = Path(__file__).with_name("lp_sparsemap_worker.py")
PYTHONS = ("python3.9", "python3.8")
SECONDS = 1.0  # of each measurement


@dataclass(frozen=True)
class Case:
    """A batch here, forward alone and with a gradient, and all that the worker needs of it."""

    kind: str
    forward: Callable[[], Any]
    both: Callable[[], Any]
    arrays: dict[str, Any]


def run(scale: float = 1.0) -> list[Row]:
    cases: dict[str, Callable[[], Case]] = {
        "sequence 25x5": lambda: _whole("sequence", 25, 5),
        "sequence 50x20": lambda: _whole("sequence", 50, 20),
        "tree 10": lambda: _whole("tree", 10, 0),
        "tree 20": lambda: _whole("tree", 20, 0),
        "8 variables, logic": lambda: _graph(FactorGraph(8, logic=LOGIC), 32),
        "8 variables, logic, one instance alone": lambda: _graph(FactorGraph(8, logic=LOGIC), 1),
        "grid 4 x 4": lambda: _graph(grid(4), 20),
        "grid 8 x 8": lambda: _graph(grid(8), 8),
    }
    if scale < 1.0:
        cases = {name: cases[name] for name in ("sequence 25x5", "tree 10", "8 variables, logic")}
    with blas_threads(1):
        return [
            row
            for name, case in cases.items()
            for row in _rows(name, case(), min(SECONDS, SECONDS * scale))
        ]


def _rows(name: str, case: Case, seconds: float) -> Iterator[Row]:
    forward, both = fastest(case.forward, seconds), fastest(case.both, seconds)
    yield Row(f"{name}: an instance", 1e3 * forward / len(case.arrays["scores"]), "ms")
    found = ask(WORKER, ["lp-sparsemap"], case.kind, *PYTHONS, **case.arrays)
    if found is None:
        yield Row.absent(f"{name}: lp-sparsemap, which needs Python 3.8 or 3.9")
        return
    solves, products, marginals, gradients = found
    yield Row.at_least(f"{name}: lp-sparsemap over ours", solves / forward, "x", 1)
    yield Row.at_least(f"{name}: with a gradient", (solves + products) / both, "x", 1)
    yield Row(f"{name}: largest difference of marginals", marginals, "")
    yield Row(f"{name}: relative difference of gradients", gradients, "")


def _whole(name: str, n: int, tags: int) -> Case:
    """Parts that belong to no structure, such as arcs into the root, are not variables there."""
    structure, scores, additional = instances("deviation 1", name, n, tags, 32)
    directions = np.random.default_rng(0).standard_normal(scores.shape)

    def both() -> Any:
        u, solution = sparsemap(scores, structure, return_solution=True, n_jobs=1, **additional)
        return u, solution.vjp(directions)[0]

    def variables(parts: Any) -> Any:
        if name == "tree":
            words = np.arange(n)
            roots, parts = parts[:, 1:, 0], parts[:, 1:, 1:].copy()
            parts[:, words, words] = roots
        return parts.reshape(len(parts), -1)

    u, gradients = both()
    given = {"scores": scores, "marginals": u, "directions": directions, "gradients": gradients}
    return Case(
        name,
        lambda: sparsemap(scores, structure, n_jobs=1, **additional),
        both,
        {key: variables(parts) for key, parts in given.items()}
        | {"shape": np.array([n, tags])}
        | additional,
    )


def _graph(graph: FactorGraph, batch: int) -> Case:
    """There a variable has one score and one marginal u, here two: s₀(1 − u) + s₁u − u² + u − ½.

    Half of that is its objective with the score (s₁ − s₀ + 1)/2; tables of pairs become the score
    of both variables being true likewise, and what is left of them joins the variables' scores.
    """
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(batch, *graph.score_shape))
    pairs = rng.normal(size=(batch, len(graph.edges), 2, 2))
    directions = np.zeros(scores.shape)
    directions[..., 1] = rng.standard_normal(scores.shape[:-1])

    def both() -> Any:
        solution = local_sparsemap(scores, graph, pairwise=pairs)
        return solution.marginals, solution.vjp(directions)[0]

    single = 1.0 + scores[..., 1] - scores[..., 0]
    for e, (i, j) in enumerate(graph.edges):
        single[:, i] += pairs[:, e, 1, 0] - pairs[:, e, 0, 0]
        single[:, j] += pairs[:, e, 0, 1] - pairs[:, e, 0, 0]
    together = pairs[..., 1, 1] - pairs[..., 1, 0] - pairs[..., 0, 1] + pairs[..., 0, 0]
    u, gradients = both()
    logic = [(one.variables, one.low, one.high) for one in graph.logic]
    return Case(
        "graph",
        lambda: local_sparsemap(scores, graph, pairwise=pairs),
        both,
        {
            "scores": single / 2,
            "pairs": together / 2,
            "edges": np.array(graph.edges, int).reshape(-1, 2),
            "logic": json.dumps(logic),
            "marginals": u[..., 1],
            "directions": directions[..., 1],
            "gradients": 2 * gradients[..., 1],
        },
    )
