"""GraphMatching: sets of edges of which no two share a node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.solvers.graphs import EdgeStructure, edges_of, networkx, nodes_of, refuse_loops
from didyma.structures.layout import Floats


class GraphMatching(EdgeStructure):
    """Matchings of any undirected graph, by Edmonds' blossoms; of two sides `Matching` is faster.

    Scores (B, n_edges), outputs boolean of the same shape. Any set of edges without a common node
    is an output, so that the best one has only edges of positive scores; with ``perfect`` every
    node has an edge. O(n³) in Python.

    >>> triangle = [("a", "b"), ("b", "c"), ("a", "c")]
    >>> GraphMatching(triangle).predict([1.0, 3.0, 2.0])
    array([False,  True, False])

    Args:
        graph: edges as pairs of nodes, or a graph of networkx; edges may be parallel.
        perfect: whether every node must have an edge.
    """

    def __init__(self, graph: Any, perfect: bool = False) -> None:
        self.edges, self.perfect = refuse_loops(edges_of(graph)), perfect

    def argmax(self, scores: Floats) -> NDArray[np.int64] | None:  # type: ignore[override]
        """The matching of the highest sum."""
        self._check(scores)
        best = self._best_of_parallel(scores)
        graph = networkx().Graph()
        graph.add_weighted_edges_from((*pair, float(scores[part])) for pair, part in best.items())
        pairs = networkx().max_weight_matching(graph, maxcardinality=self.perfect)
        if self.perfect and 2 * len(pairs) < len(nodes_of(self.edges)):
            return None
        return np.array(sorted(best[frozenset(pair)] for pair in pairs), np.int64)
