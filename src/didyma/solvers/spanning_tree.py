"""SpanningTree: sets of edges that join all nodes, without a cycle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.solvers.graphs import EdgeStructure, edges_of, networkx, nodes_of
from didyma.structures.layout import Floats


class SpanningTree(EdgeStructure):
    """Spanning trees of an undirected graph: the best has the highest sum of scores.

    For the minimum spanning tree give negative lengths. Scores (B, n_edges), outputs boolean of the
    same shape. Over all pairs of nodes `Forest` has a kernel, with positive scores only.

    >>> SpanningTree([("a", "b"), ("b", "c"), ("a", "c")]).predict([-1.0, -2.0, -3.0])
    array([ True,  True, False])

    Args:
        graph: edges as pairs of nodes, or a graph of networkx; edges may be parallel.
    """

    def __init__(self, graph: Any) -> None:
        self.edges = edges_of(graph)
        if not networkx().is_connected(networkx().Graph(self.edges)):
            raise DataError("expected a connected graph: it has no spanning tree", field="graph")

    def argmax(self, scores: Floats) -> NDArray[np.int64] | None:  # type: ignore[override]
        """The best edges, each unless it closes a cycle (Kruskal's algorithm)."""
        self._check(scores)
        trees = networkx().utils.UnionFind(nodes_of(self.edges))
        parts = []
        for part in np.argsort(-scores, kind="stable"):
            a, b = self.edges[part]
            if scores[part] > -np.inf and trees[a] != trees[b]:
                trees.union(a, b)
                parts.append(int(part))
        return np.array(parts) if len(parts) == len(nodes_of(self.edges)) - 1 else None
