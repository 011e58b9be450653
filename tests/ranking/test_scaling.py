"""Per-query scalers against scikit-learn and plain definitions, one query at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from didyma.errors import DataError
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler, QueryStandardScaler

SCALERS = [QueryMinMaxScaler(), QueryPercentileScaler(), QueryStandardScaler()]

# scikit-learn takes features that vary by rounding only as constant, so values are well apart.
values = st.one_of(st.integers(-3, 3), st.just(np.nan), st.integers(-5000, 5000)).map(
    lambda value: value / 7
)
tables = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        arrays(np.float64, (n, 2), elements=values), arrays(int, n, elements=st.integers(0, 3))
    )
)


def percentiles(column: NDArray[Any]) -> NDArray[Any]:
    present = column[~np.isnan(column)]
    lower = (present[None, :] < column[:, None]).sum(axis=1)
    shares = lower / max(len(present) - 1, 1)
    return np.where(np.isnan(column), np.nan, shares)


def reference(scaler: Any, rows: NDArray[Any]) -> NDArray[Any]:
    if isinstance(scaler, QueryPercentileScaler):
        return np.column_stack([percentiles(column) for column in rows.T])
    missing = np.isnan(rows)
    rows = rows[:, ~missing.all(axis=0)]
    plain = MinMaxScaler() if isinstance(scaler, QueryMinMaxScaler) else StandardScaler()
    scaled = np.full(missing.shape, np.nan)
    if rows.size:
        scaled[:, ~missing.all(axis=0)] = plain.fit_transform(rows)
    return scaled


@pytest.mark.parametrize("scaler", SCALERS)
@given(tables)
def test_each_query_is_scaled_by_itself(scaler: Any, table: Any) -> None:
    rows, qid = table
    scaled = scaler.transform(rows, qid=qid)
    for query in np.unique(qid):
        own = qid == query
        np.testing.assert_allclose(scaled[own], reference(scaler, rows[own]), atol=1e-6)


@pytest.mark.parametrize("scaler", SCALERS)
@given(tables)
def test_the_order_of_rows_does_not_matter(scaler: Any, table: Any) -> None:
    rows, qid = table
    order = np.argsort(qid, kind="stable")
    _, sizes = np.unique(qid, return_counts=True)
    np.testing.assert_array_equal(
        scaler.transform(rows, qid=qid)[order], scaler.transform(rows[order], group=sizes)
    )


@pytest.mark.parametrize("scaler", SCALERS)
def test_constant_features_become_zero(scaler: Any) -> None:
    rows = np.full((3, 2), 0.1)  # whose mean is not 0.1 in floating point
    np.testing.assert_array_equal(scaler.transform(rows), np.zeros((3, 2)))
    np.testing.assert_array_equal(scaler.transform([[7.0], [8.0]], qid=[1, 2]), [[0.0], [0.0]])


def test_the_example_of_the_paper() -> None:
    scaled = QueryMinMaxScaler().transform([[0.2], [0.6], [0.7]])
    assert scaled[1, 0] == pytest.approx(0.8)
    percentile = QueryPercentileScaler().transform(np.arange(11.0)[:, None])
    np.testing.assert_allclose(percentile[:, 0], np.arange(11) / 10)


@pytest.mark.parametrize("scaler", SCALERS)
def test_types_are_kept_and_input_is_left_alone(scaler: Any) -> None:
    rows = np.array([[1.0], [5.0], [2.0]], dtype=np.float32)
    before = rows.copy()
    assert scaler.transform(rows).dtype == np.float32
    assert scaler.transform(rows.astype(int)).dtype == np.float64
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("scaler", SCALERS)
def test_names_pass_through(scaler: Any) -> None:
    table = pd.DataFrame({"bm25": [1.0, 2.0], "length": [3.0, 1.0]})
    fitted = clone(scaler).fit(table, qid=["a", "a"])
    assert fitted.get_feature_names_out().tolist() == ["bm25", "length"]
    framed = fitted.set_output(transform="pandas").transform(table, qid=["a", "a"])
    assert framed.columns.tolist() == ["bm25", "length"]


@pytest.mark.parametrize("scaler", SCALERS)
def test_queries_are_needed_where_fit_had_them(scaler: Any) -> None:
    rows = [[1.0], [2.0], [3.0]]
    fitted = clone(scaler).fit(rows, qid=["a", "b", "a"])
    with pytest.raises(DataError, match="fitted on 2 queries, so it needs qid or group"):
        fitted.transform(rows)
    one = clone(scaler).fit(rows)
    np.testing.assert_array_equal(fitted.transform(rows, group=[3]), one.transform(rows))


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_bad_input(scaler: Any, method: str) -> None:
    call = getattr(clone(scaler), method)
    with pytest.raises(DataError, match="2 query ids for 1 rows"):
        call([[1.0]], qid=["a", "b"])
    with pytest.raises(DataError, match="not both"):
        call([[1.0]], qid=["a"], group=[1])
    with pytest.raises(ValueError, match="infinity"):
        call([[np.inf]])
    with pytest.raises(TypeError, match="Sparse"):
        call(sp.csr_array([[1.0]]))
