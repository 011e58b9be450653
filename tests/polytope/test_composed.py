"""Compositions against a quadratic programme over lists of every factor's outputs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import didyma
from didyma import Structure
from didyma.errors import DataError
from didyma.structures import (
    AndOut,
    AtLeastOne,
    AtMost,
    AtMostOne,
    Cardinality,
    Chain,
    Choice,
    Composition,
    ExactlyOne,
    Factor,
    Implies,
    JointTable,
    Knapsack,
    Matching,
    OrOut,
    Tree,
    XorOut,
)
from tests.polytope.agreement import allowed_by, projection

HEADS = np.vstack([np.full(4, -1), np.arange(12).reshape(3, 4)])  # variable of each arc


def outputs_of(factor, additional):
    """All outputs of a factor as 0/1 rows over its variables, and their additional scores."""
    variables = factor.variables
    scores = np.where(variables >= 0, 0.0, -np.inf)
    outputs, gains = factor.structure.k_best(scores, 400, **additional)
    outputs, gains = outputs[gains > -np.inf], gains[gains > -np.inf]
    layout = factor.structure.lay_out(np.repeat(scores[None], len(outputs), axis=0))
    parts, _ = factor.structure.encode(outputs, layout)
    rows = np.zeros((len(parts), scores.size))
    where, place = np.nonzero(parts >= 0)
    rows[where, parts[where, place]] = 1
    used = variables.ravel() >= 0
    return variables.ravel()[used], rows[:, used], gains


def expected(graph, scores, pairwise=(), additional=None):
    """Marginals by conditional gradients to the end, whose oracle is a linear programme."""
    factors = []
    for k, factor in enumerate(graph.factors):
        factors.append(outputs_of(factor, (additional or {}).get(k, {})))
    for (i, j), gain in zip(graph.edges, pairwise, strict=True):
        factors.append(([i, j], np.array(list(product((0, 1), repeat=2))), gain * np.eye(4)[3]))
    return projection(scores, [*factors, *map(allowed_by, graph.logic)])


GRAPHS = {
    "logic alone": Composition(5, logic=[AtMost(2, range(5)), Implies(0, 4), AtLeastOne([1, ~2])]),
    "pairs": Composition(5, edges=[(0, 1), (1, 2), (2, 0), (3, 4), (4, 0)]),
    "out": Composition(
        8, logic=[OrOut(0, [1, 2]), AndOut(3, [4, ~1]), XorOut(5, [6, 7]), AtMost(3, range(8))]
    ),
    "one tree, one root": Composition(12, [Factor(Tree(), HEADS)], logic=[ExactlyOne([0, 4, 8])]),
    "tree, pairs and a budget": Composition(
        12, [Factor(Tree(), HEADS)], edges=[(1, 2), (0, 5)], logic=[AtMost(1, [2, 3, 9])]
    ),
    "structures side by side": Composition(
        9,
        [Factor(Choice(), [0, 1, 2]), Factor(Knapsack([1, 2, 2], 3), [3, 4, 5])],
        edges=[(0, 3), (6, 7)],
        logic=[AtMostOne([1, 4, 8]), Cardinality((2, 5, 6), 1, 2)],
    ),
    "two structures that agree": Composition(
        6, [Factor(Chain(), np.arange(6).reshape(3, 2), "a"), Factor(JointTable(2), [1, 5], "b")]
    ),
    "matching": Composition(
        9,
        [Factor(Matching(), np.arange(9).reshape(3, 3))],
        logic=[AtMostOne([0, 4]), AtMost(1, [2, 4, 6])],
    ),
}


def draw(rng, graph, batch=None):
    shape = () if batch is None else (batch,)
    scores = rng.normal(size=(*shape, graph.n_variables))
    additional = (
        {"pairwise": 2 * rng.normal(size=(*shape, len(graph.edges)))} if graph.edges else {}
    )
    for factor in graph.factors:
        if isinstance(factor.structure, Chain):
            additional[factor.key("transitions")] = rng.normal(size=(*shape, 2, 2))
        if isinstance(factor.structure, JointTable):
            additional[factor.key("table")] = rng.normal(size=(*shape, 2, 2))
    return scores, additional


def reference(graph, scores, additional):
    own = {k: {} for k in range(len(graph.factors))}
    for k, factor in enumerate(graph.factors):
        for name, values in additional.items():
            if factor.name and name.startswith(factor.key("")):
                own[k][name.removeprefix(factor.key(""))] = values
    return expected(graph, scores, additional.get("pairwise", ()), own)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_best_that_all_agree_on(name):
    graph = GRAPHS[name]
    rng = np.random.default_rng(len(name))
    for scale in (0.3, 1.0, 4.0):
        scores, additional = draw(rng, graph)
        scores = scale * scores
        solution = didyma.local_sparsemap(scores, graph, **additional)
        assert solution.converged
        found = reference(graph, scores, additional)
        np.testing.assert_allclose(solution.marginals, found, atol=1e-7)


def test_a_structure_alone_is_itself():
    rng = np.random.default_rng(0)
    graph = Composition(12, [Factor(Tree(), HEADS)])
    scores = rng.normal(size=(3, 12))
    whole = np.full((3, 4, 4), -np.inf)
    whole[:, 1:] = scores.reshape(3, 3, 4)
    solution = didyma.local_sparsemap(scores, graph)
    expected, alone = didyma.sparsemap(whole, Tree(), return_solution=True)
    np.testing.assert_allclose(solution.marginals, expected[:, 1:].reshape(3, -1), atol=1e-12)
    assert solution.exact.all()
    assert alone.converged.all()


@pytest.mark.parametrize("name", GRAPHS)
def test_derivatives(name):
    graph, rng, step = GRAPHS[name], np.random.default_rng(1), 1e-6
    n_smooth = 0
    for _ in range(4):
        scores, additional = draw(rng, graph, batch=3)
        d_scores, d_additional = draw(rng, graph, batch=3)
        weight = rng.normal(size=scores.shape)

        def at(h, s=scores, a=additional, d=d_scores, da=d_additional):
            moved = {key: values + h * da[key] for key, values in a.items()}
            return didyma.local_sparsemap(s + h * d, graph, temperature=0.7, **moved)

        solution = at(0.0)
        forward = (at(step).marginals - solution.marginals) / step
        backward = (solution.marginals - at(-step).marginals) / step
        if np.abs(forward - backward).max() > 1e-5:
            continue  # a kink
        n_smooth += 1
        derivative = solution.jvp(d_scores, **d_additional)
        np.testing.assert_allclose(derivative, (forward + backward) / 2, atol=1e-6)
        to_scores, named = solution.vjp(weight)
        total = (to_scores * d_scores).sum()
        total += sum((named[key] * d_additional[key]).sum() for key in named)
        np.testing.assert_allclose(total, (weight * derivative).sum(), atol=1e-8)
    assert n_smooth >= 2


def test_a_batch_and_a_warm_start_change_nothing():
    graph = GRAPHS["tree, pairs and a budget"]
    scores, additional = draw(np.random.default_rng(2), graph, batch=3)
    together = didyma.local_sparsemap(scores, graph, **additional)
    for b in range(3):
        alone = didyma.local_sparsemap(scores[b], graph, pairwise=additional["pairwise"][b])
        np.testing.assert_allclose(alone.marginals, together.marginals[b], atol=1e-10)
    again = didyma.local_sparsemap(scores, graph, warm_start=together, **additional)
    np.testing.assert_allclose(again.marginals, together.marginals, atol=1e-10)
    assert (again.n_iter <= together.n_iter).all()
    assert (again.n_iter <= 1).all()


def test_forbidden_and_masked_variables():
    graph = GRAPHS["one tree, one root"]
    scores = np.random.default_rng(3).normal(size=12)
    scores[[0, 5]] = -np.inf
    found = didyma.local_sparsemap(scores, graph)
    np.testing.assert_allclose(found.marginals, expected(graph, scores), atol=1e-7)
    assert found.marginals[0] == 0
    masked = didyma.local_sparsemap(np.where(np.isinf(scores), -1e30, scores), graph)
    np.testing.assert_allclose(masked.marginals, found.marginals, atol=1e-9)
    scores[[0, 4, 8]] = -np.inf
    with pytest.raises(DataError, match="instance 0"):
        didyma.local_sparsemap(scores, graph)


def test_constraints_that_contradict_a_structure():
    graph = Composition(3, [Factor(Choice(), [0, 1, 2])], logic=[AtMost(0, [0, 1, 2])])
    with pytest.raises(DataError, match="instance 0"):
        didyma.local_sparsemap(np.zeros((2, 3)), graph)


def test_a_structure_of_ones_own():
    class Pairs(Structure):
        def argmax(self, scores):
            return np.argsort(-scores)[:2]

    graph = Composition(4, [Factor(Pairs(), [0, 1, 2, 3])], logic=[AtMostOne([0, 1])])
    scores = np.array([1.0, 0.9, 0.3, 0.0])
    own = didyma.local_sparsemap(scores, graph).marginals
    logic = Composition(4, logic=[Cardinality(range(4), 2, 2), AtMostOne([0, 1])])
    np.testing.assert_allclose(own, didyma.local_sparsemap(scores, logic).marginals, atol=1e-9)


def test_bad_input():
    graph = GRAPHS["two structures that agree"]
    unnamed = Composition(6, [Factor(Chain(), np.arange(6).reshape(3, 2))] * 2)
    for call, message in [
        (lambda: didyma.local_sparsemap(np.zeros(5), graph), "6 variables"),
        (lambda: didyma.local_sparsemap(np.zeros(6), graph, c_table=0), "c_table: no factor"),
        (lambda: didyma.local_sparsemap(np.zeros(6), unnamed, transitions=0), "several factors"),
        (lambda: Factor(Tree(), [0, 1]), "2 axes"),
        (lambda: Factor(Choice(), [0, 0]), "different variables"),
        (lambda: Factor("tree", [0]), "tructure"),
        (lambda: Composition(2, [Factor(Choice(), [0, 2])]), "below 2, found 2"),
        (lambda: Composition(2, [Choice()]), "expected a Factor"),
        (lambda: Composition(2, edges=[(0, 0)]), "two different"),
        (lambda: Composition(2, logic=[AtMost(1, [3])]), "below 2"),
        (lambda: Composition(0), "at least one"),
        (lambda: JointTable(13), "1 to 12"),
    ]:
        with pytest.raises(DataError, match=message):
            call()
    start = didyma.local_sparsemap(np.zeros(6), graph)
    with pytest.raises(DataError, match="one point per instance"):
        didyma.local_sparsemap(np.zeros((2, 6)), graph, warm_start=start)
    with pytest.raises(DataError, match="another graph"):
        didyma.local_sparsemap(np.zeros(6), Composition(6), warm_start=start)
