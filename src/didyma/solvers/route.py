"""Route: paths between two nodes of any directed graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.solvers.graphs import EdgeStructure, edges_of, networkx, nodes_of
from didyma.structures.layout import Floats, Layout

__all__ = ["Route"]


class Route(EdgeStructure):
    """Paths from ``source`` to ``target`` in a directed graph, with or without cycles.

    Scores (B, n_edges) are negative lengths, outputs boolean of the same shape. Where no length is
    negative the shortest path is found by Dijkstra's algorithm, else by that of Bellman and Ford. A
    cycle of negative length is an error: no path is shortest, and the shortest without a cycle is
    NP-hard. In a graph without cycles `didyma.structures.ShortestPath` is faster, and takes any
    lengths.

    >>> route = Route([("a", "b"), ("b", "a"), ("b", "c"), ("a", "c")], "a", "c")
    >>> route.predict([-1.0, -1.0, -1.0, -3.0])
    array([ True, False,  True, False])

    Each instance may have its own ends, given by keyword: ``source=[...], target=[...]``.

    Args:
        graph: edges as pairs of nodes, or a graph of networkx; an undirected one is walked both
            ways, and its edges have one score each.
        source, target: nodes; may be left to the instances.
        directed: whether edges are one-way; None means as networkx says, or that they are.
    """

    data = ("source", "target")

    def __init__(
        self,
        graph: Any,
        source: Hashable = None,
        target: Hashable = None,
        directed: bool | None = None,
    ) -> None:
        self.edges = edges_of(graph)
        if directed is None:
            is_directed = getattr(graph, "is_directed", None)
            directed = is_directed() if is_directed else True
        self.source, self.target, self.directed = source, target, directed
        self._parts: dict[tuple[Hashable, Hashable], list[int]] = {}
        for part, (a, b) in enumerate(self.edges):
            for edge in [(a, b)] if directed else [(a, b), (b, a)]:
                self._parts.setdefault(edge, []).append(part)
        self._graph = networkx().DiGraph(self._parts.keys())
        nodes = set(nodes_of(self.edges))
        for field, node in (("source", source), ("target", target)):
            if node is not None and node not in nodes:
                raise DataError(f"no edge has the node {node!r}", field=field)

    def argmax(  # type: ignore[override]
        self, scores: Floats, source: Hashable = None, target: Hashable = None
    ) -> NDArray[np.int64] | None:
        """Edges of the shortest path, or None where all have an edge of score −∞."""
        self._check(scores)
        source, target = self._ends(source, target)
        length = self._length(scores)
        nx = networkx()
        try:
            if (scores <= 0).all():
                _, nodes = nx.single_source_dijkstra(self._graph, source, target, weight=length)
            else:
                nodes = nx.bellman_ford_path(self._graph, source, target, weight=length)
        except nx.NetworkXNoPath:
            if (scores == -np.inf).any():
                return None
            raise DataError(
                f"no path leads from {source!r} to {target!r}", field="target"
            ) from None
        except nx.NetworkXUnbounded:
            raise DataError(
                "a cycle has negative length, so that no path is the shortest: keep lengths from 0 "
                "up (scores = -softplus(...), and noise with multiplicative=True), or take "
                "didyma.solvers.Flow, whose outputs may run in circles",
                field="scores",
            ) from None
        return np.array(self._edges_along(nodes, scores), np.int64)

    def _k_best(self, layout: Layout, k: int) -> tuple[NDArray[np.int32], Floats]:
        """Path by path (Yen 1971): forcing edges in would make lengths negative."""
        parts = np.full((len(layout), k, layout.n_parts), -1, np.int32)
        totals = np.full((len(layout), k), -np.inf)
        for b, scores in enumerate(layout.scores):
            own = layout.data[int(layout.sizes[b, 0])] if layout.data else {}
            if (scores > 0).any():
                raise DataError("k best paths need lengths from 0 up", field="scores")
            paths = self._paths(scores, *self._ends(**own))
            listed = _lowest(paths, k)
            for rank, (length, path) in enumerate(listed):
                parts[b, rank, : len(path)], totals[b, rank] = path, -length
        return parts, totals

    def _paths(
        self, scores: Floats, source: Hashable, target: Hashable
    ) -> Iterator[list[tuple[float, list[int]]]]:
        """All paths, shortest first, with those beside each that take parallel edges."""
        nx = networkx()
        length = self._length(scores)
        allowed = [edge for edge in self._parts if length(*edge, None) is not None]
        graph = nx.DiGraph(allowed)
        try:
            for nodes in nx.shortest_simple_paths(graph, source, target, weight=length):
                choices = [
                    [p for p in self._parts[edge] if scores[p] > -np.inf]
                    for edge in pairwise(nodes)
                ]
                yield [(-float(scores[list(path)].sum()), [*path]) for path in product(*choices)]
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return

    def _ends(self, source: Hashable = None, target: Hashable = None) -> tuple[Hashable, Hashable]:
        ends = (
            self.source if source is None else source,
            self.target if target is None else target,
        )
        for field, node in zip(("source", "target"), ends):
            if node not in self._graph:
                raise DataError(f"expected a node of the graph, found {node!r}", field=field)
        return ends

    def _length(self, scores: Floats) -> Any:
        """The length of an edge, of parallel ones the least; None if it is forbidden."""

        def length(a: Hashable, b: Hashable, _: Any) -> float | None:
            best = max(float(scores[part]) for part in self._parts[a, b])
            return None if best == -np.inf else 0.0 - best

        return length

    def _edges_along(self, nodes: Iterable[Hashable], scores: Floats) -> list[int]:
        return [max(self._parts[edge], key=lambda p: scores[p]) for edge in pairwise(nodes)]


def _lowest(
    groups: Iterator[list[tuple[float, list[int]]]], k: int
) -> list[tuple[float, list[int]]]:
    """The k lowest: groups come in the order of their lowest, so k groups have them all."""
    return sorted((one for group in islice(groups, k) for one in group), key=lambda one: one[0])[:k]
