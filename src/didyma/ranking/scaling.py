"""Scale every feature within each query, so that queries become comparable.

The scalers learn nothing: a row is scaled by the other rows of its query, in training and in
prediction alike. They take ``qid`` (one per row) or ``group`` (sizes) wherever they take rows, and
request both from scikit-learn's metadata routing, so that a pipeline hands them on. Without either
all rows are one query; a scaler that was fitted on several refuses to guess. NaN stands for a value
that is missing: it is left out and stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Groups, group_rows
from didyma.errors import DataError
from didyma.learning.scoring import minmax_in_query, percentile_in_query, standard_in_query
from didyma.model import Saved
from didyma.protocol import Transformer, validate_data

__all__ = ["QueryMinMaxScaler", "QueryPercentileScaler", "QueryStandardScaler"]


class _QueryScaler(Transformer):
    """A transformer that applies `_scale` to rows and their queries."""

    __metadata_request__fit: ClassVar = {"qid": True, "group": True}
    __metadata_request__transform: ClassVar = {"qid": True, "group": True}

    _scale: Callable[[NDArray[Any], Groups], NDArray[Any]]
    _requires_fit = False
    n_queries_: Annotated[int, Saved()] = 1

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
        return self._scale(rows, groups)

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
            finite="allow-nan",
        )
        return rows, group_rows(len(rows), qid, group)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self._requires_fit
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class QueryMinMaxScaler(_QueryScaler):
    """Map each feature to [0, 1] within each query: (x − min) / (max − min).

    A feature that is constant within a query becomes 0 there.

    >>> QueryMinMaxScaler().transform([[2.0], [7.0], [6.0], [5.0]], group=[3, 1]).ravel().tolist()
    [0.0, 1.0, 0.8, 0.0]
    """

    _scale = staticmethod(minmax_in_query)


class QueryStandardScaler(_QueryScaler):
    """Give each feature mean 0 and variance 1 within each query: (x − mean) / deviation.

    A feature that is constant within a query becomes 0 there.

    >>> QueryStandardScaler().transform([[1.0], [3.0], [9.0]], qid=["a", "a", "b"]).ravel().tolist()
    [-1.0, 1.0, 0.0]
    """

    _scale = staticmethod(standard_in_query)


class QueryPercentileScaler(_QueryScaler):
    """Replace each value by the share of its query's other rows that are lower.

    The lowest value of a query becomes 0 and the highest, if it is unique, 1. Equal values share
    the lowest percentile among them, so a constant feature becomes 0.

    >>> QueryPercentileScaler().transform([[5.0], [9.0], [1.0], [5.0]]).ravel().round(2).tolist()
    [0.33, 1.0, 0.0, 0.33]
    """

    _scale = staticmethod(percentile_in_query)
