"""Graphs as users have them: of networkx, or pairs of nodes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from didyma.errors import DataError, MissingExtraError
from didyma.structure import Structure
from didyma.structures.layout import Floats

__all__ = ["EdgeStructure", "edges_of", "networkx", "nodes_of"]

Edges = tuple[tuple[Hashable, Hashable], ...]


def networkx() -> Any:
    """The module, which is imported when it is used."""
    try:
        import networkx
    except ImportError:
        raise MissingExtraError("a structure over graphs", "solvers") from None
    return networkx


def edges_of(graph: Any) -> Edges:
    """All edges as pairs, in the order of the scores: that of ``graph.edges``."""
    pairs = graph.edges() if callable(getattr(graph, "edges", None)) else graph
    edges = tuple(tuple(edge) for edge in pairs)
    if not edges:
        raise DataError("expected at least one edge", field="graph")
    for edge in edges:
        if len(edge) != 2:
            raise DataError(f"expected pairs of nodes, found {edge!r}", field="graph")
    return edges


def nodes_of(edges: Sequence[tuple[Hashable, Hashable]]) -> tuple[Hashable, ...]:
    """All nodes, in the order in which edges name them."""
    return tuple(dict.fromkeys(node for edge in edges for node in edge))


class EdgeStructure(Structure):
    """Sets of edges of one graph: scores (B, n_edges), outputs boolean of the same shape."""

    reads_infinity = True
    edges: Edges

    def _check(self, scores: Floats) -> None:
        if scores.shape != (len(self.edges),):
            raise DataError(
                f"expected {len(self.edges)} scores, one for each edge, found shape {scores.shape}",
                field="scores",
            )

    def _best_of_parallel(self, scores: Floats) -> dict[frozenset[Hashable], int]:
        """Of each pair of neighbours the best edge that is not forbidden."""
        best: dict[frozenset[Hashable], int] = {}
        for part in np.argsort(scores, kind="stable"):
            if scores[part] > -np.inf:
                best[frozenset(self.edges[part])] = int(part)
        return best

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.edges)} edges)"


def refuse_loops(edges: Edges) -> Edges:
    """The edges, none of which joins a node to itself."""
    for a, b in edges:
        if a == b:
            raise DataError(f"expected no edge from a node to itself, found {a!r}", field="graph")
    return edges
