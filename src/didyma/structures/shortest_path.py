"""ShortestPath: paths from one node of an acyclic graph to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import ClassVar

from didyma.errors import DataError
from didyma.structures.batches import check_one_each
from didyma.structures.hypergraph import Hypergraph, Integers, Plan, Planned


@dataclass(frozen=True)
class ShortestPath(Planned):
    """Paths from ``source`` to ``target`` in a directed graph without cycles.

    Edges are pairs of nodes, whole numbers. Scores (B, n_edges), one for each edge; outputs boolean
    (B, n_edges). The best path is the longest; for the shortest give negative lengths.

    >>> path = ShortestPath([(0, 1), (1, 3), (0, 2), (2, 3)], source=0, target=3)
    >>> path.predict([-1.0, -1.0, -0.5, -2.0])
    array([ True,  True, False, False])

    `ShortestPath.grid` makes the graph of a grid. Where cells of a grid have scores, not its steps,
    take `MonotoneAlignment("warp")`. O(n_edges).
    """

    edges: Sequence[tuple[int, int]]
    source: int
    target: int

    ndim: ClassVar[int] = 1

    def __post_init__(self) -> None:
        edges = tuple((int(a), int(b)) for a, b in self.edges)
        object.__setattr__(self, "edges", edges)
        if self.source == self.target:
            raise DataError("expected another node than the source", field="target")
        if self.target not in self._reach():
            raise DataError(f"no path leads from {self.source} to {self.target}", field="target")

    @classmethod
    def grid(cls, rows: int, columns: int, diagonal: bool = True) -> ShortestPath:
        """From the first cell of a grid to the last, by steps down, right and, if allowed, both.

        Cell (i, j) is node i·columns + j. ``edges`` tells which score belongs to which step.

        >>> ShortestPath.grid(2, 2).edges
        ((0, 2), (0, 1), (0, 3), (1, 3), (2, 3))
        """
        steps = [(1, 0), (0, 1), (1, 1)][: 3 if diagonal else 2]
        edges = [
            (i * columns + j, (i + a) * columns + j + b)
            for i in range(rows)
            for j in range(columns)
            for a, b in steps
            if i + a < rows and j + b < columns
        ]
        return cls(edges, 0, rows * columns - 1)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All nodes, each after those with an edge to it."""
        sorter: TopologicalSorter[int] = TopologicalSorter()
        for a, b in self.edges:
            sorter.add(b, a)
        try:
            return tuple(sorter.static_order())
        except CycleError as error:
            raise DataError(
                f"expected a graph without cycles, found {error.args[1]}: with cycles take "
                "didyma.solvers.Route, where no length is negative, or didyma.solvers.Flow",
                field="edges",
            ) from None

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse scores for another number of edges."""
        check_one_each(shape, len(self.edges), "edge")

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """Node by node, the best of the ways to get there."""
        plan = Plan(len(self.edges))
        slots = {self.source: plan.zero}
        for node, ways in self._reach().items():
            slots[node] = plan.add((slots[before], edge) for before, edge in ways)
        return plan.finish(slots[self.target])

    def _reach(self) -> dict[int, list[tuple[int, int]]]:
        """Nodes that can be reached, in order, with the nodes and edges by which they are."""
        into: dict[int, list[tuple[int, int]]] = {}
        for edge, (a, b) in enumerate(self.edges):
            into.setdefault(b, []).append((a, edge))
        reached: dict[int, list[tuple[int, int]]] = {}
        for node in self.order:
            ways = [way for way in into.get(node, ()) if way[0] in reached or way[0] == self.source]
            if ways and node != self.source:
                reached[node] = ways
        return reached
