"""The order of a ranking, ties included, which the order of the input cannot favour.

Rows of a query are ranked by descending score. Scores are compared in single precision, as
trec_eval does, which also hides the rounding noise between equal rows. Rows with equal scores are
ranked by descending document id, as text, again as trec_eval does; rows without an id, or with the
same one, by a pseudo-random order that is fixed by the query's name and the row's place in it.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.text_columns import distinct, text_array
from didyma.errors import DataError

__all__ = [
    "best_rows",
    "document_ids",
    "one_per_row",
    "order",
    "rank",
    "read_labels",
    "read_scores",
    "tie_break",
    "tie_order",
]


def read_scores(scores: ArrayLike, n_rows: int) -> NDArray[np.float32]:
    """Scores in single precision, in which they are compared; infinities rank first and last."""
    column = _numbers(scores, n_rows, "scores")
    if (missing := np.isnan(column)).any():
        raise DataError(f"row {missing.argmax()}: expected a number, found NaN", field="scores")
    with np.errstate(over="ignore"):
        return column.astype(np.float32) + np.float32(0)  # negative zero becomes zero


def read_labels(y: ArrayLike, n_rows: int, field: str = "y") -> NDArray[np.float64]:
    """Relevance labels, each a finite number."""
    column = _numbers(y, n_rows, field)
    if (bad := ~np.isfinite(column)).any():
        row = bad.argmax()
        raise DataError(f"row {row}: expected a finite label, found {column[row]}", field=field)
    return column


def one_per_row(values: ArrayLike, n_rows: int, field: str) -> NDArray[Any]:
    """An array with one value for each row."""
    column = np.asarray(values)
    if column.shape != (n_rows,):
        raise DataError(f"expected {n_rows} values, found shape {column.shape}", field=field)
    return column


def _numbers(values: ArrayLike, n_rows: int, field: str) -> NDArray[np.float64]:
    try:
        return one_per_row(values, n_rows, field).astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"expected numbers ({error})", field=field) from None


def tie_break(groups: Groups, docid: ArrayLike | None = None) -> NDArray[np.int64]:
    """Rank of each row within its query if all scores were equal, from 0; shape (n_rows,).

    >>> tie_break(Groups.from_qid(["a", "a", "b"]), ["doc1", "doc2", "doc1"]).tolist()
    [1, 0, 0]
    """
    rows = groups.rows
    query = np.repeat(np.arange(len(groups)), groups.sizes)
    keys = [_shuffle(groups), query]
    if docid is not None:
        text = one_per_row(docid, len(rows), "docid").astype(str)
        keys.insert(1, -np.unique(text, return_inverse=True)[1][rows])
    ties = np.empty(len(rows), dtype=np.int64)
    ties[rows[np.lexsort(keys)]] = _places(groups)
    return ties


def tie_order(groups: Groups, ties: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows query by query, those of a query as `tie_break` ranks them."""
    rows = np.empty_like(groups.rows)
    rows[groups.starts[groups.codes] + ties] = np.arange(len(rows))
    return rows


def order(scores: ArrayLike, groups: Groups, ties: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each query, best first: those of query q are ``[starts[q]:starts[q + 1]]``.

    >>> groups = Groups.from_qid(["a", "b", "a", "a"])
    >>> order([1, 5, 3, 1], groups, tie_break(groups, ["d1", "d1", "d2", "d3"])).tolist()
    [2, 3, 0, 1]
    """
    rows = tie_order(groups, ties)
    slots, _ = rank(read_scores(scores, len(rows))[rows], groups.starts)
    return rows[slots]


def rank(
    scores: NDArray[np.float32], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Slots of each query, best first, and which have the score of the slot above.

    ``scores`` stand query by query in tie order.
    """
    query = np.repeat(np.arange(len(starts) - 1, dtype=np.uint64), np.diff(starts))
    slots = np.argsort(query << np.uint64(32) | _descending(scores), kind="stable")
    ranked = scores[slots]
    equal = np.zeros(len(slots), dtype=np.bool_)
    equal[1:] = ranked[1:] == ranked[:-1]
    equal[starts[:-1][starts[:-1] < len(slots)]] = False
    return slots, equal


def _descending(scores: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Integers of 32 bits that ascend as the scores, without NaN or negative zero, descend."""
    bits = scores.view(np.uint32).astype(np.uint64)
    positive = bits < 1 << 31
    bits[positive] = (1 << 31) - 1 - bits[positive]
    return bits


def _shuffle(groups: Groups) -> NDArray[Any]:
    """A pseudo-random key for each slot of ``groups.rows``."""
    seeds = np.array([_hash(str(name)) for name in groups.names.tolist()], dtype=np.uint64)
    return _splitmix(np.repeat(seeds, groups.sizes) + _places(groups).astype(np.uint64))


def _hash(name: str) -> int:
    return int.from_bytes(
        blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest(), "little"
    )


def _splitmix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The splitmix64 generator's output for each state (products wrap around, as they must)."""
    state = (state + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def best_rows(
    groups: Groups, scores: NDArray[Any], documents: NDArray[Any], depth: int
) -> NDArray[Any]:
    """The first rows of each query in its ranking."""
    rows = order(scores, groups, tie_break(groups, documents))
    return rows[_places(groups) < depth]


def _places(groups: Groups) -> NDArray[np.int64]:
    """0, 1, 2, … for the slots of each query in ``groups.rows``."""
    return np.arange(len(groups.rows)) - np.repeat(groups.starts[:-1], groups.sizes)


def document_ids(rows: Lists, path: Path, before: int) -> NDArray[Any]:
    """The id of each row, QID-rowN where it has none, N counting ``before`` rows of the file.

    A query may have each document once.
    """
    names = [""] * len(rows) if rows.docid is None else rows.docid.astype(str).tolist()
    ids = text_array(
        [
            docid or f"{qid}-row{row}"
            for row, (qid, docid) in enumerate(zip(rows.qid.tolist(), names), before + 1)
        ]
    )
    number, first = distinct(rows.qid.astype(str), ids)
    if len(first) < len(ids):
        again = int(np.flatnonzero(first[number] < np.arange(len(ids)))[0])
        raise DataError(
            f"expected each document once a query, found {str(ids[again])!r} again for query "
            f"{rows.qid[again]} in row {before + again + 1}",
            path=path,
            field="docid",
        )
    return ids
