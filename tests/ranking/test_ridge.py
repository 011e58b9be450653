"""Ridge on grades is scikit-learn's on differences within queries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

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
