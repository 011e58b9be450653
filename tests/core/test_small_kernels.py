"""Kernels against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from didyma._core.assignment import assign
from didyma._core.polytope import Factor
from didyma._core.rows import dense_rows, sparse_rows
from didyma._core.sorting import insertion_sort, partition_descending, sort_descending

SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=200).map(
    lambda values: np.array(values, dtype=float)
)


@given(scores=SCORES)
@settings(deadline=None)
def test_rows_are_sorted_by_score(scores):
    index = np.arange(len(scores))
    sort_descending(scores, index)
    assert sorted(index.tolist()) == list(range(len(scores)))
    assert np.all(np.diff(scores[index]) <= 0)


@given(scores=SCORES, seed=st.integers(0, 99))
@settings(deadline=None)
def test_any_order_is_corrected_to_the_same(scores, seed):
    """By descending score, equal ones by index: from any order before, by insertion or anew."""
    sorted_rows = np.argsort(-scores, kind="stable")
    near = sorted_rows.copy()
    near[:2] = near[:2][::-1]
    for before in (np.random.default_rng(seed).permutation(len(scores)), near, sorted_rows[::-1]):
        order = before.astype(np.int32)
        insertion_sort(scores, order)
        assert np.array_equal(order, sorted_rows)


@given(scores=SCORES, data=st.data())
@settings(deadline=None)
def test_partition_puts_a_pivot_in_its_place(scores, data):
    low = data.draw(st.integers(0, len(scores) - 1))
    high = data.draw(st.integers(low + 1, len(scores)))
    values, rows = scores.copy(), np.arange(len(scores))
    pivot = partition_descending(values, rows, low, high)
    assert low <= pivot < high
    assert sorted(rows.tolist()) == list(range(len(scores)))
    assert np.array_equal(values, scores[rows])
    assert np.all(values[low:pivot] >= values[pivot])
    assert np.all(values[pivot:high] <= values[pivot])
    assert np.array_equal(rows[:low], np.arange(low))
    assert np.array_equal(rows[high:], np.arange(high, len(scores)))


def test_sorting_is_not_quadratic_on_sorted_or_constant_input():
    n = 200_000
    for scores in (np.arange(float(n)), -np.arange(float(n)), np.zeros(n)):
        index = np.arange(len(scores))
        sort_descending(scores, index)
        assert np.all(np.diff(scores[index]) <= 0)
        order = np.arange(len(scores), dtype=np.int32)[::-1].copy()
        insertion_sort(scores, order)
        assert np.array_equal(order, np.argsort(-scores, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 5, 9])
def test_products_with_gathered_rows(dtype, n_rows):
    rng = np.random.default_rng(n_rows)
    X = (rng.standard_normal((20, 7)) * (rng.random((20, 7)) < 0.5)).astype(dtype)
    rows = rng.permutation(20)[:n_rows]
    w, coef = rng.standard_normal(7), rng.standard_normal(n_rows)
    coef[rng.random(n_rows) < 0.3] = 0.0
    sparse = sp.csr_array(X)
    starts = sparse.indptr.astype(np.int64)
    for storage in (
        dense_rows(X),
        *(
            sparse_rows(sparse.data, sparse.indices.astype(index), starts, 7)
            for index in (np.int32, np.int64)
        ),
    ):
        scores, total = np.empty(n_rows), np.ones(7)
        storage.score(rows, w, scores)
        storage.combine(rows, coef, total)
        np.testing.assert_allclose(scores, X[rows].astype(float) @ w, atol=1e-12)
        np.testing.assert_allclose(total, 1.0 + X[rows].astype(float).T @ coef, atol=1e-12)


def test_cholesky_grows_and_shrinks():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 12))
    factor = Factor(12)
    theta = rng.standard_normal(12)
    active: list[int] = []
    for step in range(60):
        n = len(active)
        if n < 12 and (n == 0 or step % 3):
            new = next(i for i in range(12) if i not in active)
            row = np.zeros(12)
            row[:n] = A[:, active].T @ A[:, new]
            factor.solve_lower(row)
            factor.append(row, A[:, new] @ A[:, new] - row[:n] @ row[:n], theta[new])
            active.append(new)
        else:
            drop = int(rng.integers(n))
            factor.remove(drop)
            active.pop(drop)
        n = len(active)
        K = A[:, active].T @ A[:, active]
        y = np.zeros(12)
        factor.minimise(1.0, y)
        assert y.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(np.ptp(K @ y[:n] - theta[active]), 0.0, atol=1e-8)


@given(seed=st.integers(0, 10_000), n=st.integers(1, 9), extra=st.integers(0, 4))
@settings(deadline=None, max_examples=150)
def test_assignment_equals_scipy(seed, n, extra):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n, n + extra))
    if seed % 3 == 0:
        weights = np.round(weights)
    columns = assign(weights)
    assert len(set(columns.tolist())) == n
    best = weights[linear_sum_assignment(weights, maximize=True)].sum()
    assert weights[np.arange(n), columns].sum() == pytest.approx(best)
