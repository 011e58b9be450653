"""Rows that come some at a time, cut anew: into whole queries, or by a number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.attributes import Attributes
from didyma.data.groups import Groups
from didyma.data.lists import ROW_COLUMNS, Lists
from didyma.data.matrix import CHECKED, is_sparse
from didyma.errors import DataError


class ScatteredError(DataError):
    """Rows of a query that do not stand together, where they must."""


def whole_queries(parts: Iterable[Lists]) -> Iterator[Lists]:
    """The same rows, with all rows of a query in one block.

    Refuses a query that comes again after another. To tell, eight bytes are kept of each.

    >>> parts = [Lists(np.eye(2), qid=np.array(qid)) for qid in (["a", "b"], ["b", "c"])]
    >>> [part.qid.tolist() for part in whole_queries(parts)]
    [['a'], ['b', 'b'], ['c']]
    """
    seen, pending = _Seen(), list[Lists]()
    for part in parts:
        heads = np.flatnonzero(part.qid[1:] != part.qid[:-1]) + 1
        new = not pending or part.qid[0] != pending[-1].qid[-1]
        first = np.concatenate([[0] * new, heads]).astype(np.int64)
        seen.add(part.qid[first])
        if not len(first):
            pending.append(part)
            continue
        if first[-1] > 0 or pending:
            whole = [slice_rows(part, 0, int(first[-1]))] if first[-1] else []
            yield concatenate([*pending, *whole])
        pending = [slice_rows(part, int(first[-1]), len(part))]
    if pending:
        yield concatenate(pending)


def rebatch(size: int, parts: Iterable[Lists]) -> Iterator[Lists]:
    """The same rows, ``size`` at a time, until the last ones."""
    pending = list[Lists]()
    count = 0
    for part in parts:
        pending.append(part)
        count += len(part)
        if count >= size:
            whole, rest = concatenate(pending), count % size
            for start in range(0, count - rest, size):
                yield slice_rows(whole, start, start + size)
            pending = [slice_rows(whole, count - rest, count)] if rest else []
            count = rest
    if pending:
        yield concatenate(pending)


def collect(parts: Iterable[Lists]) -> Lists:
    """All rows as one; the matrix grows in its place and is never held twice."""
    parts = iter(parts)
    first, second = next(parts), next(parts, None)
    if second is None:
        return first
    arrays: list[NDArray[Any]] = []  # the matrix, or entries and their columns of a sparse one
    starts, others = [np.zeros(1, np.int64)], list[Lists]()
    for part in chain([first, second], parts):
        X: Any = part.X
        if is_sparse(X):
            starts.append(starts[-1][-1] + X.indptr[1:])
        rows = [X.data, X.indices] if is_sparse(X) else [X]
        arrays = arrays or [array[:0].copy() for array in rows]
        for array, more in zip(arrays, rows):
            size = len(array)
            array.resize((size + len(more), *array.shape[1:]), refcheck=False)
            array[size:] = more
        empty = np.empty((len(part), 0))
        others.append(replace(part, items=empty, feature_names=None, categories=None))
    items: Any = arrays[0]
    if is_sparse(first.X):
        from scipy.sparse import csr_array

        indptr = np.concatenate(starts)
        indptr = indptr.astype(np.int32) if indptr[-1] < 2**31 else indptr
        items = csr_array((*arrays, indptr), shape=(len(indptr) - 1, first.X.shape[1]))
        setattr(items, CHECKED, True)  # as its parts are
    return replace(
        concatenate(others),
        items=items,
        feature_names=first.feature_names,
        categories=part.categories,
    )


def slice_rows(part: Lists, start: int, stop: int) -> Lists:
    """Rows that stand together."""
    if (start, stop) == (0, len(part)):
        return part
    rows = slice(start, stop)
    return replace(part, items=part.X[rows], grouping=None, **part.of_rows(rows))


def concatenate(parts: Sequence[Lists]) -> Lists:
    """Rows of several blocks as one; a query that goes on has the text of its first block.

    Vocabularies of categories only grow, so that those of the last block are those of all.
    """
    if len(parts) == 1:
        return parts[0]
    columns = {name: _joined([getattr(part, name) for part in parts]) for name in ROW_COLUMNS}
    queries = None
    if parts[0].queries is not None:
        text_of = {
            name: text
            for part in reversed(parts)
            for name, text in zip(part.groups.names.tolist(), part.queries or ())
        }
        queries = [text_of[name] for name in Groups.from_qid(columns["qid"]).names.tolist()]
    return replace(
        parts[0],
        items=_stacked([part.items for part in parts]),
        **columns,
        queries=queries,
        attributes=Attributes.concatenate([part.attributes for part in parts]),
        categories=parts[-1].categories,
        grouping=None,
    )


def _stacked(items: Sequence[Any]) -> Any:
    """Matrices below each other, sparse if one is, or sequences after each other."""
    if any(map(is_sparse, items)):
        from scipy.sparse import csr_array, vstack

        return vstack([csr_array(rows) for rows in items], format="csr")
    if isinstance(items[0], np.ndarray):
        return np.concatenate(items)
    return list(chain.from_iterable(items))


def _joined(columns: Sequence[NDArray[Any] | None]) -> Any:
    present = [column for column in columns if column is not None]
    return np.concatenate(present) if len(present) == len(columns) else None


class QueryCount:
    """How many rows and how many different queries have been, eight bytes for each query.

    >>> count = QueryCount()
    >>> for qid in (["a", "b"], ["a"]):
    ...     count.add(np.array(qid))
    >>> count.n_rows, count.n_queries
    (3, 2)
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._known, self._new = np.empty(0, np.int64), list[NDArray[np.int64]]()

    def add(self, qid: NDArray[Any]) -> None:
        """Count rows of these queries."""
        self.n_rows += len(qid)
        names = qid[np.flatnonzero(np.append(True, qid[1:] != qid[:-1]))].tolist()
        self._new.append(np.fromiter(map(hash, names), np.int64, len(names)))
        if sum(map(len, self._new)) > len(self._known):
            self._known = np.unique(np.concatenate([self._known, *self._new]))
            self._new = []

    @property
    def n_queries(self) -> int:
        """The number of queries, told apart by 64 bits."""
        return len(np.unique(np.concatenate([self._known, *self._new])))


class _Seen:
    """Names that have been, as sorted 64-bit numbers: a few arrays, each half of the one before."""

    def __init__(self) -> None:
        self._sorted: list[NDArray[np.int64]] = []

    def add(self, names: NDArray[Any]) -> None:
        texts = names.tolist()
        numbers = np.fromiter(map(hash, texts), np.int64, len(texts))
        for ordered_before in self._sorted:
            if (is_repeated := _among(numbers, ordered_before)).any():
                self._fail(texts[int(is_repeated.argmax())])
        ordered, first = np.unique(numbers, return_index=True)
        if len(ordered) < len(texts):
            self._fail(texts[int(np.setdiff1d(np.arange(len(texts)), first)[0])])
        self._sorted.append(ordered)
        while len(self._sorted) > 1 and len(self._sorted[-2]) < 2 * len(self._sorted[-1]):
            last = self._sorted.pop()
            self._sorted[-1] = np.sort(np.concatenate([self._sorted[-1], last]))

    @staticmethod
    def _fail(name: object) -> None:
        raise ScatteredError(
            f"expected the rows of each query together, found query {name!r:.60} again after "
            "another; a lists folder (didyma convert) has them together",
            field="qid",
        )


def _among(numbers: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    return ordered[places] == numbers
