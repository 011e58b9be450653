"""Which rows belong to which query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.matrix import refuse_masked
from didyma.errors import DataError
from didyma.lazy import cached_property
from didyma.values import as_array


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
        refuse_masked(qid, "qid")
        try:
            labels = np.asarray(qid)
        except ValueError:  # rows of different lengths
            raise DataError("expected one query id per row", field="qid") from None
        if labels.ndim != 1:
            raise DataError(
                f"expected one query id per row, found shape {labels.shape}", field="qid"
            )
        labels = query_ids(labels)
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
    def from_lists(cls, sizes: ArrayLike, names: Sequence[Any] | None = None) -> Groups:
        """Consecutive rows by the size of each list, of which some may be empty.

        Lists are called 0, 1, … if they have no names.
        """
        counts = np.asarray(sizes, dtype=np.int64)
        labels = np.arange(len(counts)) if names is None else np.array(names)
        if labels.shape != counts.shape:
            raise DataError(f"{len(labels)} names for {len(counts)} lists", field="names")
        return cls(labels, np.arange(counts.sum()), _starts(counts))

    @classmethod
    def from_sizes(cls, group: ArrayLike, n_rows: int) -> Groups:
        """Group consecutive rows by the size of each query, as LightGBM and XGBoost do."""
        refuse_masked(group, "group")
        try:
            counts = as_array(group)
        except ValueError:  # rows of different lengths
            counts = np.empty(0, object)
        if counts.ndim != 1 or counts.dtype.kind not in "iuf":
            raise DataError("expected a list of query sizes", field="group")
        if not np.all((counts >= 0) & (counts < np.inf) & (counts == np.floor(counts))):
            raise DataError("expected sizes that are nonnegative integers", field="group")
        total = sum(map(int, counts.tolist()))  # of integers that cannot wrap
        if total != n_rows:
            raise DataError(f"sizes add up to {total} but there are {n_rows} rows", field="group")
        sizes = counts[counts > 0].astype(np.int64)
        names = np.arange(len(sizes))
        return cls(names, np.arange(n_rows, dtype=np.int64), _starts(sizes))

    def __len__(self) -> int:
        return len(self.names)

    def rows_of(self, number: int) -> NDArray[np.int64]:
        """The rows of a query, by its number."""
        return self.rows[self.starts[number] : self.starts[number + 1]]

    def mixed(self, relevant: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each query has relevant rows and others, so that their order matters."""
        counts = np.bincount(self.codes, weights=relevant, minlength=len(self))
        return (counts > 0) & (counts < self.sizes)

    def least(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The least value of each query's rows, infinite where it has none.

        >>> Groups.from_lists([2, 0, 1]).least(np.array([3.0, 1.0, 2.0]))
        array([ 1., inf,  2.])
        """
        least = np.full(len(self), np.inf)
        np.minimum.at(least, self.codes, values)
        return least

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

    def choose(self, values: ArrayLike) -> NDArray[np.int64]:
        """The place in its list of the row of highest value, the first of several.

        An empty list has none, which −1 says. Values may have a second axis, one choice each.

        >>> Groups.from_lists([2, 0, 3]).choose([0.0, 1.0, 2.0, 2.0, 1.0])
        array([ 1, -1,  0])
        """
        ordered = np.asarray(values, dtype=np.float64)[self.rows]
        choice = np.full((len(self), *ordered.shape[1:]), -1, np.int64)
        full = self.sizes > 0
        if not full.any():
            return choice
        first, sizes = self.starts[:-1][full], self.sizes[full]
        highest = np.repeat(np.maximum.reduceat(ordered, first), sizes, axis=0)
        place = np.arange(len(ordered)) - np.repeat(first, sizes)
        axes = (slice(None),) + (None,) * (ordered.ndim - 1)
        place = np.where(ordered == highest, place[axes], len(ordered))
        choice[full] = np.minimum.reduceat(place, first)
        return choice


def _starts(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def query_ids(labels: NDArray[Any]) -> NDArray[Any]:
    """The same ids, objects as texts; refuses what is empty, None, NaN, pandas' NA or no time."""
    kind = labels.dtype.kind
    texts = labels.astype(str) if kind == "O" else labels
    if kind == "O":
        suspects = np.flatnonzero(np.isin(texts, ["", "None", "nan", "<NA>", "NaT"]))
        missing = [
            int(i) for i in suspects if not (isinstance(labels[i], str | bytes) and labels[i])
        ]
    elif kind in "US":
        missing = np.flatnonzero(labels == labels.dtype.type()).tolist()
    else:
        missing = np.flatnonzero(labels != labels).tolist()
    if missing:
        problem = f"row {missing[0]}: expected a query, found {str(texts[missing[0]]) or 'none'}"
        raise DataError(problem, field="qid")
    return texts


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
