"""The kernels of boosting against plain sums and SciPy's minimisers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from didyma._core import nbest as boosting

WEIGHTS = st.floats(0, 1e3)


def random_pairs(seed, n_rows=40, n_features=15, density=0.4):
    random = np.random.default_rng(seed)
    X = (random.random((n_rows, n_features)) < density).astype(np.int64)
    better, worse = random.integers(0, n_rows, (2, 60))
    H = sp.csr_array(X)
    rows = boosting.differences(H.indptr.astype(np.int64), H.indices, better, worse)
    return X[better] - X[worse], rows, random.random(60)


def gains(plus, minus, coef, ridge):
    """Exact gain of each feature, each asked for alone."""
    found = []
    for sums in zip(plus, minus, coef):
        arrays = [np.array([value]) for value in sums]
        gain, exact = np.empty(1), np.empty(1, np.bool_)
        boosting.bounds(*arrays, ridge, gain, exact)
        bound = gain[0]
        boosting.choose(*arrays, ridge, gain, exact)
        assert exact[0]
        assert gain[0] <= bound * (1 + 1e-9) + 1e-12
        found.append(gain[0])
    return np.array(found)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_differences_are_those_of_dense_rows(density):
    D, (starts, features, signs), _ = random_pairs(1, density=density)
    found = sp.csr_array((signs, features, starts), shape=D.shape).toarray()
    np.testing.assert_array_equal(found, D)
    assert len(signs) == np.abs(D).sum()


def test_sums_are_those_of_dense_rows():
    D, rows, weight = random_pairs(2)
    plus, minus = np.full((2, 15), np.nan)
    boosting.tally(rows, weight, plus, minus)
    np.testing.assert_allclose(plus, weight @ (D > 0))
    np.testing.assert_allclose(minus, weight @ (D < 0))


@given(WEIGHTS, WEIGHTS, st.floats(-20, 20), st.floats(1e-6, 1e3))
def test_a_ridge_step_has_no_slope(plus, minus, a, ridge):
    x = boosting.ridge_step(plus, minus, a, ridge)
    up, down = minus * np.exp(x), plus * np.exp(-x)
    assert abs(up - down + 2 * ridge * (a + x)) <= 1e-9 * (
        up + down + ridge * (1 + abs(a) + abs(x))
    )


@pytest.mark.parametrize("a", [-3.0, 0.0, 0.5])
@pytest.mark.parametrize("ridge", [1e-3, 0.1, 10.0])
def test_a_ridge_step_is_scipys_minimum(a, ridge):
    def objective(x):
        return 0.7 * np.exp(-x) + 0.02 * np.exp(x) + ridge * (a + x) ** 2

    expected = minimize_scalar(objective, bracket=(-1, 1), tol=1e-14)
    x = boosting.ridge_step(0.7, 0.02, a, ridge)
    assert x == pytest.approx(expected.x, abs=1e-6)
    assert gains([0.7], [0.02], [a], ridge) == pytest.approx(objective(0) - expected.fun)


@given(WEIGHTS, WEIGHTS)
def test_without_a_ridge_the_gain_is_what_the_best_step_takes_off_the_loss(plus, minus):
    gain = gains([plus], [minus], [0.0], 0.0)
    if plus > 1e-6 and minus > 1e-6:
        x = 0.5 * np.log(plus / minus)
        left = plus * np.exp(-x) + minus * np.exp(x)
        assert gain[0] == pytest.approx(plus + minus - left, rel=1e-6, abs=1e-9)
    elif plus == 0 or minus == 0:  # the best step is without end
        assert gain[0] == pytest.approx(plus + minus)


@given(WEIGHTS, WEIGHTS, st.floats(-20, 20), st.floats(1e-3, 1e3))
def test_bounds_are_at_least_the_gains(plus, minus, a, ridge):
    assert gains([plus], [minus], [a], ridge) >= -1e-9 * (plus + minus + ridge)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_moves_keep_all_sums_and_choose_the_largest_gain(ridge):
    D, rows, weight = random_pairs(3)
    start = weight.copy()
    index = sp.csc_array(D)
    columns = index.indptr.astype(np.int64), index.indices, index.data.astype(np.int8)
    plus, minus, gain, coef = np.zeros((4, 15))
    seen, exact = np.zeros((2, 15), np.bool_)
    boosting.tally(rows, weight, plus, minus)
    boosting.bounds(plus, minus, coef, ridge, gain, exact)
    random = np.random.default_rng(4)
    for _ in range(50):
        k, step = int(random.integers(15)), float(random.normal())
        boosting.move(k, step, columns, rows, weight, plus, minus, coef, ridge, gain, exact, seen)
        assert not seen.any()
        expected = gains(plus, minus, coef, ridge)
        assert boosting.choose(plus, minus, coef, ridge, gain, exact) == expected.argmax()
        assert np.all(gain >= expected * (1 - 1e-9))
        np.testing.assert_allclose(gain[exact], expected[exact])
    np.testing.assert_allclose(weight, start * np.exp(-D @ coef))
    np.testing.assert_allclose(plus, weight @ (D > 0))
    np.testing.assert_allclose(minus, weight @ (D < 0))


def test_the_first_of_equal_gains_is_chosen():
    plus, minus, coef = np.array([0.0, 2.0, 3.0, 3.0, 3.0]), np.zeros(5), np.zeros(5)
    for ridge in (0.0, 0.5):
        gain, exact = np.empty(5), np.empty(5, np.bool_)
        boosting.bounds(plus, minus, coef, ridge, gain, exact)
        assert boosting.choose(plus, minus, coef, ridge, gain, exact) == 2


def test_only_the_lists_named_choose_again():
    starts = np.array([0, 2, 3, 6])
    values, losses = np.array([1.0, 2, 5, 4, 7, 7]), np.arange(6.0)
    chosen = np.full(3, -1.0)
    boosting.choose_again(np.array([0, 0, 2]), starts, values, losses, chosen)
    assert chosen.tolist() == [1, -1, 4]
