"""Spanning trees, matchings and paths of graphs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("networkx")

import networkx as nx

from didyma import DataError
from didyma.solvers import Flow, GraphMatching, Route, SpanningTree


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpanningTree([(0, 1), (2, 3)]), "graph: expected a connected graph"),
        (lambda: Route([(0, 1)], 0, 7), "target: no edge has the node 7"),
        (lambda: Route([(0, 1), (2, 1)], 0, 2).predict([-1.0, -1.0]), "target: no path leads"),
        (lambda: Route([(0, 1)], 0, 1).predict([-1.0, 2.0]), "expected 1 scores"),
        (lambda: Route([(0, 1)], 0).predict([-1.0]), "target: expected a node of the graph"),
        (lambda: GraphMatching([(0, 0)]), "graph: expected no edge from a node to itself"),
        (lambda: Route([], 0, 1), "graph: expected at least one edge"),
    ],
)
def test_errors_name_what_is_wrong(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_a_negative_cycle_says_what_to_do():
    edges = [(0, 1), (1, 0), (1, 2)]
    with pytest.raises(DataError, match=r"negative length.*softplus.*didyma.solvers.Flow"):
        Route(edges, 0, 2).predict([1.0, 1.0, -1.0])
    assert Route(edges, 0, 2).predict([1.0, -2.0, -1.0]).tolist() == [True, False, True]
    assert Flow(edges, {0: 1, 2: -1}).predict([1.0, -2.0, -1.0]).tolist() == [True, False, True]


def test_instances_have_their_own_ends():
    graph = nx.grid_2d_graph(3, 3)
    route = Route(graph)
    scores = -np.random.default_rng(0).random((2, graph.number_of_edges()))
    ends = {"source": [(0, 0), (2, 2)], "target": [(2, 2), (0, 2)]}
    together = route.predict(scores, **ends)
    for b in range(2):
        weights = dict(zip(graph.edges(), -scores[b]))
        nx.set_edge_attributes(graph, weights, "weight")
        length = nx.dijkstra_path_length(graph, ends["source"][b], ends["target"][b])
        assert -scores[b][together[b]].sum() == pytest.approx(length)
