"""Factor graphs and compositions by prices, against the interior point method and a tree alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.row import Row
from benchmarks.timing import measure
from didyma import local_sparsemap, sparsemap
from didyma.polytope.interior import Constraints, interior_point
from didyma.structures import (
    AtLeastOne,
    AtMost,
    Composition,
    ExactlyOne,
    Factor,
    FactorGraph,
    Implies,
    Tree,
)

LOGIC = [ExactlyOne([0, 1, 2]), AtMost(2, [2, 3, 4, 5]), AtLeastOne([5, 6, 7]), Implies(0, 7)]
BATCH, WORDS = 32, 20


def run(scale: float = 1.0) -> list[Row]:
    return [*_graphs(scale), *_trees(scale), *_rounding(scale)]


def grid(n: int) -> FactorGraph:
    at = np.arange(n * n).reshape(n, n)
    across = zip(at[:, :-1].ravel().tolist(), at[:, 1:].ravel().tolist())
    down = zip(at[:-1].ravel().tolist(), at[1:].ravel().tolist())
    return FactorGraph(n * n, edges=[*across, *down])


def _sparse(n: int) -> FactorGraph:
    rng = np.random.default_rng(n)
    edges = [tuple(rng.choice(n, 2, replace=False).tolist()) for _ in range(2 * n)]
    return FactorGraph(n, edges=edges, logic=[AtMost(n // 4, range(n))])


def _graphs(scale: float) -> Iterator[Row]:
    """Time of the interior point method over ours; both are certified to 1e-10."""
    graphs: list[tuple[str, FactorGraph, int, float]] = [
        ("8 variables, logic", FactorGraph(8, logic=LOGIC), 20, 9.0),
        ("grid 4 x 4", grid(4), 20, 3.0),
        ("grid 8 x 8", grid(8), 8, 2.0),
        ("grid 20 x 20", grid(20), 2, 2.0),
        ("200 variables, 400 pairs, a budget", _sparse(200), 2, 2.0),
    ]
    for name, graph, batch, least in graphs if scale >= 1.0 else graphs[:2]:
        rng = np.random.default_rng(0)
        scores = rng.normal(size=(batch, *graph.score_shape))
        pairs = rng.normal(size=(batch, len(graph.edges), 2, 2))
        parts = np.hstack([scores.reshape(batch, -1), pairs.reshape(batch, -1)])
        solution = local_sparsemap(scores, graph, pairwise=pairs)

        def interior(graph: FactorGraph = graph, parts: Any = parts) -> list[Any]:
            polytope = Constraints(graph)
            return [interior_point(polytope, one, 1.0, 1e-10, 100) for one in parts]

        for point, own in zip(interior(), solution.marginals):
            assert np.abs(point.parts[: own.size] - own.ravel()).max() < 1e-6
        prices = partial(local_sparsemap, scores, graph, pairwise=pairs)
        seconds = measure({"prices": prices, "interior": interior}, 5)
        yield Row(f"{name}: an instance", 1e3 * seconds.best("prices") / batch, "ms")
        speed = seconds.ratio("interior", "prices")
        yield Row.at_least(f"{name}: interior point over prices", speed, "x", least)


def _trees(scale: float) -> Iterator[Row]:
    """One root and a budget of far arcs, against the tree alone."""
    n = (WORDS if scale >= 1.0 else 6) + 1
    arcs = np.arange(n * n).reshape(n, n)
    far = arcs[1:, 1:][np.abs(np.subtract.outer(np.arange(1, n), np.arange(1, n))) > n // 3]
    logic = [ExactlyOne(arcs[1:, 0]), AtMost(2, far)]
    graph = Composition(n * n, [Factor(Tree(), arcs)], logic=logic)
    scores = np.random.default_rng(n).normal(size=(BATCH, n * n))
    local_sparsemap(scores, graph)
    alone = partial(sparsemap, scores.reshape(BATCH, n, n), Tree(), n_jobs=1)
    work = {"composed": partial(local_sparsemap, scores, graph), "tree": alone}
    seconds = measure(work, 5)
    yield Row(f"tree {n - 1} with two constraints", 1e3 * seconds.best("composed") / BATCH, "ms")
    yield Row(f"tree {n - 1}: composed over alone", seconds.ratio("composed", "tree"), "x")


def _rounding(scale: float) -> Iterator[Row]:
    """Whether rounded marginals are the nearest output, of graphs small enough to list all."""
    rng = np.random.default_rng(0)
    states = np.array(list(product((0, 1), repeat=8)))
    n, nearest = max(2, round(200 * scale)), 0
    for _ in range(n):
        logic = [
            AtMost(2, rng.choice(8, 4, replace=False)),
            ExactlyOne(rng.choice(8, 3, replace=False)),
            AtLeastOne(rng.choice(8, 3, replace=False)),
            Implies(*rng.choice(8, 2, replace=False)),
        ]
        graph = FactorGraph(8, logic=logic)
        allowed = states[np.all([one.holds(states) for one in graph.logic], axis=0)]
        solution = local_sparsemap(rng.normal(size=(8, 2)), graph)
        u, x = solution.marginals[:, 1], solution.rounded()[:, 1]
        assert (allowed == x).all(axis=1).any()
        nearest += ((x - u) ** 2).sum() <= ((allowed - u) ** 2).sum(axis=1).min() + 1e-9
    yield Row.at_least(f"{n} graphs rounded: the nearest output", 100.0 * nearest / n, "%", 95)
