"""Judged results: the container that every reader, estimator and command shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError

__all__ = ["Groups", "Matrix", "RankingData", "group_rows"]

Matrix: TypeAlias = "NDArray[Any] | sp.csr_array"


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
        labels = np.asarray(qid)
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
        sizes = np.asarray(group)
        if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.number)):
            raise DataError("expected a list of query sizes", field="group")
        if np.any(sizes != np.floor(sizes)) or np.any(sizes < 0):
            raise DataError("expected sizes that are nonnegative integers", field="group")
        sizes = sizes.astype(np.int64)
        if sizes.sum() != n_rows:
            raise DataError(
                f"sizes add up to {sizes.sum()} but there are {n_rows} rows", field="group"
            )
        sizes = sizes[sizes > 0]
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


@dataclass(frozen=True, eq=False)
class RankingData:
    """Judged results: features ``X``, relevance ``y`` and query ``qid`` per row.

    ``X`` is a dense array or a SciPy CSR array, ``docid`` and ``feature_names`` are optional.
    Rows keep the order of their source; `groups` says which belong together.

    >>> data = RankingData(np.eye(3), np.array([1.0, 0, 1]), np.array(["a", "b", "a"]))
    >>> data
    RankingData(3 rows, 3 features, 2 queries)
    """

    X: Matrix
    y: NDArray[np.float64]
    qid: NDArray[Any]
    docid: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        n_rows, n_features = self.X.shape
        for name, column in (("y", self.y), ("qid", self.qid), ("docid", self.docid)):
            if column is not None and column.shape != (n_rows,):
                raise DataError(f"expected {n_rows} values, found shape {column.shape}", field=name)
        if self.feature_names is not None and len(self.feature_names) != n_features:
            raise DataError(
                f"{len(self.feature_names)} names for {n_features} features", field="feature_names"
            )

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"RankingData({rows} rows, {features} features, {len(self.groups)} queries)"

    @cached_property
    def groups(self) -> Groups:
        """Which rows belong to which query."""
        return Groups.from_qid(self.qid)

    def select(self, rows: Sequence[int] | NDArray[Any]) -> RankingData:
        """The same data restricted to some rows (indices or a mask)."""
        return RankingData(
            self.X[rows],
            self.y[rows],
            self.qid[rows],
            None if self.docid is None else self.docid[rows],
            self.feature_names,
        )
