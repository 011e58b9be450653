"""Ridge on grades is scikit-learn's on differences within queries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import didyma
from didyma import RidgeRanker
from didyma.errors import DataError
from didyma.model import load
from didyma.ranking import ridge

RNG = np.random.default_rng(0)
QID = RNG.permutation(np.repeat(np.arange(12), 8))
X = RNG.normal(size=(96, 5)) + QID[:, None]
Y = np.clip(np.round(X @ [1.0, 0.5, 0.0, 0.0, -0.5] - QID + RNG.normal(size=96)), 0, 4)


def centred(values):
    means = np.array([values[q == QID].mean(axis=0) for q in range(12)])
    return values - means[QID]


def by_sklearn(C, weight):
    model = Ridge(alpha=weight.sum() / C, fit_intercept=False)
    return model.fit(centred(X), centred(Y), sample_weight=weight)


@pytest.mark.parametrize("C", [0.01, 10.0, 1e4])
@pytest.mark.parametrize("storage", [np.asarray, np.float32, sp.csr_array, sp.csc_matrix])
def test_it_is_scikit_learns(C, storage):
    ranker = RidgeRanker(C).fit(storage(X), Y, qid=QID)
    expected = by_sklearn(C, np.ones(96)).coef_
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-4, atol=1e-6)
    residual = centred(Y) - centred(X) @ expected
    value = (expected @ expected + C * (residual**2).mean()) / 2
    assert ranker.result_.value == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_rows_in_blocks_are_rows_at_once(storage, monkeypatch):
    at_once = RidgeRanker().fit(storage(X), Y, qid=QID)
    monkeypatch.setattr(ridge, "BLOCK", 11)
    np.testing.assert_allclose(RidgeRanker().fit(storage(X), Y, qid=QID).coef_, at_once.coef_)


def test_weights_of_queries():
    weight = RNG.integers(0, 4, size=12).astype(float)[QID]
    ranker = RidgeRanker(3.0).fit(X, Y, qid=QID, sample_weight=weight)
    np.testing.assert_allclose(ranker.coef_, by_sklearn(3.0, weight).coef_)


def test_levels_of_queries_do_not_matter():
    level = RNG.normal(size=12)[QID]
    ranker = RidgeRanker().fit(X, Y, qid=QID)
    moved = RidgeRanker().fit(X + 5 * level[:, None], Y + 7 + level, qid=QID)
    np.testing.assert_allclose(moved.coef_, ranker.coef_)


def test_equal_columns_share_their_weight(tmp_path):
    ranker = RidgeRanker(1e6).fit(np.hstack([X, X[:, :1]]), Y, qid=QID)
    assert ranker.coef_[0] == pytest.approx(ranker.coef_[5], rel=1e-4)
    ranker.save(tmp_path / "ridge.safetensors")
    loaded = load(tmp_path / "ridge.safetensors")
    assert isinstance(loaded, RidgeRanker)
    np.testing.assert_array_equal(loaded.coef_, ranker.coef_)


def least(rows, C):
    """The solution by least squares of centred rows and the norm, in units of the columns."""
    stacked = np.vstack([centred(rows) / np.sqrt(len(rows)), np.eye(rows.shape[1]) / np.sqrt(C)])
    units = np.linalg.norm(stacked, axis=0)
    target = np.append(centred(Y) / np.sqrt(len(rows)), np.zeros(rows.shape[1]))
    return np.linalg.lstsq(stacked / units, target, rcond=None)[0] / units


def objective(rows, C, w):
    return (w @ w + C * np.mean((centred(Y) - centred(rows) @ w) ** 2)) / 2


STORED = [np.asarray, sp.csr_array]


@pytest.mark.filterwarnings("ignore:nothing was learned")  # by scores in single precision
@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("C", [1e-3, 10.0, 1e6, 1e12])
def test_an_offset_costs_no_digits(storage, C):
    rows = X.copy()
    rows[:, 0] = 1.7e9 + np.round(86_400 * X[:, 0])  # a date in seconds
    rows[:, 2] = 1e9 + QID  # and one that all rows of a query have
    rows[:, 4] *= X[:, 4] > 11.0  # few rows have this one
    ranker = RidgeRanker(C).fit(storage(rows), Y, qid=QID)
    expected = np.where(np.arange(5) == 2, 0.0, least(rows, C))  # there it is rounding
    np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-8)
    assert ranker.result_.value == pytest.approx(objective(rows, C, ranker.coef_), rel=1e-9)


def test_sparse_rows_stay_sparse():
    rows = sp.random_array((96, 40), density=0.1, rng=RNG, format="csr")
    rows = sp.hstack([rows, 1e9 + X[:, :1]], format="csr")
    stored = [block.rows.nnz for block in ridge._blocks(didyma.Lists(rows, Y, QID))]
    assert sum(stored) <= rows.nnz


@pytest.mark.filterwarnings("ignore:nothing was learned")  # there is little
@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("C", [10.0, 1e8, 1e16])
def test_columns_of_mixed_scale(storage, C):
    mixed = X @ RNG.normal(size=(5, 8)) + 0.01 * RNG.normal(size=(96, 8))
    rows = mixed * np.where(np.arange(8) % 3, 1.0, 1e9)
    ranker = RidgeRanker(C).fit(storage(rows), Y, qid=QID)
    value = objective(rows, C, least(rows, C))
    assert ranker.result_.value == pytest.approx(value, rel=1e-9)
    assert objective(rows, C, ranker.coef_) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("C", [1e8, 1e12, 1e16, 1e30, 1e60])
def test_dependent_columns_do_not_explode(storage, C):
    once, twice = (
        RidgeRanker(C).fit(storage(rows), Y, qid=QID) for rows in (X, np.hstack([X, 3.0 * X]))
    )
    both = twice.coef_[:5] + 3.0 * twice.coef_[5:]
    np.testing.assert_allclose(both, once.coef_, rtol=1e-5)
    assert np.abs(twice.coef_).max() < np.abs(once.coef_).max()
    assert twice.result_.value == pytest.approx(once.result_.value, rel=1e-6)


def test_labels_that_are_too_large_are_named():
    with pytest.raises(DataError, match=r"^y: .*e\+300 is too large .* scale the labels"):
        RidgeRanker().fit(X, Y * 1e300, qid=QID)
    ranker, scaled = (RidgeRanker().fit(X, Y * scale, qid=QID) for scale in (1.0, 1e80))
    np.testing.assert_allclose(scaled.coef_, 1e80 * ranker.coef_)


@pytest.mark.parametrize(
    ("ranker", "rows", "message"),
    [
        (RidgeRanker(0.0), X, "C: expected a positive number"),
        (RidgeRanker(), np.zeros((96, 5001)), "X: expected at most 5,000 features"),
        (RidgeRanker(), np.where(X[0, 0] == X, np.nan, X), "NaN"),
    ],
)
def test_what_is_refused(ranker, rows, message):
    with pytest.raises(DataError, match=message):
        ranker.fit(rows, Y, qid=QID)


def test_grades_must_differ_somewhere():
    with pytest.raises(DataError):
        RidgeRanker().fit(X, np.ones(96), qid=QID)
