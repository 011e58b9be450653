"""Route: paths between two nodes of any directed graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property
from itertools import islice, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.solvers.graphs import EdgeStructure, edges_of, networkx, nodes_of
from didyma.structures.layout import Floats, Layout
from didyma.structures.oracles import best_outputs


class Route(EdgeStructure):
    """Paths from ``source`` to ``target`` in a directed graph, with or without cycles.

    Scores (B, n_edges) are negative lengths, outputs boolean of the same shape. Where no length is
    negative the shortest path is found by Dijkstra's algorithm, in O(n_edges log n_edges), else by
    that of Bellman and Ford, in O(n_nodes n_edges). A cycle of negative length is an error: no path
    is shortest, and the shortest without a cycle is NP-hard. In a graph without cycles
    `didyma.structures.ShortestPath` takes any lengths, and has marginals. `k_best` needs networkx.

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
        self._nodes = {node: number for number, node in enumerate(nodes_of(self.edges))}
        for field, node in (("source", source), ("target", target)):
            if node is not None and node not in self._nodes:
                raise DataError(f"no edge has the node {node!r}", field=field)

    def argmax(  # type: ignore[override]
        self, scores: Floats, source: Hashable = None, target: Hashable = None
    ) -> NDArray[np.int64] | None:
        """Edges of the shortest path, or None where all have an edge of score −∞."""
        layout = self.lay_out(scores, source=source, target=target)
        parts, _, possible = best_outputs(self.oracle(layout), layout)
        return parts[0][parts[0] >= 0].astype(np.int64) if possible[0] else None

    def oracle(self, layout: Layout) -> Any:
        """Dijkstra's algorithm, or that of Bellman and Ford, in the core."""
        if layout.shape != (len(self.edges),):
            self._check(layout.scores[0])
        ends = [self._ends(**instance) for instance in layout.data.values()] or [self._ends()]
        for source, target in ends:
            if target not in self._reached(source):
                raise DataError(f"no path leads from {source!r} to {target!r}", field="target")
        numbers = np.array([[self._nodes[node] for node in pair] for pair in ends], np.int64)
        return core.Route(self._arcs, np.array([*layout.data], np.int64), numbers)

    @cached_property
    def _arcs(self) -> NDArray[np.int64]:
        """Arcs by the node that they leave, as the core reads them."""
        arcs = [
            (self._nodes[a], self._nodes[b], p) for (a, b), ps in self._parts.items() for p in ps
        ]
        tails, heads, parts = np.array(sorted(arcs), np.int64).T
        offsets = np.searchsorted(tails, np.arange(len(self._nodes) + 1))
        return np.concatenate([[len(self._nodes), len(arcs)], offsets, tails, heads, parts])

    @cached_property
    def _reached_from(self) -> dict[Hashable, set[Hashable]]:
        return {}

    def _reached(self, source: Hashable) -> set[Hashable]:
        """Nodes to which paths lead, whatever edges score."""
        if source not in self._reached_from:
            next_nodes: dict[Hashable, list[Hashable]] = {}
            for a, b in self._parts:
                next_nodes.setdefault(a, []).append(b)
            reached, front = {source}, [source]
            while front:
                new = set(next_nodes.get(front.pop(), ())) - reached
                reached |= new
                front += new
            self._reached_from[source] = reached
        return self._reached_from[source]

    def _k_best(self, layout: Layout, k: int) -> tuple[NDArray[np.int32], Floats]:
        """Path by path (Yen 1971): forcing edges in would make lengths negative."""
        parts = np.full((len(layout), k, layout.n_parts), -1, np.int32)
        totals = np.full((len(layout), k), -np.inf)
        for b, scores in enumerate(layout.scores):
            instance = layout.data[int(layout.sizes[b, 0])] if layout.data else {}
            if (scores > 0).any():
                raise DataError("k best paths need lengths from 0 up", field="scores")
            paths = self._paths(scores, *self._ends(**instance))
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
            if node not in self._nodes:
                raise DataError(f"expected a node of the graph, found {node!r}", field=field)
        return ends

    def _length(self, scores: Floats) -> Any:
        """The length of an edge, of parallel ones the least; None if it is forbidden."""

        def length(a: Hashable, b: Hashable, _: Any) -> float | None:
            best = max(float(scores[part]) for part in self._parts[a, b])
            return None if best == -np.inf else 0.0 - best

        return length


def _lowest(
    groups: Iterator[list[tuple[float, list[int]]]], k: int
) -> list[tuple[float, list[int]]]:
    """The k lowest: groups come in the order of their lowest, so k groups have them all."""
    return sorted((one for group in islice(groups, k) for one in group), key=lambda one: one[0])[:k]
