"""What constraints leave, of factor graphs and compositions: held against all outputs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import didyma
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.structures import (
    AtLeastOne,
    Cardinality,
    Chain,
    Choice,
    Composition,
    ExactlyOne,
    Factor,
    FactorGraph,
    TopK,
)
from tests.polytope.test_rounding import outputs

MOST = 5  # variables


@st.composite
def constraints(draw, n):
    literals = draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    literals = [v if draw(st.booleans()) else ~v for v in literals]
    low = draw(st.integers(0, len(literals)))
    return Cardinality(literals, low, draw(st.integers(low, len(literals))))


@st.composite
def factors(draw, n):
    order = draw(st.permutations(range(n)))
    structure = draw(st.sampled_from([Choice(), TopK(2), TopK(2, exactly=False), Chain()]))
    if isinstance(structure, Chain):
        return Factor(structure, np.array(order[:4]).reshape(2, 2))
    return Factor(structure, order[: draw(st.integers(2, n))])


@st.composite
def graphs(draw, kind):
    n = draw(st.integers(4 if kind == "structures" else 2, MOST))
    logic = draw(st.lists(constraints(n), max_size=4))
    pairs = st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True).map(tuple)
    edges = draw(st.lists(pairs, max_size=3))
    if kind == "factor graph":
        return FactorGraph(n, 2, edges, logic)
    own = draw(st.lists(factors(n), min_size=1, max_size=2)) if kind == "structures" else []
    return Composition(n, own, edges, logic)


SCORES = st.lists(
    st.integers(-20, 20) | st.just(-1000), min_size=2 * MOST + 12, max_size=2 * MOST + 12
)


def check(graph, tenths):
    """Tenths are scores of variables and pairs; −1000 of them is −∞."""
    numbers = np.where(np.array(tenths) == -1000, -np.inf, np.array(tenths) / 10)
    d = int(np.prod(graph.score_shape))
    scores, extra = numbers[:d], numbers[-12:]
    shape = (len(graph.edges), 2, 2) if isinstance(graph, FactorGraph) else (len(graph.edges),)
    pairwise = np.nan_to_num(extra[: int(np.prod(shape))].reshape(shape), neginf=-3.0)
    additional = {"pairwise": pairwise} if graph.edges else {}
    every = outputs(graph)
    every = every[~every[:, np.isneginf(scores)].any(axis=1)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ToleranceWarning)
            solution = didyma.local_sparsemap(
                scores.reshape(graph.score_shape), graph, **additional
            )
    except didyma.DataError:
        assert not len(every)
        return
    assert np.isfinite(solution.marginals).all()
    true = solution.marginals[:, 1] if isinstance(graph, FactorGraph) else solution.marginals
    for one in graph.logic if solution.converged else ():
        count = np.where(one.negated, 1 - true[one.indices], true[one.indices]).sum()
        assert one.low - 1e-8 <= count <= one.high + 1e-8
    if not len(every):  # but halves agree
        with pytest.raises(didyma.DataError, match="no output"):
            solution.rounded()
        return
    for output in every:
        value = scores[output].sum() - output.sum() / 2
        for (i, j), table in zip(graph.edges, pairwise):
            if isinstance(graph, FactorGraph):
                states = output.reshape(graph.score_shape).argmax(axis=1)
                value += table[states[i], states[j]]
            else:
                value += table * (output[i] and output[j])
        assert value <= solution.bound + 1e-7
    assert solution.rounded().astype(bool).tobytes() in {output.tobytes() for output in every}
    if isinstance(graph, FactorGraph):
        best = graph.predict(scores.reshape(graph.score_shape), **additional)
        assert (best[:, None] == [0, 1]).tobytes() in {output.tobytes() for output in every}


@example(
    Composition(3, logic=[ExactlyOne([0]), ExactlyOne([1, 0]), AtLeastOne([2, 1])]),
    [4, 10, 7, *[0] * 19],
)
@example(
    Composition(
        3,
        logic=[
            Cardinality((-2, 2, 0), 0, 1),
            Cardinality((0, -2, -3), 1, 1),
            Cardinality((2, 0, 1), 1, 3),
        ],
    ),
    [15, -10, *[0] * 20],
)
@example(Composition(2, logic=[ExactlyOne([0, 1]), ExactlyOne([0]), ExactlyOne([1])]), [0] * 22)
@given(graphs("logic alone"), SCORES)
def test_compositions_without_structures(graph, tenths):
    check(graph, tenths)


@given(graphs("structures"), SCORES)
def test_compositions_of_structures(graph, tenths):
    check(graph, tenths)


@given(graphs("factor graph"), SCORES)
def test_factor_graphs(graph, tenths):
    check(graph, tenths)


def test_a_factor_graph_without_outputs_says_so_whoever_asks():
    graph = FactorGraph(2, logic=[ExactlyOne([0, 1]), ExactlyOne([0]), ExactlyOne([1])])
    for ask in (graph.predict, graph.marginals, lambda s: didyma.sparsemap(s, graph)):
        with pytest.raises(didyma.DataError, match="constraints contradict each other"):
            ask(np.zeros((2, 2)))
    with pytest.raises(didyma.DataError, match="instance 0: the graph has no output"):
        didyma.local_sparsemap(np.zeros((2, 2)), graph)
