"""Sets of edges of a graph: spanning trees, matchings, paths.

A graph is one of networkx, or a sequence of pairs of nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma.errors import DataError, MissingExtraError
from didyma.structure import Structure
from didyma.structures.batches import check_one_each
from didyma.structures.layout import Floats, Layout, Parts
from didyma.structures.oracles import best_outputs

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.edges)} edges)"


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
        check_one_each(scores.shape, len(self.edges), "edge")
        trees = networkx().utils.UnionFind(nodes_of(self.edges))
        parts = []
        for part in np.argsort(-scores, kind="stable"):
            a, b = self.edges[part]
            if scores[part] > -np.inf and trees[a] != trees[b]:
                trees.union(a, b)
                parts.append(int(part))
        return np.array(parts) if len(parts) == len(nodes_of(self.edges)) - 1 else None


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
        self.edges, self.perfect = edges_of(graph), perfect
        for a, b in self.edges:
            if a == b:
                raise DataError(
                    f"expected no edge from a node to itself, found {a!r}", field="graph"
                )

    def argmax(self, scores: Floats) -> NDArray[np.int64] | None:  # type: ignore[override]
        """The matching of the highest sum."""
        check_one_each(scores.shape, len(self.edges), "edge")
        best: dict[frozenset[Hashable], int] = {}  # of parallel edges
        for part in np.argsort(scores, kind="stable"):
            if scores[part] > -np.inf:
                best[frozenset(self.edges[part])] = int(part)
        graph = networkx().Graph()
        graph.add_weighted_edges_from((*pair, float(scores[part])) for pair, part in best.items())
        pairs = networkx().max_weight_matching(graph, maxcardinality=self.perfect)
        if self.perfect and 2 * len(pairs) < len(nodes_of(self.edges)):
            return None
        return np.array(sorted(best[frozenset(pair)] for pair in pairs), np.int64)


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
        check_one_each(layout.shape, len(self.edges), "edge")
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

    def _k_best(self, layout: Layout, k: int) -> tuple[Parts, Floats]:
        """Path by path (Yen 1971): forcing edges in would make lengths negative."""
        parts = np.full((len(layout), k, layout.n_parts), -1, np.int32)
        totals = np.full((len(layout), k), -np.inf)
        for b, scores in enumerate(layout.scores):
            if (scores > 0).any():
                raise DataError("k best paths need lengths from 0 up", field="scores")
            groups = self._paths(scores, *self._ends(**layout.data_of(b)))
            # groups come in the order of their shortest, so the first k have the k shortest
            paths = sorted((p for group in islice(groups, k) for p in group), key=lambda p: p[0])
            for rank, (length, path) in enumerate(paths[:k]):
                parts[b, rank, : len(path)], totals[b, rank] = path, -length
        return parts, totals

    def _paths(
        self, scores: Floats, source: Hashable, target: Hashable
    ) -> Iterator[list[tuple[float, list[int]]]]:
        """Lengths and edges of all paths, shortest first, grouped by the nodes that they visit."""
        nx = networkx()
        graph = nx.DiGraph()
        for edge, parts in self._parts.items():
            if (best := max(float(scores[part]) for part in parts)) > -np.inf:
                graph.add_edge(*edge, length=0.0 - best)
        try:
            for nodes in nx.shortest_simple_paths(graph, source, target, weight="length"):
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
