"""Solvers of shortest paths as users write them, and the time of a training step around them.

Our benchmark and the worker in PyEPO's environment share this file: NumPy and SciPy are enough. All
paths of the grid have equally many edges, so that a constant added to all costs, which makes them
what Dijkstra's algorithm asks for, changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

Solver = Callable[[Any], Any]


def dijkstra(edges: Any) -> Solver:
    """Dijkstra's algorithm of SciPy, over a matrix whose entries are replaced."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n = int(edges.max()) + 1
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    indptr = np.searchsorted(edges[order, 0], np.arange(n + 1))
    edge_of = {(int(a), int(b)): k for k, (a, b) in enumerate(edges)}

    def solve(costs: Any) -> Any:
        lengths = (costs - costs.min() + 1.0)[order]
        graph = csr_array((lengths, edges[order, 1], indptr), (n, n))
        _, before = dijkstra(graph, indices=0, return_predecessors=True)
        flags, node = np.zeros(len(edges)), n - 1
        while node:
            flags[edge_of[int(before[node]), node]] = 1.0
            node = int(before[node])
        return flags

    return solve


def highs(edges: Any) -> Solver:
    """HiGHS of SciPy, over the flow from the first node to the last."""
    from scipy.optimize import linprog

    n = int(edges.max()) + 1
    balance = np.zeros((n, len(edges)))
    balance[edges[:, 0], np.arange(len(edges))] = 1.0
    balance[edges[:, 1], np.arange(len(edges))] = -1.0
    supply = np.zeros(n)
    supply[0], supply[-1] = 1.0, -1.0

    def solve(costs: Any) -> Any:
        return linprog(costs, A_eq=balance, b_eq=supply, bounds=(0, 1), method="highs").x.round()

    return solve


SOLVERS = {"Dijkstra of SciPy": dijkstra, "HiGHS": highs}


class Timed:
    """A solver, and the seconds that it has taken."""

    def __init__(self, solve: Solver) -> None:
        self.solve, self.seconds = solve, 0.0

    def __call__(self, costs: Any) -> Any:
        start = time.process_time()
        flags = self.solve(costs)
        self.seconds += time.process_time() - start
        return flags


def measure(step: Callable[[], Any], solver: Timed, seconds: float) -> tuple[float, float]:
    """The best time of a step, and the best of what passes in a step outside of the solver.

    All runs on one thread, so that the processor's time is that of the step, whoever else runs.
    """
    step()
    best, outside, begun = float("inf"), float("inf"), time.process_time()
    while time.process_time() - begun < seconds or best == float("inf"):
        before, start = solver.seconds, time.process_time()
        step()
        took = time.process_time() - start
        best, outside = min(best, took), min(outside, took - (solver.seconds - before))
    return best, outside
