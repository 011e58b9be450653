"""Factor graphs against enumeration: best states, marginals, constraints, limits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.structures.elimination import minimum_fill_order, postorder
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.logic import AtLeastOne, AtMost, AtMostOne, Cardinality, ExactlyOne, Implies


def grid(n_rows, n_columns):
    at = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    across = np.stack([at[:, :-1], at[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([at[:-1], at[1:]], axis=-1).reshape(-1, 2)
    return [(int(i), int(j)) for i, j in np.concatenate([across, down])]


def outputs_of(graph):
    """All allowed outputs, by the constraints' words rather than their counters."""
    states = np.array(list(product(range(graph.n_states), repeat=graph.n_variables)))
    for one in graph.logic:
        true = np.array(
            [[x[v] == 1 if v >= 0 else x[~v] == 0 for v in one.variables] for x in states]
        )
        count = true.sum(axis=1)
        states = states[(one.low <= count) & (count <= one.high)]
        if not len(states):
            return states
    return states


def values_of(graph, states, scores, pairwise):
    values = scores[np.arange(graph.n_variables), states].sum(axis=1)
    for e, (i, j) in enumerate(graph.edges):
        values = values + pairwise[e, states[:, i], states[:, j]]
    return values


@st.composite
def graphs(draw, most_states=3):
    n = draw(st.integers(1, 7))
    n_states = draw(st.integers(1, most_states))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1])
    edges = draw(st.lists(pairs, max_size=2 * n)) if n > 1 else []
    logic = []
    if n_states == 2:
        for _ in range(draw(st.integers(0, 3))):
            order = draw(st.permutations(range(n)))[: draw(st.integers(1, n))]
            literals = tuple(v if draw(st.booleans()) else ~v for v in order)
            low = draw(st.integers(0, len(literals)))
            logic.append(Cardinality(literals, low, draw(st.integers(low, len(literals)))))
    return FactorGraph(n, n_states, edges, logic)


@st.composite
def problems(draw):
    graph = draw(graphs())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["normal", "ties", "forbidden", "huge", "zero"]))
    shapes = (graph.n_variables, graph.n_states), (len(graph.edges), *2 * (graph.n_states,))
    arrays = []
    for shape in shapes:
        array = rng.normal(size=shape)
        if kind == "ties":
            array = np.round(array)
        elif kind == "forbidden":
            array[rng.random(shape) < 0.2] = -np.inf
        elif kind == "huge":
            array *= 1e299
        elif kind == "zero":
            array *= 0.0
        arrays.append(array)
    return graph, *arrays


@settings(max_examples=200, deadline=None)
@given(problems())
def test_best_output_and_its_parts(problem):
    graph, scores, pairwise = problem
    states = outputs_of(graph)
    values = values_of(graph, states, scores, pairwise) if len(states) else np.array([])
    if not len(values) or values.max() == -np.inf:
        with pytest.raises(DataError, match=r"contradict|-inf"):
            graph.predict(scores, pairwise=pairwise)
        return
    best = graph.predict(scores, pairwise=pairwise)
    value = values[(states == best).all(axis=1)]
    np.testing.assert_allclose(value, [values.max()], rtol=1e-12)
    layout = graph.lay_out(scores, pairwise=pairwise)
    parts = np.full(layout.n_parts, -1, np.int32)
    extra_parts = np.full(layout.n_extra, -1, np.int32)
    work, index = np.zeros(layout.n_work), np.zeros(layout.n_index, np.int64)
    for _ in range(2):  # scratch left by one call does not disturb the next
        count = graph.kernel(
            layout.scores[0],
            layout.extra_of(0),
            layout.dims,
            layout.sizes[0],
            work,
            index,
            parts,
            extra_parts,
        )
    assert count == graph.n_variables
    gold, extra_gold = graph.encode(best, layout)
    np.testing.assert_array_equal(parts, gold[0])
    np.testing.assert_array_equal(extra_parts, extra_gold[0])
    np.testing.assert_array_equal(graph.decode(gold, layout)[0], best)


@settings(max_examples=100, deadline=None)
@given(problems())
def test_marginals(problem):
    graph, scores, pairwise = problem
    scores, pairwise = np.maximum(scores, -1e6), np.maximum(pairwise, -1e6)  # below: -inf itself
    scores[scores == -1e6] = pairwise[pairwise == -1e6] = -np.inf
    scores[scores > 1e3], pairwise[pairwise > 1e3] = 30.0, 30.0
    states = outputs_of(graph)
    values = values_of(graph, states, scores, pairwise) if len(states) else np.array([])
    if not len(values) or values.max() == -np.inf:
        with pytest.raises(DataError):
            graph.log_partition(scores, pairwise=pairwise)
        return
    weights = np.exp(values - values.max())
    log_partition = np.log(weights.sum()) + values.max()
    weights /= weights.sum()
    layout = graph.lay_out(scores, pairwise=pairwise)
    found, marginals, pairs = graph.expectations(layout)
    np.testing.assert_allclose(found, [log_partition], rtol=1e-10, atol=1e-10)
    expected, expected_pairs = np.zeros(marginals.shape[1]), np.zeros(pairs.shape[1])
    for x, weight in zip(states, weights, strict=True):
        part, pair = graph.encode(x, layout)
        expected[part[0]] += weight
        expected_pairs[pair[0]] += weight
    np.testing.assert_allclose(marginals[0], expected, atol=1e-9)
    np.testing.assert_allclose(pairs[0], expected_pairs, atol=1e-9)


def test_grid_in_a_batch():
    graph = FactorGraph(9, 3, grid(3, 3))
    rng = np.random.default_rng(0)
    scores, pairwise = rng.normal(size=(4, 9, 3)), rng.normal(size=(4, 12, 3, 3))
    states = outputs_of(graph)
    for given_pairs in (pairwise, pairwise[0]):
        best = graph.predict(scores, pairwise=given_pairs)
        assert best.shape == (4, 9)
        for b in range(4):
            own = given_pairs[b] if given_pairs.ndim == 4 else given_pairs
            values = values_of(graph, states, scores[b], own)
            np.testing.assert_array_equal(best[b], states[values.argmax()])
    log_partition, marginals, pairs = graph.expectations(
        graph.lay_out(scores, pairwise=pairwise[0])
    )
    assert log_partition.shape == (4,)
    assert pairs.shape == (4, 108)
    np.testing.assert_allclose(marginals.reshape(4, 9, 3).sum(axis=2), 1)


def test_every_constraint():
    three = np.array(list(product((0, 1), repeat=3)))
    counts = three.sum(axis=1)
    for constraint, allowed in [
        (ExactlyOne([0, 1, 2]), counts == 1),
        (AtMostOne([0, 1, 2]), counts <= 1),
        (AtLeastOne([0, 1, 2]), counts >= 1),
        (AtMost(2, [0, 1, 2]), counts <= 2),
        (Implies(0, 1), (three[:, 0] == 0) | (three[:, 1] == 1)),
        (AtLeastOne([~0, ~2]), (three[:, 0] == 0) | (three[:, 2] == 0)),
    ]:
        np.testing.assert_array_equal(constraint.holds(three), allowed)
        log_count = FactorGraph(3, logic=[constraint]).log_partition(np.zeros((3, 2)))
        np.testing.assert_allclose(np.exp(log_count), allowed.sum())


def test_a_budget_over_many_variables_is_one_counter():
    chain = [(i, i + 1) for i in range(99)]
    rng = np.random.default_rng(1)
    shuffled = rng.permutation(100)
    for edges in ([], chain, [(int(shuffled[i]), int(shuffled[j])) for i, j in chain]):
        graph = FactorGraph(100, 2, edges, [AtMost(10, range(100))])
        assert graph.circuit.width <= 4
    gains = rng.normal(size=100)
    best = FactorGraph(100, logic=[AtMost(10, range(100))]).predict(
        np.stack([np.zeros(100), gains], axis=1)
    )
    np.testing.assert_array_equal(np.flatnonzero(best), np.sort(np.argsort(-gains)[:10]))


def test_assignment_by_constraints():
    from scipy.optimize import linear_sum_assignment

    cells = np.arange(25).reshape(5, 5)
    graph = FactorGraph(25, logic=[ExactlyOne(line) for line in [*cells, *cells.T]])
    gains = np.random.default_rng(2).normal(size=(5, 5))
    best = graph.predict(np.stack([np.zeros(25), gains.ravel()], axis=1)).reshape(5, 5)
    rows, columns = linear_sum_assignment(gains, maximize=True)
    expected = np.zeros((5, 5), int)
    expected[rows, columns] = 1
    np.testing.assert_array_equal(best, expected)


def test_ties_go_to_the_first_states():
    graph = FactorGraph(4, 3, [(0, 1), (1, 2), (2, 3)])
    np.testing.assert_array_equal(graph.predict(np.zeros((4, 3))), np.zeros(4))


def test_orders():
    order = minimum_fill_order([2] * 5, [(0, 1), (1, 2), (2, 3), (3, 4)], np.inf)
    assert sorted(order) == list(range(5))
    assert max(map(len, order.values())) == 1
    star = minimum_fill_order([2] * 6, [(0, i) for i in range(1, 6)], np.inf)
    assert sorted(postorder(star)) == list(range(6))
    ring = minimum_fill_order([2] * 6, [(i, (i + 1) % 6) for i in range(6)], np.inf)
    assert max(map(len, ring.values())) == 2


def test_wide_graphs_are_refused_but_exist():
    graph = FactorGraph(900, 2, grid(30, 30))
    with pytest.raises(DataError, match=r"width \d+.*local_sparsemap"):
        graph.predict(np.zeros((900, 2)))
    tangled = FactorGraph(
        60, logic=[AtMost(30, np.random.default_rng(i).permutation(60)) for i in range(9)]
    )
    with pytest.raises(DataError, match="local_sparsemap"):
        tangled.predict(np.zeros((60, 2)))


def test_graphs_are_values():
    assert FactorGraph(2, edges=[(0, 1)]) == FactorGraph(2, edges=((0, 1),))
    assert hash(FactorGraph(2, logic=[Implies(0, 1)])) == hash(
        FactorGraph(2, logic=[Implies(0, 1)])
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "at least one"),
        ((2, 0), "at least one"),
        ((2, 2, [(0, 2)]), r"found \(0, 2\) at index 0"),
        ((2, 2, [(0, 1), (1, 1)]), "at index 1"),
        ((2, 3, [], [Implies(0, 1)]), "binary"),
        ((2, 2, [], [Implies(0, 2)]), "below 2"),
    ],
)
def test_bad_graphs(arguments, message):
    with pytest.raises(DataError, match=message):
        FactorGraph(*arguments)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ExactlyOne([]),
        lambda: AtMostOne([0, ~0]),
        lambda: AtMost(-1, [0, 1]),
        lambda: Cardinality((0, 1), 2, 1),
        lambda: Cardinality((0, 1), 3, 4),
    ],
)
def test_bad_constraints(make):
    with pytest.raises(DataError, match="logic"):
        make()


def test_bad_input():
    graph = FactorGraph(2, 2, [(0, 1)], [AtMostOne([0, 1])])
    zero = np.zeros((2, 2))
    for call, message in [
        (lambda: graph.predict(np.zeros((3, 2))), "expected 2 variables with 2 states"),
        (lambda: graph.predict(zero, lengths=[2]), "lengths"),
        (lambda: graph.predict(zero, pairwise=np.zeros((2, 2))), "pairwise: expected shape"),
        (lambda: graph.predict(zero, triples=zero), "triples"),
        (lambda: graph.encode([1, 1], graph.lay_out(zero)), "output 0 violates"),
        (lambda: graph.encode([0, 2], graph.lay_out(zero)), "state from 0 to 1"),
        (lambda: graph.encode([0], graph.lay_out(zero)), "shape"),
        (lambda: graph.predict(np.full((2, 2), -np.inf)), "-inf"),
    ]:
        with pytest.raises(DataError, match=message):
            call()
    contradiction = FactorGraph(1, logic=[ExactlyOne([0]), ExactlyOne([~0])])
    with pytest.raises(DataError, match="contradict"):
        contradiction.predict(np.zeros((1, 2)))
