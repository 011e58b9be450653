"""Local SparseMAP: exact on trees, the best point of the local polytope elsewhere."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from didyma.errors import DataError
from didyma.polytope.active_set import minimise_over_columns
from didyma.polytope.local import local_sparsemap
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.logic import AtLeastOne, AtMost, AtMostOne, Cardinality, ExactlyOne, Implies
from tests.polytope.agreement import allowed_by, projection

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


def draw_scores(rng, graph, kind):
    scores = rng.normal(size=(graph.n_variables, graph.n_states))
    pairwise = rng.normal(size=(len(graph.edges), graph.n_states, graph.n_states))
    if kind == "strong pairs":
        scores, pairwise = 0.1 * scores, 5 * pairwise
    elif kind == "ties":
        scores, pairwise = np.round(scores), np.round(pairwise)
    elif kind == "no pairs":
        pairwise *= 0
    elif kind == "forbidden":
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        pairwise[rng.random(pairwise.shape) < 0.1] = -np.inf
    return scores, pairwise


KINDS = ["normal", "strong pairs", "ties", "no pairs", "forbidden"]


def exact_marginals(graph, scores, pairwise):
    """SparseMAP over all outputs, or None if there is none."""
    states = np.array(list(product(range(graph.n_states), repeat=graph.n_variables)))
    theta = scores[np.arange(graph.n_variables), states].sum(axis=1)
    for e, (i, j) in enumerate(graph.edges):
        theta = theta + pairwise[e, states[:, i], states[:, j]]
    possible = theta > -np.inf
    if not possible.any():
        return None
    M = (states[possible][:, :, None] == np.arange(graph.n_states)).reshape(
        possible.sum(), -1
    ) * 1.0
    solution = minimise_over_columns(M @ M.T, theta[possible])
    return (solution.weights @ M[solution.active]).reshape(scores.shape)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_on_trees(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        n, n_states = int(rng.integers(1, 6)), int(rng.integers(1, 4))
        edges = [(int(rng.integers(0, i)), i)[:: rng.choice([1, -1])] for i in range(1, n)]
        graph = FactorGraph(n, n_states, edges)
        scores, pairwise = draw_scores(rng, graph, kind)
        expected = exact_marginals(graph, scores, pairwise)
        if expected is None:
            with pytest.raises(DataError, match="-inf"):
                local_sparsemap(scores, graph, pairwise=pairwise)
            continue
        solution = local_sparsemap(scores, graph, pairwise=pairwise)
        assert solution.converged
        np.testing.assert_allclose(solution.marginals, expected, atol=1e-8)


def best_point(graph, scores, pairwise):
    """By an oracle over distributions of every factor's own assignments, as 0/1 rows of states."""
    size = graph.n_states
    factors = [([v], np.arange(size)[:, None], np.zeros(size)) for v in range(graph.n_variables)]
    for e, edge in enumerate(graph.edges):
        factors.append((edge, np.array(list(product(range(size), repeat=2))), pairwise[e].ravel()))
    factors += [allowed_by(one) for one in graph.logic]
    states = np.arange(size)
    rows = [
        (
            (np.array(scope)[:, None] * size + states).ravel(),
            (listed[:, :, None] == states).reshape(len(listed), -1),
            gains,
        )
        for scope, listed, gains in factors
    ]
    return projection(scores.ravel(), rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_states", [2, 3])
def test_best_point_with_loops_and_logic(kind, n_states):
    rng = np.random.default_rng(10 * n_states + KINDS.index(kind))
    for _ in range(6):
        n = int(rng.integers(2, 6))
        edges = [tuple(rng.choice(n, 2, replace=False)) for _ in range(rng.integers(0, 2 * n))]
        logic = []
        for _ in range(rng.integers(0, 3) if n_states == 2 else 0):
            chosen = rng.choice(n, rng.integers(1, n + 1), replace=False)
            literals = tuple(int(v) if rng.random() < 0.7 else ~int(v) for v in chosen)
            low = int(rng.integers(0, len(literals) + 1))
            high = int(rng.integers(low, len(literals) + 1))
            logic.append(Cardinality(literals, low, high))
        graph = FactorGraph(n, n_states, edges, logic)
        scores, pairwise = draw_scores(rng, graph, kind)
        try:
            expected = best_point(graph, scores, pairwise)
        except LookupError:
            with pytest.raises(DataError, match="-inf"):
                local_sparsemap(scores, graph, pairwise=pairwise)
            continue
        solution = local_sparsemap(scores, graph, pairwise=pairwise)
        assert solution.converged
        np.testing.assert_allclose(solution.marginals.ravel(), expected, atol=1e-7)


def test_generic_solver_agrees():
    """Frustrated triangle with a budget, against sequential quadratic programming."""
    graph = FactorGraph(3, edges=TRIANGLE, logic=[AtMost(1, [0, 1, 2])])
    rng = np.random.default_rng(3)
    scores, pairwise = rng.normal(size=(3, 2)), 2 * rng.normal(size=(3, 2, 2))

    def split(x):
        return np.stack([1 - x[:3], x[:3]], axis=1), x[3:].reshape(3, 2, 2)

    def loss(x):
        u, v = split(x)
        return 0.5 * (u**2).sum() - (scores * u).sum() - (pairwise * v).sum()

    def agreement(x):
        u, v = split(x)
        rows = [v[e].sum(axis=1) - u[i] for e, (i, _) in enumerate(TRIANGLE)]
        columns = [v[e].sum(axis=0)[:1] - u[j][:1] for e, (_, j) in enumerate(TRIANGLE)]
        return np.concatenate(rows + columns)

    reference = minimize(
        loss,
        np.full(15, 0.25),
        bounds=[(0, 1)] * 15,
        constraints=[
            {"type": "eq", "fun": agreement},
            {"type": "ineq", "fun": lambda x: 1 - x[:3].sum()},
        ],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    solution = local_sparsemap(scores, graph, pairwise=pairwise)
    np.testing.assert_allclose(solution.marginals[:, 1], reference.x[:3], atol=1e-5)
    np.testing.assert_allclose(solution.objective, -reference.fun, atol=1e-9)


def test_certificate():
    graph = FactorGraph(6, 3, [(i, j) for i in range(6) for j in range(i)])
    rng = np.random.default_rng(4)
    scores, pairwise = rng.normal(size=(3, 6, 3)), rng.normal(size=(3, 15, 3, 3))
    solution = local_sparsemap(scores, graph, pairwise=pairwise)
    u, v = solution.marginals, solution.pairwise
    assert u.shape == (3, 6, 3)
    assert v.shape == (3, 15, 3, 3)
    first, second = np.array(graph.edges).T
    np.testing.assert_allclose(v.sum(axis=3), u[:, first], atol=1e-9)
    np.testing.assert_allclose(v.sum(axis=2), u[:, second], atol=1e-9)
    np.testing.assert_allclose(u.sum(axis=2), 1, atol=1e-9)
    assert min(u.min(), v.min()) >= 0
    value = (scores * u).sum((1, 2)) + (pairwise * v).sum((1, 2, 3)) - 0.5 * (u**2).sum((1, 2))
    np.testing.assert_allclose(solution.objective, value, atol=1e-9)
    np.testing.assert_allclose(solution.gap, np.abs(solution.bound - value), atol=1e-12)
    assert (solution.gap <= 1e-10 * np.maximum(1, np.abs(value))).all()
    assert solution.converged.all()
    for b in range(3):  # the batch changes nothing
        alone = local_sparsemap(scores[b], graph, pairwise=pairwise[b])
        np.testing.assert_array_equal(alone.marginals, u[b])
    shared = local_sparsemap(scores, graph, pairwise=pairwise[0])
    np.testing.assert_allclose(shared.marginals[0], u[0], atol=1e-9)


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_gap_bounds_the_distance(limit):
    graph = FactorGraph(5, 3, [(i, j) for i in range(5) for j in range(i)])
    rng = np.random.default_rng(5)
    scores, pairwise = rng.normal(size=(5, 3)), 4 * rng.normal(size=(10, 3, 3))
    best = local_sparsemap(scores, graph, pairwise=pairwise)
    with pytest.warns(ToleranceWarning, match="1 of 1 instances stopped"):
        early = local_sparsemap(scores, graph, pairwise=pairwise, max_iter=limit)
    assert not early.converged
    assert early.n_iter == limit
    assert early.objective <= best.objective + 1e-9 <= early.objective + early.gap + 2e-9
    assert 0.5 * ((early.marginals - best.marginals) ** 2).sum() <= early.gap


GRAPHS = {
    "tree": FactorGraph(5, 3, [(0, 1), (2, 1), (1, 3), (3, 4)]),
    "triangle": FactorGraph(3, 2, TRIANGLE),
    "complete": FactorGraph(4, 3, [(i, j) for i in range(4) for j in range(i)]),
    "logic": FactorGraph(
        5, 2, TRIANGLE, [ExactlyOne([0, 1, 3]), AtMost(2, range(5)), AtLeastOne([~2, 4])]
    ),
    "only logic": FactorGraph(4, 2, (), [AtMostOne([0, 1, 2]), Implies(0, 3)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_derivatives(name):
    graph = GRAPHS[name]
    rng = np.random.default_rng(6)
    temperature, step = 0.7, 1e-6
    n_smooth = 0
    for _ in range(8):
        scores, pairwise = draw_scores(rng, graph, "normal")
        d_scores, d_pairwise = draw_scores(rng, graph, "normal")
        d_marginals = rng.normal(size=scores.shape)

        def at(h, s=scores, p=pairwise, ds=d_scores, dp=d_pairwise):
            return local_sparsemap(s + h * ds, graph, pairwise=p + h * dp, temperature=temperature)

        solution = at(0.0)
        forward = (at(step).marginals - solution.marginals) / step
        backward = (solution.marginals - at(-step).marginals) / step
        if np.abs(forward - backward).max() > 1e-6:
            continue  # a kink
        n_smooth += 1
        derivative = solution.jvp(d_scores, pairwise=d_pairwise)
        np.testing.assert_allclose(derivative, (forward + backward) / 2, atol=1e-7)
        to_scores, named = solution.vjp(d_marginals)
        to_pairwise = named["pairwise"]
        assert to_pairwise.shape == pairwise.shape
        np.testing.assert_allclose(
            (to_scores * d_scores).sum() + (to_pairwise * d_pairwise).sum(),
            (d_marginals * derivative).sum(),
            atol=1e-9,
        )
    assert n_smooth >= 6


def test_derivatives_of_a_batch():
    graph = GRAPHS["complete"]
    rng = np.random.default_rng(7)
    scores, pairwise = rng.normal(size=(2, 4, 3)), rng.normal(size=(6, 3, 3))
    d_marginals = rng.normal(size=scores.shape)
    d_scores, named = local_sparsemap(scores, graph, pairwise=pairwise).vjp(d_marginals)
    total = 0.0
    for b in range(2):
        alone = local_sparsemap(scores[b], graph, pairwise=pairwise).vjp(d_marginals[b])
        np.testing.assert_allclose(d_scores[b], alone[0], atol=1e-12)
        total = total + alone[1]["pairwise"]
    np.testing.assert_allclose(named["pairwise"], total, atol=1e-12)


def test_temperature_scales():
    graph = GRAPHS["triangle"]
    rng = np.random.default_rng(8)
    scores, pairwise = rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2))
    warm = local_sparsemap(scores, graph, pairwise=pairwise, temperature=0.3)
    scaled = local_sparsemap(scores / 0.3, graph, pairwise=pairwise / 0.3)
    np.testing.assert_allclose(warm.marginals, scaled.marginals, atol=1e-9)


def test_huge_scores_choose_one_output():
    graph = FactorGraph(4, 3, [(0, 1), (1, 2), (2, 3)])
    rng = np.random.default_rng(9)
    scores, pairwise = rng.normal(size=(4, 3)), rng.normal(size=(3, 3, 3))
    best = graph.predict(scores, pairwise=pairwise)
    for scale in (1e6, 1e200):
        solution = local_sparsemap(scale * scores, graph, pairwise=scale * pairwise)
        assert solution.converged
        np.testing.assert_allclose(solution.marginals, np.eye(3)[best], atol=1e-9)


def test_a_graph_too_wide_for_exact_inference():
    at = np.arange(225).reshape(15, 15)
    edges = [*zip(at[:, :-1].ravel(), at[:, 1:].ravel()), *zip(at[:-1].ravel(), at[1:].ravel())]
    graph = FactorGraph(225, 2, edges, [AtMost(30, range(225))])
    rng = np.random.default_rng(10)
    solution = local_sparsemap(
        rng.normal(size=(225, 2)), graph, pairwise=rng.normal(size=(420, 2, 2))
    )
    assert solution.converged
    assert solution.marginals[:, 1].sum() <= 30 + 1e-9


def test_bad_input():
    graph = GRAPHS["triangle"]
    zero = np.zeros((3, 2))
    for call, message in [
        (lambda: local_sparsemap(np.zeros((2, 2)), graph), "3 variables"),
        (lambda: local_sparsemap(zero, graph, pairwise=np.zeros((2, 2, 2))), "pairwise"),
        (lambda: local_sparsemap(zero, graph, temperature=0.0), "temperature"),
        (lambda: local_sparsemap(zero - np.inf, graph), "instance 0"),
        (lambda: local_sparsemap(zero * np.nan, graph), "nan"),
        (lambda: local_sparsemap(zero, FactorGraph), "graph: expected a FactorGraph"),
        (lambda: local_sparsemap(zero, graph).vjp(np.zeros(2)), r"direction of shape \(3, 2\)"),
        (
            lambda: local_sparsemap(zero, graph).jvp(zero, pairwise=zero),
            r"direction of shape \(3, 2, 2\)",
        ),
    ]:
        with pytest.raises(DataError, match=message):
            call()
    contradiction = FactorGraph(2, logic=[ExactlyOne([0, 1]), ExactlyOne([0]), ExactlyOne([1])])
    with pytest.raises(DataError, match="instance 0"):
        local_sparsemap(np.zeros((2, 2)), contradiction)
