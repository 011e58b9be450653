"""Scale every feature within each query, so that queries become comparable.

The scalers learn nothing: a row is scaled by the other rows of its query, in training and in
prediction alike. They take ``qid`` (one per row) or ``group`` (sizes) wherever they take rows, and
request both from scikit-learn's metadata routing, so that a pipeline hands them on. Without either
all rows are one query; a scaler that was fitted on several refuses to guess. NaN stands for a value
that is missing: it is left out and stays NaN.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups, group_rows
from didyma.data.lists import Lists
from didyma.data.matrix import is_sparse
from didyma.data.row_blocks import slice_rows
from didyma.errors import DataError
from didyma.learning.scoring import BLOCK, minmax_in_query, percentile_in_query, standard_in_query
from didyma.model import Model, Saved
from didyma.protocol import Transformer, validate_data


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
        rows = validate_data(self, X, reset=reset, finite="allow-nan")
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


SCALERS = {
    "standard": "StandardScaler",
    "max-abs": "MaxAbsScaler",
    "query-minmax": "QueryMinMaxScaler",
    "query-standard": "QueryStandardScaler",
    "query-percentile": "QueryPercentileScaler",
}


def scaler_of(lists: Lists, scale: str) -> Model | None:
    """A scaler of one of these names that has learned from the rows; none for "none"."""
    if scale == "none":
        return None
    if scale != "max-abs" and is_sparse(lists.X):
        raise DataError(f"sparse features can be scaled by max-abs only, not by {scale}")
    return Model.scaler(SCALERS[scale], lists)


def scaled(scaler: Model, lists: Lists, folder: Path) -> Lists:
    """The lists with rows as the scaler makes them, a few queries at a time.

    They take the place of rows that were read into memory; of rows that are mapped from a file, a
    temporary file in the ``folder`` that ends with the process.
    """
    groups = lists.groups
    if is_sparse(lists.X) or not np.array_equal(groups.rows, np.arange(len(lists))):
        return scaler.transform(lists)
    X: Any = lists.X
    target = X if X.flags.writeable else _mapped(X.shape, X.dtype, folder)
    first = 0
    while first < len(groups):
        until = groups.starts[first] + BLOCK
        last = max(first + 1, int(np.searchsorted(groups.starts, until, side="right")) - 1)
        start, stop = int(groups.starts[first]), int(groups.starts[last])
        names = groups.names[first:last]
        part = replace(
            slice_rows(lists, start, stop),
            grouping=Groups.from_lists(groups.sizes[first:last], names.tolist()),
        )
        target[start:stop] = scaler.transform(part).X
        first = last
    return replace(lists, items=target)


def _mapped(shape: tuple[int, ...], dtype: Any, folder: Path) -> Any:
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):  # a disk that is full says so now, or ends us later
            try:
                os.posix_fallocate(file.fileno(), 0, math.prod(shape) * np.dtype(dtype).itemsize)
            except OSError as error:
                raise OSError(error.errno, error.strerror, os.fspath(folder)) from None
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))
