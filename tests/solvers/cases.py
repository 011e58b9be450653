"""Solvers on instances so small that all outputs can be listed, as 0/1 arrays."""

from __future__ import annotations

from itertools import combinations, permutations, product

import networkx as nx
import numpy as np
from ortools.sat.python import cp_model

from didyma.solvers import CpSat, Flow, GraphMatching, Milp, Route, SpanningTree, Tour

CYCLIC = [(0, 1), (1, 0), (0, 2), (2, 1), (1, 2), (1, 3), (2, 3), (3, 2), (0, 1)]  # two parallel
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (4, 0)]


def points(n):
    return np.array(list(product((0, 1), repeat=n)))


def milp():
    """Two knapsacks; the third weight is a continuous variable that makes up for a lack."""
    A = np.array([[3.0, 2.0, 2.0, 1.0, 0.0], [1.0, 2.0, 1.0, 3.0, -1.0]])
    structure = Milp(A, [5.0, 3.0], n_parts=4, bounds=(0.0, 2.0))
    outputs = [x for x in points(4) if A[0, :4] @ x <= 5 and A[1, :4] @ x - 2.0 <= 3]
    return structure, np.array(outputs)


def balanced():
    """Equalities and lower bounds."""
    A = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]])
    structure = Milp(A, [2, 2], [2, 1])
    outputs = [x for x in points(5) if A[0] @ x == 2 and 1 <= A[1] @ x <= 2]
    return structure, np.array(outputs)


def flow():
    structure = Flow(CYCLIC, {0: 2, 3: -2})
    outputs = []
    for x in points(len(CYCLIC)):
        balance = np.zeros(4)
        for (a, b), used in zip(CYCLIC, x):
            balance[a] += used
            balance[b] -= used
        if (balance == [2, 0, 0, -2]).all():
            outputs.append(x)
    return structure, np.array(outputs)


def route():
    structure = Route(CYCLIC, 0, 3)
    graph = nx.MultiDiGraph()
    for part, (a, b) in enumerate(CYCLIC):
        graph.add_edge(a, b, key=part)
    paths = nx.all_simple_edge_paths(graph, 0, 3)
    return structure, indicators([[key for *_, key in path] for path in paths], len(CYCLIC))


def undirected_route():
    graph = nx.Graph(EDGES)
    edges = list(graph.edges())
    paths = [
        [next(i for i, e in enumerate(edges) if {*e} == {*step}) for step in path]
        for path in nx.all_simple_edge_paths(graph, 0, 3)
    ]
    return Route(graph, 0, 3), indicators(paths, len(edges))


def spanning_tree():
    trees = [c for c in combinations(range(7), 4) if nx.is_tree(nx.Graph([EDGES[i] for i in c]))]
    return SpanningTree(EDGES), indicators(trees, 7)


def matching(perfect=False):
    edges = [*EDGES, (3, 5), (4, 5), (2, 5)] if perfect else EDGES
    outputs = [
        x
        for x in points(len(edges))
        if len({node for e, used in zip(edges, x) if used for node in e}) == 2 * x.sum()
        and (not perfect or x.sum() == 3)
    ]
    return GraphMatching(edges, perfect), np.array(outputs)


def cp_sat():
    """Workers on tasks, one each, with a conflict and a budget: a side constraint."""
    model = cp_model.CpModel()
    x = np.array([[model.new_bool_var(f"{i} does {j}") for j in range(3)] for i in range(3)])
    for i in range(3):
        model.add_at_most_one(x[i])
        model.add_exactly_one(x[:, i])
    model.add(x[0, 0] + x[1, 1] <= 1)
    structure = CpSat(model, [*x.ravel()[:8], x[2, 2].negated()])
    outputs = []
    for columns in permutations(range(3)):
        row = np.eye(3, dtype=int)[list(columns)].ravel()
        if row[0] + row[4] <= 1:
            row[8] = 1 - row[8]
            outputs.append(row)
    return structure, np.array(outputs)


def tour(directed=True):
    outputs = {}
    for rest in permutations(range(1, 5)):
        row = np.zeros((5, 5), int)
        for i, j in zip((0, *rest), (*rest, 0)):
            row[(i, j) if directed else (min(i, j), max(i, j))] = 1
        outputs[row.tobytes()] = row
    return Tour(5, directed), np.array(list(outputs.values()))


def indicators(rows, n):
    return np.array([np.isin(np.arange(n), row) for row in rows]).astype(int)


CASES = {
    "milp": milp,
    "balanced": balanced,
    "flow": flow,
    "route": route,
    "undirected route": undirected_route,
    "spanning tree": spanning_tree,
    "matching": matching,
    "perfect matching": lambda: matching(perfect=True),
    "cp-sat": cp_sat,
    "tour": tour,
    "undirected tour": lambda: tour(directed=False),
}
LENGTHS = ("route", "undirected route")  # scores must not be positive
