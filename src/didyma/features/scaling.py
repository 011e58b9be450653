"""Scale every feature within each query, so that queries become comparable.

The scalers learn nothing: a row is scaled by the other rows of its query, in training and in
prediction alike. They take ``qid`` (one per row) or ``group`` (sizes) wherever they take rows, and
request both from scikit-learn's metadata routing, so that a pipeline hands them on. Without either
all rows are one query; a scaler that was fitted on several refuses to guess. NaN stands for a value
that is missing: it is left out and stays NaN.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from didyma.data import Groups, group_rows
from didyma.errors import DataError

__all__ = ["QueryMinMaxScaler", "QueryPercentileScaler", "QueryStandardScaler"]


class _QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer whose `_scale` sees the rows of each query side by side."""

    __metadata_request__fit: ClassVar = {"qid": True, "group": True}
    __metadata_request__transform: ClassVar = {"qid": True, "group": True}

    _state = ("n_queries_",)
    n_queries_ = 1

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Check the rows and count features and queries; there is nothing to learn."""
        _, groups = self._read(X, qid, group, reset=True)
        self.n_queries_ = len(groups)
        return self

    def transform(
        self, X: ArrayLike, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> NDArray[Any]:
        """The rows, each feature scaled within its query; shape (n_rows, n_features)."""
        if qid is None and group is None and self.n_queries_ > 1:
            raise DataError(
                f"the scaler was fitted on {self.n_queries_} queries, so it needs qid or group "
                "here too (group=[n] for n rows of one query)"
            )
        rows, groups = self._read(X, qid, group, reset=False)
        scaled = np.empty_like(rows)
        scaled[groups.rows] = self._scale(rows[groups.rows], groups)
        return scaled

    def fit_transform(
        self,
        X: ArrayLike,
        y: object = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> NDArray[Any]:
        """The same as `fit` and then `transform`."""
        return self.fit(X, y, qid, group).transform(X, qid, group)

    def _read(
        self, X: ArrayLike, qid: ArrayLike | None, group: ArrayLike | None, *, reset: bool
    ) -> tuple[NDArray[Any], Groups]:
        rows = validate_data(
            self,
            X,
            reset=reset,
            dtype=(np.float64, np.float32),
            ensure_all_finite="allow-nan",
        )
        return rows, group_rows(len(rows), qid, group)

    def _scale(self, rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
        """Scale ``rows``, which stand query by query as ``groups.starts`` says."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class QueryMinMaxScaler(_QueryScaler):
    """Map each feature to [0, 1] within each query: (x − min) / (max − min).

    A feature that is constant within a query becomes 0 there.

    >>> QueryMinMaxScaler().transform([[2.0], [7.0], [6.0], [5.0]], group=[3, 1]).ravel().tolist()
    [0.0, 1.0, 0.8, 0.0]
    """

    def _scale(self, rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
        low, high = _extremes(rows, groups)
        return _divide(rows - _per_row(low, groups), _per_row(high - low, groups))


class QueryStandardScaler(_QueryScaler):
    """Give each feature mean 0 and variance 1 within each query: (x − mean) / deviation.

    A feature that is constant within a query becomes 0 there.

    >>> QueryStandardScaler().transform([[1.0], [3.0], [9.0]], qid=["a", "a", "b"]).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """

    def _scale(self, rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
        low, high = _extremes(rows, groups)
        centred = rows - _per_row(_mean(rows, groups), groups)
        deviation = np.sqrt(_mean(centred**2, groups))
        # The rounded mean of equal values may miss them, so constancy is asked of the values.
        return _divide(centred, _per_row(np.where(low == high, 0, deviation), groups))


class QueryPercentileScaler(_QueryScaler):
    """Replace each value by the share of its query's other rows that are lower.

    The lowest value of a query becomes 0 and the highest, if it is unique, 1. Equal values share
    the lowest percentile among them, so a constant feature becomes 0.

    >>> QueryPercentileScaler().transform([[5.0], [9.0], [1.0], [5.0]]).ravel().round(2).tolist()
    [0.33, 1.0, 0.0, 0.33]
    """

    def _scale(self, rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
        query = np.repeat(np.arange(len(groups)), groups.sizes)
        place = np.arange(len(rows))
        lower = np.empty_like(rows)
        for column, values in enumerate(rows.T):
            order = np.lexsort((values, query))
            ranked = values[order]
            new = np.ones(len(rows), dtype=np.bool_)  # neither the value nor the query of before
            new[1:] = (ranked[1:] != ranked[:-1]) | (query[1:] != query[:-1])
            first = np.maximum.accumulate(np.where(new, place, 0))
            lower[order, column] = first - groups.starts[query]
        others = _sum(~np.isnan(rows), groups) - 1
        shares = _divide(lower, _per_row(others, groups))
        shares[np.isnan(rows)] = np.nan
        return shares


def _sum(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    return np.add.reduceat(rows, groups.starts[:-1], axis=0, dtype=np.float64)


def _mean(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    return _sum(np.nan_to_num(rows), groups) / np.maximum(_sum(~np.isnan(rows), groups), 1)


def _extremes(rows: NDArray[Any], groups: Groups) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and greatest value of each query, NaN only where all are missing."""
    starts = groups.starts[:-1]
    return np.fmin.reduceat(rows, starts, axis=0), np.fmax.reduceat(rows, starts, axis=0)


def _per_row(values: NDArray[Any], groups: Groups) -> NDArray[Any]:
    return np.repeat(values, groups.sizes, axis=0)


def _divide(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[Any]:
    """The ratio, and 0 where a feature is constant; missing values stay missing."""
    return np.where(whole > 0, part, part * 0) / np.where(whole > 0, whole, 1)
