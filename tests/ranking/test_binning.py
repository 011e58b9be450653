"""Score binning against its definition, 1[f > k]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from didyma.errors import DataError
from didyma.ranking.binning import STRATEGIES, ScoreBinner

scores = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=8),
    elements=st.one_of(st.just(np.nan), st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)),
)


def indicators(binner: ScoreBinner, rows: NDArray[Any]) -> NDArray[Any]:
    """The definition, one indicator at a time."""
    pairs = zip(binner.column_, binner.thresholds_)
    return np.column_stack([rows[:, column] > threshold for column, threshold in pairs])


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(scores, st.integers(1, 6))
def test_dense_and_sparse_follow_the_definition(
    strategy: str, rows: NDArray[Any], n_thresholds: int
) -> None:
    binner = ScoreBinner(n_thresholds, strategy).fit(rows)
    expected = indicators(binner, rows)
    sparse = binner.transform(rows)
    assert isinstance(sparse, sp.csr_array)
    assert sparse.has_canonical_format
    np.testing.assert_array_equal(sparse.toarray(), expected)
    np.testing.assert_array_equal(binner.set_params(sparse_output=False).transform(rows), expected)
    shifted = rows + 0.5
    np.testing.assert_array_equal(binner.transform(shifted), indicators(binner, shifted))


@given(scores, st.integers(1, 6))
def test_thresholds_are_sets_and_ascend(rows: NDArray[Any], n_thresholds: int) -> None:
    binner = ScoreBinner(n_thresholds).fit(rows)
    assert np.unique(binner.column_).tolist() == list(range(rows.shape[1]))
    for column in range(rows.shape[1]):
        own = binner.thresholds_[binner.column_ == column]
        assert 1 <= len(own) <= n_thresholds
        assert np.all(np.diff(own) > 0)
    names = binner.get_feature_names_out()
    assert len(set(names)) == len(names)


def test_quantiles_split_the_training_scores_evenly() -> None:
    rows = np.random.default_rng(0).exponential(size=(5100, 2))
    binner = ScoreBinner(sparse_output=False)
    shares = binner.fit_transform(rows).mean(axis=0)
    assert shares.shape == (100,)
    np.testing.assert_allclose(shares[:50], 1 - np.arange(1, 51) / 51, atol=1e-3)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.5]) | st.floats(-5, 5), min_size=1), st.integers(1, 6))
def test_no_score_takes_more_than_its_share_of_quantiles(values: list[float], n: int) -> None:
    """Where scores are at least as many as bins, each bin has one; where fewer, each is alone."""
    scores = np.unique(values)
    thresholds = ScoreBinner(n).fit(np.array(values)[:, None]).thresholds_
    counts = np.bincount(thresholds.searchsorted(scores), minlength=len(thresholds) + 1)
    assert counts.max() == 1 or len(scores) > n + 1
    if len(scores) > n + 1 and len(scores) == len(values):
        assert len(thresholds) == n


def test_a_score_that_most_rows_share_leaves_thresholds_to_the_others() -> None:
    rows = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])[:, None]
    binner = ScoreBinner(10, sparse_output=False).fit(rows)
    assert len(binner.thresholds_) == 10
    shares = binner.transform(rows[900:]).mean(axis=0)
    np.testing.assert_allclose(shares, np.arange(10, 0, -1) / 10, atol=0.011)


def test_even_thresholds_lie_between_the_extremes() -> None:
    binner = ScoreBinner(3, "even").fit([[2.0, -1.0], [10.0, np.nan], [3.0, 1.0]])
    assert binner.thresholds_.tolist() == [4, 6, 8, -0.5, 0, 0.5]
    assert binner.column_.tolist() == [0, 0, 0, 1, 1, 1]


def test_unit_thresholds_do_not_look_at_the_scores() -> None:
    for rows in ([[0.0], [100.0]], [[np.nan], [np.nan]]):
        binner = ScoreBinner(4, "unit").fit(rows)
        np.testing.assert_allclose(binner.thresholds_, [0.2, 0.4, 0.6, 0.8])


def test_few_values_give_few_features() -> None:
    binner = ScoreBinner(sparse_output=False).fit([[0.0]] * 90 + [[1.0]] * 10)
    assert len(binner.thresholds_) <= 3
    assert np.all(binner.transform([[0.0]]) == 0)
    assert np.any(binner.transform([[1.0]]) == 1)


def test_missing_scores_are_above_no_threshold() -> None:
    binner = ScoreBinner(2).fit([[1.0, np.nan], [2.0, np.nan], [3.0, np.nan]])
    assert binner.transform([[np.nan, np.nan], [9.0, 9.0]]).toarray().tolist() == [
        [0, 0, 0],
        [1, 1, 0],
    ]


@pytest.mark.parametrize("sparse_output", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_types_are_kept(sparse_output: bool, dtype: type) -> None:
    rows = np.array([[0.1], [0.7], [0.4]], dtype=dtype)
    binner = ScoreBinner(5, sparse_output=sparse_output)
    assert binner.fit_transform(rows).dtype == dtype
    assert binner.thresholds_.dtype == dtype


def test_names_tell_thresholds_apart() -> None:
    table = pd.DataFrame({"bm25": [1000.0001, 1000.0002, 1000.0003]})
    names = ScoreBinner(2, "even").fit(table).get_feature_names_out().tolist()
    assert names == ["bm25>1000.00017", "bm25>1000.00023"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"strategy": "uniform"}, "strategy: expected one of 'quantile', 'even', 'geometric', "),
        ({"n_thresholds": 0}, "n_thresholds: expected a whole number from 1 on"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ScoreBinner(**parameters).fit([[1.0]])


def test_bad_input() -> None:
    with pytest.raises(NotFittedError):
        ScoreBinner().transform([[1.0]])
    with pytest.raises(ValueError, match="infinity"):
        ScoreBinner().fit([[np.inf]])
    with pytest.raises(ValueError, match="expecting 1 features"):
        ScoreBinner().fit([[1.0]]).transform([[1.0, 2.0]])
    with pytest.raises(TypeError, match="Sparse"):
        ScoreBinner().fit(sp.csr_array([[1.0]]))
