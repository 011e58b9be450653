"""The active-set solver on explicit columns, certified by looking at every column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.polytope.active_set import minimise_over_columns, project


def problem_of(seed: int, kind: str, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if kind == "gaussian":
        return rng.standard_normal((d, m)), 3.0 * rng.standard_normal(m)
    M = rng.integers(-1, 2, (d, m)).astype(float)  # duplicates and affine dependence abound
    if kind == "zero vertex":
        M[:, 0] = 0.0
    return M, rng.integers(-1, 3, m).astype(float)


def certified_gap(M, theta, active, weights):
    """max_s θ_s − m_s·u minus its mean under y: zero exactly at the optimum."""
    y = np.zeros(M.shape[1])
    y[active] = weights
    slack = theta - M.T @ (M @ y)
    return slack.max() - slack @ y


PROBLEMS = given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(["gaussian", "integer", "zero vertex"]),
    d=st.integers(1, 7),
    m=st.integers(1, 16),
)


@PROBLEMS
@settings(deadline=None, max_examples=300)
def test_optimum_over_a_pool(seed, kind, d, m):
    M, theta = problem_of(seed, kind, d, m)
    solution = minimise_over_columns(M.T @ M, theta)
    assert solution.converged
    assert solution.weights.min() > 0.0
    assert solution.weights.sum() == pytest.approx(1.0)
    assert len(set(solution.active.tolist())) == len(solution.active) <= d + 1
    assert certified_gap(M, theta, solution.active, solution.weights) <= 1e-9


@PROBLEMS
@settings(deadline=None, max_examples=100)
def test_a_python_oracle_finds_the_same_point(seed, kind, d, m):
    M, theta = problem_of(seed, kind, d, m)

    def oracle(u):
        best = int(np.argmax(theta - M.T @ u))
        return M[:, best], theta[best]

    found = project(oracle, d, tol=1e-12)
    pool = minimise_over_columns(M.T @ M, theta)
    assert found.converged
    # The minimiser u is unique; M.T @ u is what the pool's solution carries.
    np.testing.assert_allclose(M.T @ found.point, pool.point, atol=1e-6)


def test_sparsemax():
    """Over the simplex's own corners the projection is sparsemax, which has a closed form."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.standard_normal(12)
        sorted_scores = np.sort(scores)[::-1]
        counts = np.arange(1, 13)
        support = sorted_scores > (np.cumsum(sorted_scores) - 1) / counts
        threshold = (sorted_scores[support].sum() - 1) / support.sum()
        solution = minimise_over_columns(np.eye(12), scores)
        np.testing.assert_allclose(solution.point, np.maximum(scores - threshold, 0), atol=1e-12)
        assert solution.tau == pytest.approx(threshold)


def test_large_support_stays_exact():
    """No drift: peers' explicit inverses fail beyond about 100 active columns."""
    rng = np.random.default_rng(1)
    M = rng.standard_normal((250, 600))
    theta = 40.0 * np.ones(600) + rng.standard_normal(600)
    solution = minimise_over_columns(M.T @ M, theta)
    assert solution.converged
    assert len(solution.active) > 120
    assert certified_gap(M, theta, solution.active, solution.weights) <= 1e-9


def test_warm_start_from_the_solution_takes_one_step():
    M, theta = problem_of(3, "gaussian", 6, 40)
    cold = minimise_over_columns(M.T @ M, theta)
    warm = minimise_over_columns(M.T @ M, theta, start=cold)
    assert warm.n_iter == 1
    np.testing.assert_allclose(warm.point, cold.point, atol=1e-12)


def test_a_limit_is_reported():
    M, theta = problem_of(3, "gaussian", 6, 40)
    solution = minimise_over_columns(M.T @ M, theta, max_iter=2)
    assert not solution.converged
    assert solution.n_iter == 2
    assert certified_gap(M, theta, solution.active, solution.weights) > 1e-9


def test_short_columns_are_told_apart_beside_long_ones():
    """As are the mean of many cuts and the zero cut, beside one of all examples at a large C."""
    G = np.array([[0.0, 0.0, 0.0], [0.0, 0.0139781, 1487.4168], [0.0, 1487.4168, 3.2116e8]])
    theta = np.array([0.0, 0.0143443, 1584.0024])
    for start in (None, minimise_over_columns(G[:2, :2], theta[:2])):
        found = minimise_over_columns(G, theta, start=start)
        assert found.converged
        y = np.zeros(3)
        y[found.active] = found.weights
        slope = theta - G @ y
        assert slope.max() - y @ slope <= 1e-8


@pytest.mark.parametrize("offset", [2.0**40, -(2.0**40)])
def test_an_offset_of_all_columns_changes_nothing(offset):
    """All numbers are exact in binary, so that nothing but the solver could lose digits."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        M = rng.integers(-1, 2, (6, 12)).astype(float)
        theta = rng.integers(-1024, 1024, 12) / 1024
        plain = minimise_over_columns(M.T @ M, theta, tol=0.0)
        shifted = minimise_over_columns(M.T @ M, theta + offset, tol=0.0)
        np.testing.assert_allclose(shifted.point, plain.point, rtol=0, atol=1e-9)
        assert certified_gap(M, theta, shifted.active, shifted.weights) <= 1e-9


def test_an_oracle_that_fails_or_names_no_column_is_heard():
    def failing(u):
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        project(failing, 3)
    with pytest.raises(DataError, match="expected a column of 3 numbers, found 2"):
        project(lambda u: (np.zeros(2), 0.0), 3)
