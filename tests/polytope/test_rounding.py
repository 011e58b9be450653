"""Outputs near relaxed marginals, and solutions that are known to be exact, by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import didyma
from didyma.structures import (
    AtMost,
    AtMostOne,
    Chain,
    Composition,
    ExactlyOne,
    Factor,
    FactorGraph,
    Implies,
    Tree,
)
from tests.polytope.test_composed import GRAPHS, outputs_of

SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
FACTOR_GRAPHS = {
    "logic": FactorGraph(5, edges=[(0, 4), (1, 2)], logic=[AtMost(2, range(5)), Implies(0, 3)]),
    "states": FactorGraph(4, 3, edges=SQUARE),
    "exactly one": FactorGraph(4, edges=SQUARE, logic=[ExactlyOne([0, 1]), ExactlyOne([1, 2, 3])]),
}


def outputs(graph):
    """All of them, flat."""
    if isinstance(graph, FactorGraph):
        states = np.array(list(product(range(graph.n_states), repeat=graph.n_variables)))
        for one in graph.logic:
            states = states[one.holds(states)]
        chosen = states[..., None] == np.arange(graph.n_states)
        return chosen.reshape(len(chosen), graph.n_variables * graph.n_states)
    every = np.array(list(product((False, True), repeat=graph.n_variables)))
    for one in graph.logic:
        every = every[one.holds(every)]
    for factor in graph.factors:
        scope, listed, _ = outputs_of(factor, {})
        known = {tuple(row) for row in listed.astype(bool).tolist()}
        every = every[[tuple(row) in known for row in every[:, scope].tolist()]]
    return every


ALL = {**GRAPHS, **FACTOR_GRAPHS}


@pytest.mark.parametrize("name", ALL)
def test_rounded_marginals_are_an_output_and_the_nearest_as_a_rule(name):
    graph = ALL[name]
    every = outputs(graph)
    known = {row.tobytes() for row in every}
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(10, *graph.score_shape))
    scores[:5] *= 0.3
    solution = didyma.local_sparsemap(scores, graph)
    rounded = solution.rounded()
    assert rounded.shape == scores.shape
    nearest = 0
    for u, x in zip(solution.marginals.reshape(10, -1), rounded.reshape(10, -1)):
        assert x.tobytes() in known
        away = ((every - u) ** 2).sum(axis=1).min()
        nearest += ((x - u) ** 2).sum() <= away + 1e-9
    assert nearest >= 8


def test_what_is_forbidden_stays_so():
    graph = GRAPHS["tree, pairs and a budget"]
    scores = np.random.default_rng(1).normal(size=(5, 12))
    scores[:, [1, 4]] = -np.inf
    assert not didyma.local_sparsemap(scores, graph).rounded()[:, [1, 4]].any()
    chain = Composition(
        6, [Factor(Chain(), np.arange(6).reshape(3, 2))], logic=[AtMost(2, [0, 2, 4])]
    )
    transitions = np.array([[0.0, -np.inf], [0.0, 0.0]])  # no second tag after the first
    solution = didyma.local_sparsemap(np.zeros((2, 6)), chain, transitions=transitions)
    tags = solution.rounded().reshape(2, 3, 2)[:, :, 1]
    assert (np.diff(tags.astype(int), axis=1) <= 0).all()


def test_ties_of_a_large_graph_need_no_search():
    grid = FactorGraph(400, edges=[(i, i + 1) for i in range(399)])
    solution = didyma.local_sparsemap(np.zeros((400, 2)), grid)
    assert solution.rounded().sum() == 400


def test_a_graph_without_outputs_says_so():
    """Of three variables exactly one of any two: only halves agree."""
    graph = FactorGraph(3, logic=[ExactlyOne([0, 1]), ExactlyOne([1, 2]), ExactlyOne([0, 2])])
    solution = didyma.local_sparsemap(np.zeros((3, 2)), graph)
    np.testing.assert_allclose(solution.marginals, 0.5, atol=1e-9)
    with pytest.raises(didyma.DataError, match="the graph has no output"):
        solution.rounded()


class Listed(didyma.Structure):
    """The outputs of a composition, one by one."""

    def __init__(self, every):
        self.every = every

    def argmax(self, scores):
        best = self.every[np.argmax(self.every @ np.maximum(scores, -1e6))]
        return np.flatnonzero(best)


@pytest.mark.parametrize("name", ["one tree, one root", "budget", "matching"])
def test_structures_whose_vertices_obey_are_exact(name):
    heads = np.vstack([np.full(4, -1), np.arange(12).reshape(3, 4)])
    budget = Composition(
        12, [Factor(Tree(), heads)], logic=[AtMost(1, [2, 3, 9]), AtMostOne([0, 5])]
    )
    graph = {**GRAPHS, "budget": budget}[name]
    assert not graph.is_forest
    scores = 1.5 * np.random.default_rng(3).normal(size=(30, graph.n_variables))
    solution = didyma.local_sparsemap(scores, graph)
    whole = np.isin(solution.marginals.round(9), (0, 1)).all(axis=1)
    assert (solution.exact & ~whole).any()
    truth = didyma.sparsemap(scores, Listed(outputs(graph)))
    np.testing.assert_allclose(solution.marginals[solution.exact], truth[solution.exact], atol=1e-6)
