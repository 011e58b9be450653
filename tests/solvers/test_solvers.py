"""What each solver says of itself: limits, gaps, errors, threads, memory."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

pytest.importorskip("ortools")
pytest.importorskip("networkx")

import networkx as nx
import torch
from ortools.sat.python import cp_model

import didyma
from didyma import DataError
from didyma.nn import SparseMAP, SPOPlusLoss
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.solvers import Cached, CpSat, Flow, InProcesses, Milp, Route, SpanningTree, Tour
from didyma.structures import Knapsack, Tree


def test_a_relaxation_bounds_the_best_output():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, 8)
    structure = Milp([weights], [15])
    scores = rng.random((5, 8))
    bound, parts = structure.relaxation(scores)
    best = (structure.predict(scores) * scores).sum(axis=1)
    assert (bound >= best - 1e-9).all()
    assert (bound > best + 1e-6).any()
    ratio = scores / weights  # by hand: the best ratios first, the last item in part
    for b in range(5):
        room, value = 15.0, 0.0
        for item in np.argsort(-ratio[b]):
            share = min(1.0, room / weights[item])
            room, value = room - share * weights[item], value + share * scores[b, item]
        assert bound[b] == pytest.approx(value)
    np.testing.assert_allclose((parts * scores).sum(axis=1), bound)
    flow = Flow([(0, 1), (1, 2), (0, 2)], {0: 1, 2: -1})
    assert set(flow.relaxation(rng.standard_normal((4, 3)))[1].ravel()) <= {0.0, 1.0}


def test_instances_have_their_own_constraints():
    rng = np.random.default_rng(1)
    weights, capacities = rng.integers(1, 6, (3, 1, 6)), [[4], [8], [12]]
    scores = rng.random((3, 6))
    structure = Milp(np.ones((1, 6)), [1])
    expected = [
        Knapsack(w[0].tolist(), c[0]).predict(s) for w, c, s in zip(weights, capacities, scores)
    ]
    data = {"A": list(weights), "upper": capacities}
    np.testing.assert_array_equal(structure.predict(scores, **data), expected)
    layer = SparseMAP(structure)(torch.tensor(scores), **data)
    alone = [
        didyma.sparsemap(s, Knapsack(w[0].tolist(), c[0]))
        for w, c, s in zip(weights, capacities, scores)
    ]
    np.testing.assert_allclose(layer, alone, atol=1e-6)


class Stopped(Milp):
    """A solver that ran out of time: the answer is feasible, the bound higher."""

    def _solve(self, scores, instance, whole):
        result = super()._solve(scores, instance, whole)
        result.x, result.status, result.bound = np.array([1.0, 0.0, 0.0]), 1, 9.0
        return result


def test_a_gap_is_warned_of_and_remembered():
    structure = Stopped([[3, 2, 2]], [4], time_limit=0.5)
    with pytest.warns(ToleranceWarning, match=r"stopped after 0.5 seconds .* may be 5 short"):
        assert structure.predict([4.0, 2.5, 2.0]).tolist() == [True, False, False]
    assert (structure.worst_gap, structure.n_inexact) == (5.0, 1)
    exact = Milp([[3, 2, 2]], [4], time_limit=100.0)
    exact.predict([4.0, 2.5, 2.0])
    assert (exact.worst_gap, exact.n_inexact) == (0.0, 0)


def test_a_hard_programme_stops_in_time():
    rng = np.random.default_rng(0)
    weights = rng.integers(10**6, 10**7, (20, 120))  # far from what half a second proves
    structure = Milp(weights, weights.sum(axis=1) // 2, time_limit=0.5)
    scores = weights.mean(axis=0) + rng.random(120)
    with pytest.warns(ToleranceWarning, match="short of the best"):
        output = structure.predict(scores)
    assert (weights @ output <= weights.sum(axis=1) // 2).all()
    bound, _ = structure.relaxation(scores)
    assert 0 < structure.worst_gap <= bound  # of a bound that is no worse than the relaxation's


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Milp([1, 2], [3]), "A: expected two axes"),
        (lambda: Milp([[1, 2]]), "upper: expected a bound"),
        (lambda: Milp([[1, 2]], [1], n_parts=3), "n_parts: expected 1 to 2, found 3"),
        (lambda: Milp([[1, 2]], [1], integrality=0), "integrality: .* 1 for each part"),
        (lambda: Milp([[1, 2]], [1], time_limit=0), "time_limit: expected seconds above 0"),
        (lambda: Milp([[1, 1]], [3], [3]).predict([1.0, 2.0]), "contradict each other"),
        (lambda: Milp([[1, 1]], [3]).predict([1.0]), "scores: expected 2 scores"),
        (lambda: Flow([(0, 1)], {0: 1}), "supply: expected supplies that add up to 0, found 1"),
        (lambda: Flow([(0, 1)], {2: 0}), "supply: no edge has the node 2"),
        (lambda: SpanningTree([(0, 1), (2, 3)]), "graph: expected a connected graph"),
        (lambda: Route([(0, 1)], 0, 7), "target: no edge has the node 7"),
        (lambda: Route([(0, 1), (2, 1)], 0, 2).predict([-1.0, -1.0]), "target: no path leads"),
        (lambda: Route([(0, 1)], 0, 1).predict([-1.0, 2.0]), "expected 1 scores"),
        (lambda: Route([(0, 1)], 0).predict([-1.0]), "target: expected a node of the graph"),
        (lambda: Route([], 0, 1), "graph: expected at least one edge"),
        (lambda: Tour(2), "n_nodes: expected 3 nodes or more"),
        (lambda: Cached(Tree()), r"structure: .* whose argmax is compiled"),
        (lambda: Cached(Milp([[1]], [1]), 0), "max_size: expected at least 1"),
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


def test_cp_sat_begins_at_the_last_solution_and_rounds_within_its_bound():
    model = cp_model.CpModel()
    literals = [model.new_bool_var("") for _ in range(6)]
    model.add(sum(literals) == 3)
    structure = CpSat(model, literals)
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e9):
        scores = scale * rng.standard_normal(6)
        best = np.sort(scores)[3:].sum()
        short = best - scores[structure.predict(scores)].sum()
        assert short <= 6 * 2.0**-36 * np.abs(scores).max()
    assert sum(structure._hint) == 3
    assert structure.predict(np.zeros(6)).sum() == 3
    model.maximize(sum(literals))
    with pytest.raises(DataError, match="model: expected a model without an objective"):
        CpSat(model, literals)


class Waiting(didyma.Structure):
    """Two options; says how many threads were inside at once."""

    concurrent = True

    def __init__(self):
        self.inside = self.most = 0
        self.lock = threading.Lock()

    def argmax(self, scores):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.02)
        with self.lock:
            self.inside -= 1
        if np.isclose(scores[0], 13.0):
            raise RuntimeError("thirteen")
        return np.argsort(-scores)[:2]


def test_threads_share_the_instances_of_a_batch():
    scores = np.random.default_rng(0).standard_normal((8, 4))
    structure = Waiting()
    together = didyma.sparsemap(scores, structure, n_jobs=4)
    assert structure.most > 1
    structure.most = 0
    alone = didyma.sparsemap(scores, structure, n_jobs=1)
    assert structure.most == 1
    np.testing.assert_array_equal(together, alone)
    scores[:, 0] = 13.0
    with pytest.raises(RuntimeError, match="thirteen"):
        didyma.sparsemap(scores, structure, n_jobs=4)


def test_processes_give_the_same_answers():
    scores = np.random.default_rng(0).random((6, 4))
    structure = Milp([[3, 2, 2, 1]], [4])
    expected = didyma.sparsemap(scores, structure)
    with InProcesses(structure, 2) as outside:
        np.testing.assert_array_equal(didyma.sparsemap(scores, outside, n_jobs=2), expected)
        own = {"upper": [[3]] * 6}
        np.testing.assert_array_equal(
            outside.predict(scores, **own), structure.predict(scores, **own)
        )
        with pytest.raises(DataError, match="expected 4 scores"):
            outside.predict(scores[:, :3])
    assert "_pool" not in vars(outside)


def test_a_cache_saves_calls_and_changes_nothing():
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 9, (2, 8))
    structure = Milp(weights, weights.sum(axis=1) // 2)
    scores = rng.random((3, 8))
    counted = Cached(structure, max_size=1)  # counts, and remembers next to nothing
    cached = Cached(structure)
    plain = []
    for step in range(6):
        moved = scores + 0.01 * step * rng.standard_normal(scores.shape)
        expected, solution = didyma.sparsemap(moved, structure, return_solution=True, n_jobs=1)
        plain.append(solution.n_iter.sum())
        ours, certified = didyma.sparsemap(moved, cached, return_solution=True, n_jobs=1)
        np.testing.assert_allclose(ours, expected, atol=1e-6)
        assert certified.gap.max() < 1e-8
        np.testing.assert_allclose(didyma.sparsemap(moved, counted, n_jobs=1), expected, atol=1e-6)
    assert cached.n_solved < 0.7 * sum(plain)
    assert cached.n_solved == round((1 - cached.hit_rate) * cached.n_asked)
    solved = cached.n_solved
    for _ in range(2):
        np.testing.assert_array_equal(cached.predict(scores), structure.predict(scores))
    assert cached.n_solved <= solved + 3
    masked = np.where(scores == scores.max(axis=1, keepdims=True), -np.inf, scores)
    np.testing.assert_allclose(
        didyma.sparsemap(masked, cached), didyma.sparsemap(masked, structure), atol=1e-6
    )


def test_a_cache_solves_true_scores_once():
    rng = np.random.default_rng(0)
    cached = Cached(Milp([[3, 2, 2, 1]], [4]))
    true = torch.tensor(rng.random((5, 4)))
    loss = SPOPlusLoss(cached)
    for _ in range(4):
        loss(torch.tensor(rng.random((5, 4))), true)
    assert (cached.n_asked, cached.n_solved) == (40, 25)


def test_a_cache_tells_instances_with_other_data_apart():
    rng = np.random.default_rng(3)
    scores = rng.random((4, 4))
    structure = Milp([[3, 2, 2, 1]], [4])
    cached = Cached(structure)
    data = {"upper": [[1], [3], [5], [8]]}
    for _ in range(3):
        np.testing.assert_allclose(
            didyma.sparsemap(scores, cached, **data),
            didyma.sparsemap(scores, structure, **data),
            atol=1e-6,
        )
        scores = scores + 0.01
