"""Judged results: the container that every reader, estimator and command shares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = [
    "Features",
    "Groups",
    "Matrix",
    "RankingData",
    "as_csr",
    "group_rows",
    "is_sparse",
    "judgements",
]

Matrix: TypeAlias = "NDArray[Any] | sp.csr_array"


def is_sparse(X: object) -> bool:
    """Whether this is a sparse matrix of SciPy, which is not imported to tell."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of each query, without moving any row.

    Query ``q`` owns the rows ``rows[starts[q]:starts[q + 1]]``, in input order; queries are
    numbered by first appearance, so rows of one query need not be contiguous.

    >>> groups = Groups.from_qid(["b", "a", "b"])
    >>> groups.names.tolist(), groups.rows.tolist(), groups.starts.tolist()
    (['b', 'a'], [0, 2, 1], [0, 2, 3])
    """

    names: NDArray[Any]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def from_qid(cls, qid: ArrayLike) -> Groups:
        """Group rows by a query identifier per row, stably."""
        try:
            labels = np.asarray(qid)
        except ValueError:  # rows of different lengths
            raise DataError("expected one query id per row", field="qid") from None
        if labels.ndim != 1:
            raise DataError(
                f"expected one query id per row, found shape {labels.shape}", field="qid"
            )
        if labels.dtype == object:
            labels = labels.astype(str)
        changed = np.concatenate([[True], labels[1:] != labels[:-1]])[: len(labels)]
        heads = np.flatnonzero(changed)  # sorting one row of each run is enough
        names, first, code = np.unique(labels[heads], return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        code = np.repeat(rank[code], np.diff(heads, append=len(labels)))
        rows = np.argsort(code, kind="stable").astype(np.int64, copy=False)
        return cls(names[order], rows, _starts(np.bincount(code, minlength=len(names))))

    @classmethod
    def from_sizes(cls, group: ArrayLike, n_rows: int) -> Groups:
        """Group consecutive rows by the size of each query, as LightGBM and XGBoost do."""
        try:
            given = np.asarray(group)
        except ValueError:  # rows of different lengths
            given = np.empty(0, object)
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            raise DataError("expected a list of query sizes", field="group")
        if not np.all((given >= 0) & (given < np.inf) & (given == np.floor(given))):
            raise DataError("expected sizes that are nonnegative integers", field="group")
        total = sum(map(int, given.tolist()))  # of integers that cannot wrap
        if total != n_rows:
            raise DataError(f"sizes add up to {total} but there are {n_rows} rows", field="group")
        sizes = given[given > 0].astype(np.int64)
        names = np.arange(len(sizes))
        return cls(names, np.arange(n_rows, dtype=np.int64), _starts(sizes))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each query."""
        return np.diff(self.starts)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Query number of each row, in input order."""
        codes = np.empty(len(self.rows), dtype=np.int64)
        codes[self.rows] = np.repeat(np.arange(len(self)), self.sizes)
        return codes


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def group_rows(n_rows: int, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> Groups:
    """Resolve ``qid=`` (one per row) or ``group=`` (sizes); all rows are one query without."""
    if qid is not None and group is not None:
        raise DataError("give either qid (one per row) or group (sizes), not both")
    if group is not None:
        return Groups.from_sizes(group, n_rows)
    if qid is None:
        return Groups.from_sizes([n_rows], n_rows)
    groups = Groups.from_qid(qid)
    if len(groups.rows) != n_rows:
        raise DataError(f"{len(groups.rows)} query ids for {n_rows} rows", field="qid")
    return groups


def as_csr(X: Any, *, field: str = "X") -> sp.csr_array:
    """A sparse matrix as CSR, in place if it is CSR already.

    SciPy and compiled loops trust the parts of a sparse matrix. Here everything that they rely on
    is checked: shapes and types, that each row's entries lie within the arrays and each column
    within the matrix, and that values are finite.

    >>> import scipy.sparse as sp
    >>> rows = sp.csr_array(np.eye(2))
    >>> rows.indices[1] = 7
    >>> as_csr(rows)
    Traceback (most recent call last):
    didyma.errors.DataError: X: expected column indices from 0 to 1, found 7
    """
    if X.ndim != 2:
        raise DataError(f"expected a matrix, found shape {X.shape}", field=field)
    if X.dtype.kind not in "biuf":
        raise DataError(f"expected numbers, found {X.dtype}", field=field)
    if X.format in ("csr", "csc"):
        n_lists, width = X.shape if X.format == "csr" else X.shape[::-1]
        _check_compressed(X.data, X.indices, X.indptr, n_lists, width, field)
    elif X.format == "bsr":
        block = X.data.shape[1:]
        if len(block) != 2 or 0 in block:
            raise DataError(f"expected blocks, found shape {X.data.shape}", field=field)
        _check_compressed(
            *(X.data, X.indices, X.indptr), X.shape[0] // block[0], X.shape[1] // block[1], field
        )
    elif X.format == "coo":
        for indices, bound, kind in zip((X.row, X.col), X.shape, ("row", "column")):
            _check_indices(indices, bound, kind, field)
            if indices.shape != X.data.shape:
                raise DataError(
                    f"{indices.size} {kind} indices for {X.data.size} values", field=field
                )
    import scipy.sparse as sp

    rows = sp.csr_array(X)
    if X.format not in ("csr", "csc", "bsr", "coo"):  # of lists, dictionaries or diagonals
        _check_compressed(rows.data, rows.indices, rows.indptr, X.shape[0], X.shape[1], field)
    if not np.isfinite(rows.data).all():
        raise DataError("expected finite numbers, found others", field=field)
    if any(part.dtype not in (np.int32, np.int64) for part in (rows.indices, rows.indptr)):
        parts = rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
        rows = sp.csr_array(parts, shape=rows.shape)
    return rows


def _check_compressed(
    values: NDArray[Any],
    indices: NDArray[Any],
    starts: NDArray[Any],
    n_lists: int,
    width: int,
    field: str,
) -> None:
    if starts.shape != (n_lists + 1,) or starts.dtype.kind not in "iu":
        raise DataError(
            f"expected an indptr of {n_lists + 1} integers, found {starts.dtype} of shape "
            f"{starts.shape}",
            field=field,
        )
    if len(values) != len(indices):
        raise DataError(f"{len(indices)} indices for {len(values)} values", field=field)
    if starts[0] != 0 or np.any(starts[1:] < starts[:-1]) or starts[-1] > len(indices):
        raise DataError(f"expected an indptr that rises from 0 to {len(indices)}", field=field)
    _check_indices(indices[: int(starts[-1])], width, "column", field)


def _check_indices(indices: NDArray[Any], bound: int, kind: str, field: str) -> None:
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise DataError(f"expected {kind} indices, found {indices.dtype}", field=field)
    wrong = (indices < 0) | (indices >= bound)
    if wrong.any():
        raise DataError(
            f"expected {kind} indices from 0 to {bound - 1}, found {indices[wrong.argmax()]}",
            field=field,
        )


@dataclass(frozen=True)
class Features:
    """What the columns of a matrix are: how many, their names, and the index of the first.

    ``zero_based`` says whether a LETOR file calls the first column 0 or 1. It is None where columns
    never had an index, as those of a table.

    >>> train = RankingData(np.eye(2), np.ones(2), np.zeros(2), feature_names=("bm25", "age"))
    >>> test = RankingData(np.eye(2), np.ones(2), np.zeros(2), feature_names=("age", "bm25"))
    >>> train.features.arrange(test).X.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    count: int
    names: tuple[str, ...] | None = None
    zero_based: bool | None = None

    @classmethod
    def of(cls, owner: Any) -> Features:
        """The features of judged results, or those that a fitted estimator or pipeline asks for."""
        if isinstance(owner, Features):
            return owner
        if isinstance(getattr(owner, "features", None), Features):
            return owner.features
        first = owner.steps[0][1] if hasattr(owner, "steps") else owner
        if not hasattr(first, "n_features_in_"):
            raise DataError(
                f"expected judged results or a fitted model, found {type(owner).__name__}",
                field="like",
            )
        names = getattr(first, "feature_names_in_", None)
        return cls(
            int(first.n_features_in_),
            None if names is None else tuple(map(str, names)),
            getattr(first, "zero_based_in_", None),
        )

    @property
    def labels(self) -> list[str]:
        """What to call each column: its name, or its index as in a file."""
        first = 0 if self.zero_based else 1
        return list(self.names or map(str, range(first, first + self.count)))

    def remember(self, estimator: Any) -> None:
        """Make these the features that a fitted estimator asks for."""
        estimator.n_features_in_ = self.count
        estimator.zero_based_in_ = self.zero_based
        if self.names is not None:
            estimator.feature_names_in_ = np.array(self.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_

    def arrange(self, data: RankingData, path: str | PathLike[str] | None = None) -> RankingData:
        """The same rows with these columns: by name where both have names, by place otherwise.

        Data with indices may lack the last columns, as a LETOR file does that never lists them.
        ``path`` is what errors name.
        """
        if data.features == self:
            return data
        if self.names is not None and data.feature_names is not None:
            return self._chosen(data, self.names, data.feature_names, path)
        if None not in (self.zero_based, data.zero_based) and self.zero_based != data.zero_based:
            raise DataError(
                f"expected features that count from {int(not self.zero_based)}, found some that "
                f"count from {int(not data.zero_based)}: read the file with like= the other data",
                path=path,
            )
        width = data.X.shape[1]
        if width > self.count or (width < self.count and data.zero_based is None):
            raise DataError(f"expected {self.count} features, found {width}", path=path)
        return replace(
            data,
            X=_widened(data.X, self.count),
            feature_names=self.names,
            zero_based=data.zero_based if self.zero_based is None else self.zero_based,
        )

    @staticmethod
    def _chosen(
        data: RankingData,
        names: tuple[str, ...],
        present: tuple[str, ...],
        path: str | PathLike[str] | None,
    ) -> RankingData:
        place = {name: k for k, name in enumerate(present)}
        if missing := [name for name in names if name not in place]:
            raise DataError(f"expected also the features {', '.join(missing)}", path=path)
        return replace(data, X=data.X[:, [place[name] for name in names]], feature_names=names)


def _widened(X: Matrix, width: int) -> Matrix:
    """The same rows with columns of zeros in the end."""
    n_rows, present = X.shape
    if present == width:
        return X
    if isinstance(X, np.ndarray):
        return np.pad(X, ((0, 0), (0, width - present)))
    import scipy.sparse as sp

    return sp.csr_array((X.data, X.indices, X.indptr), shape=(n_rows, width))


@dataclass(frozen=True, eq=False)
class RankingData:
    """Judged results: features ``X``, relevance ``y`` and query ``qid`` per row.

    ``X`` is a dense array or a SciPy CSR array, ``docid`` and ``feature_names`` are optional, and
    ``zero_based`` is as in `Features`. Rows keep the order of their source; `groups` says which
    belong together.

    >>> data = RankingData(np.eye(3), np.array([1.0, 0, 1]), np.array(["a", "b", "a"]))
    >>> data
    RankingData(3 rows, 3 features, 2 queries)
    """

    X: Matrix
    y: NDArray[np.float64]
    qid: NDArray[Any]
    docid: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    zero_based: bool | None = None

    def __post_init__(self) -> None:
        if is_sparse(self.X):
            object.__setattr__(self, "X", as_csr(self.X))
        elif not (self.X.ndim == 2 and self.X.dtype.kind in "biuf"):
            raise DataError(
                f"expected a matrix of numbers, found {self.X.dtype} of shape {self.X.shape}",
                field="X",
            )
        n_rows, n_features = self.X.shape
        for name, column in (("y", self.y), ("qid", self.qid), ("docid", self.docid)):
            if column is not None and column.shape != (n_rows,):
                raise DataError(f"expected {n_rows} values, found shape {column.shape}", field=name)
        if self.y.dtype.kind not in "biuf" or not np.isfinite(self.y).all():
            raise DataError("expected finite numbers", field="y")
        if self.feature_names is not None and len(self.feature_names) != n_features:
            raise DataError(
                f"{len(self.feature_names)} names for {n_features} features", field="feature_names"
            )

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"RankingData({rows} rows, {features} features, {len(self.groups)} queries)"

    @property
    def features(self) -> Features:
        """What the columns are, which other data and models can be compared with."""
        return Features(self.X.shape[1], self.feature_names, self.zero_based)

    @cached_property
    def groups(self) -> Groups:
        """Which rows belong to which query."""
        return Groups.from_qid(self.qid)

    def select(self, rows: Sequence[int] | NDArray[Any]) -> RankingData:
        """The same data restricted to some rows (indices or a mask)."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            qid=self.qid[rows],
            docid=None if self.docid is None else self.docid[rows],
        )


def judgements(
    X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None
) -> tuple[Any, Any]:
    """``y`` and ``qid``, which `RankingData` in place of ``X`` brings along."""
    if not isinstance(X, RankingData):
        return y, qid
    if not (y is None and qid is None and group is None):
        raise DataError("judged results have a y and a qid already: give no others")
    return X.y, X.qid
