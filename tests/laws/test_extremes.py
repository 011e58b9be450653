"""Any finite input gives finite weights with a true report, or one clear error."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from didyma.errors import DataError
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.svm import SVMRanker

RNG = np.random.default_rng(7)
X = RNG.normal(size=(24, 3))
Y = (RNG.random(24) < 0.4).astype(float)
QID = np.repeat(np.arange(4), 6)
Y[::6], Y[1::6] = 1.0, 0.0

RANKERS = [
    SVMRanker(max_iter=60),
    SVMRanker(solver="one-slack", max_iter=60),
    SVMRanker(solver="n-slack", max_iter=10),
    SVMRanker(solver="bundle", max_iter=60),
    SVMRanker("ndcg", max_iter=60),
    LatentSVMRanker(max_iter=5),
    LatentPerceptronRanker(epochs=3),
    ClassificationRanker(max_iter=50),
    ClassificationRanker(loss="hinge", max_iter=50),
    PolynomialRanker(max_iter=1000),
]
EXPONENTS = st.sampled_from([-308, -160, -100, -20, -3, 0, 3, 20, 60, 89, 90, 120, 154, 200, 300])


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@settings(deadline=None, max_examples=30)
@given(
    scale=EXPONENTS,
    column=EXPONENTS,
    C=st.sampled_from([1e-300, 1e-20, 1.0, 1e6, 1e30, 1e100, 1e300]),
    tol=st.sampled_from([0.0, 1e-3]),
)
def test_numbers_of_any_size(ranker: Any, scale: int, column: int, C: float, tol: float) -> None:
    rows = X * 10.0**scale
    rows[:, 1] = X[:, 1] * 10.0**column
    ranker = clone(ranker).set_params(C=C)
    if "tol" in ranker.get_params():
        ranker.set_params(tol=tol)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ranker.fit(rows, Y, qid=QID)
        except DataError:
            return
    result = ranker.result_
    assert np.isfinite(result.value)
    if not result.converged:
        assert any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    if isinstance(ranker, SVMRanker):
        assert np.isfinite(result.dual)
        assert result.gap >= -1e-9 * result.value
        assert not result.converged or result.gap <= max(ranker.tol, 1e-12) * result.value
    if hasattr(ranker, "coef_"):
        assert np.isfinite(ranker.coef_).all()
    with contextlib.suppress(DataError):
        assert np.isfinite(ranker.predict(rows)).all()


@pytest.mark.parametrize("value", [1e91, -1e154, 1e300, -1e308])
def test_a_feature_that_is_too_large_is_named(value: float) -> None:
    rows = X.copy()
    rows[17, 2] = value
    for given_rows in (rows, sp.csr_array(rows)):
        with pytest.raises(DataError, match=r"feature 2: \S+ in row 17 is too large"):
            SVMRanker().fit(given_rows, Y, qid=QID)
    with pytest.raises(DataError, match="feature age: "):
        SVMRanker().path(pd.DataFrame(rows, columns=["bm25", "tf", "age"]), Y, [1.0], qid=QID)


def test_a_row_that_is_too_large_to_score_is_named() -> None:
    ranker = SVMRanker(C=1e6).fit(1e-3 * X, Y, qid=QID)
    rows = X.copy()
    rows[5] = 1e308
    with pytest.raises(DataError, match="the features in row 5 are too large"):
        ranker.predict(rows)


def test_a_grade_that_is_too_large_is_refused() -> None:
    for loss in ("ndcg", "ndcg(gain=linear)"):
        with pytest.raises(DataError, match=r"y: a grade of 1e\+300 has a gain beyond"):
            SVMRanker(loss).fit(X, Y * 1e300, qid=QID)


def test_weights_that_are_too_large_are_refused() -> None:
    with pytest.raises(DataError, match="sample_weight: expected finite weights"):
        SVMRanker().fit(X, Y, qid=QID, sample_weight=np.full(24, 1e308))
