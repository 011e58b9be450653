"""Kernels of prices over binary variables, against their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from didyma._core import prices

ENDS = np.array([0, 1, 1, 2, 0, 3], np.int64)  # pairs of variables
N, N_PAIRS = 4, 3


def terms(pairs: np.ndarray, u: np.ndarray) -> np.ndarray:
    """What each pair adds at best: c · min(u_i, u_j), or c · max(0, u_i + u_j − 1)."""
    first, second = u[ENDS[::2]], u[ENDS[1::2]]
    both = np.where(pairs > 0.0, np.minimum(first, second), np.maximum(0.0, first + second - 1.0))
    return pairs * both


@pytest.mark.parametrize("random_state", range(4))
def test_rows_at_says_what_pairs_add(random_state):
    rng = np.random.default_rng(random_state)
    theta, pairs = rng.normal(size=(2, N)), rng.normal(size=(2, N_PAIRS))
    index = np.concatenate([ENDS, [0, 2, 3]])  # and one constraint, of three variables
    g = np.concatenate([np.zeros(2 * N_PAIRS), [1.0, -1.0, 2.0]])
    b, upper = np.array([0.0, 0.0, 0.0, 1.5]), np.array([0.0, 0.0, 0.0, np.inf])
    x, all_g, all_b, all_upper = prices.rows_at(index, g, b, upper, theta, pairs)
    for i in range(2):
        np.testing.assert_array_equal(all_g[i, 2 * N_PAIRS :], g[2 * N_PAIRS :])
        assert all_b[i, -1] == 1.5
        assert all_upper[i, -1] == np.inf
        for u in map(np.array, product([0.0, 0.3, 1.0], repeat=N)):
            rows = (all_g[i, : 2 * N_PAIRS] * u[ENDS]).reshape(-1, 2).sum(axis=1)
            broken = np.maximum(rows - all_b[i, :N_PAIRS], 0.0)
            penalised = x[i] @ u - all_upper[i, :N_PAIRS] @ broken
            np.testing.assert_allclose(penalised, theta[i] @ u + terms(pairs[i], u).sum())


def test_pair_factors_give_the_probability_of_both():
    """At prices that are complementary: |c| where the row is broken, 0 where it has slack."""
    rng = np.random.default_rng(0)
    pairs, u = rng.normal(size=(9, N_PAIRS)), rng.random((9, N))
    pairs[0] = 0.0
    first, second = u[:, ENDS[::2]], u[:, ENDS[1::2]]
    broken = np.where(pairs > 0.0, second - first > 0.0, first + second - 1.0 > 0.0)
    factors, less = prices.pair_factors(ENDS, pairs, np.abs(pairs) * broken, u)
    both = (factors * u[:, ENDS]).reshape(9, N_PAIRS, 2).sum(axis=2) - less
    smallest, least = np.minimum(first, second), np.maximum(0.0, first + second - 1.0)
    np.testing.assert_allclose(both, np.where(pairs >= 0.0, smallest, least), atol=1e-15)


def test_states_are_reduced_and_expanded():
    """A table's score is linear in its corners; expanding is the transpose of reducing."""
    rng = np.random.default_rng(1)
    parts = rng.normal(size=(3, 2 * N + 4 * N_PAIRS))
    theta = prices.reduce_states(parts, ENDS, N)
    tables = parts[:, 2 * N :].reshape(3, N_PAIRS, 2, 2)
    coupling = tables[:, :, 1, 1] + tables[:, :, 0, 0] - tables[:, :, 1, 0] - tables[:, :, 0, 1]
    nothing = parts[:, : 2 * N : 2].sum(axis=1) + tables[:, :, 0, 0].sum(axis=1)
    for states in map(np.array, product([0, 1], repeat=N)):
        first, second = states[ENDS[::2]], states[ENDS[1::2]]
        score = parts[:, 2 * np.arange(N) + states].sum(axis=1)
        score += tables[:, np.arange(N_PAIRS), first, second].sum(axis=1)
        reduced = nothing + theta @ states + coupling @ (first * second)
        np.testing.assert_allclose(score, reduced)
        rows = (
            np.tile(states.astype(float), (3, 1)),
            np.tile((first * second).astype(float), (3, 1)),
        )
        expanded = prices.expand_states(*rows, ENDS, 1.0)
        assert set(expanded.ravel()) <= {0.0, 1.0}
        np.testing.assert_allclose((expanded * parts).sum(axis=1), score)
        change = prices.expand_states(*rows, ENDS, 0.0)
        np.testing.assert_allclose((change * parts).sum(axis=1), score - nothing)


def minimise(theta: np.ndarray, pairs: np.ndarray, q: float = 1.0):
    """The variables that are best at the best prices, and what `respond` needs."""
    start = np.arange(0, 2 * N_PAIRS + 1, 2)
    empty = np.zeros(2 * N_PAIRS), np.zeros(N_PAIRS), np.zeros(N_PAIRS)
    x, g, b, upper = prices.rows_at(ENDS, *empty, theta, pairs)
    y, u = np.zeros_like(b), np.zeros_like(x)
    free, box = np.zeros(b.shape, bool), (np.zeros_like(x), np.ones_like(x))
    gap, broken, n_iter = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x), np.int64)
    prices.minimise(
        start,
        ENDS,
        g,
        b,
        np.zeros(N_PAIRS),
        upper,
        x,
        q,
        *box,
        1000,
        y,
        u,
        free,
        gap,
        broken,
        n_iter,
    )
    return u, gap, (start, ENDS, g, q, *box, u, free)


def test_minimise_is_optimal_and_respond_its_derivative():
    rng = np.random.default_rng(2)
    theta, pairs, direction = (
        rng.normal(size=(40, N)),
        rng.normal(size=(40, N_PAIRS)),
        rng.normal(size=(40, N)),
    )
    theta += 0.5
    u, gap, at = minimise(theta, pairs)
    assert np.abs(gap).max() < 1e-12

    def objective(i: int, point: np.ndarray) -> float:
        return theta[i] @ point + terms(pairs[i], point).sum() - 0.5 * point @ point

    for i in range(len(u)):
        best = objective(i, u[i])
        for point in rng.random((50, N)):
            nearer = u[i] + 1e-3 * (point - u[i])
            assert max(objective(i, point), objective(i, nearer)) <= best + 1e-12

    d_u = np.zeros_like(u)
    prices.respond(*at, direction, d_u)
    step = 1e-6
    ends = [minimise(theta + sign * step * direction, pairs)[0] for sign in (-1.0, 1.0)]
    np.testing.assert_allclose(d_u, (ends[1] - ends[0]) / (2.0 * step), atol=1e-7)
    assert at[-1].any()
    assert (np.abs(d_u) > 0.0).any()

    other = np.zeros_like(u)
    second = rng.normal(size=u.shape)
    prices.respond(*at, second, other)
    np.testing.assert_allclose(
        (d_u * second).sum(axis=1), (other * direction).sum(axis=1), atol=1e-12
    )
