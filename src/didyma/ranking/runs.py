"""Rows of a file as documents of a TREC run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Groups, Lists
from didyma.data.text_columns import distinct, text_array
from didyma.errors import DataError

__all__ = ["best_rows", "document_ids"]


def best_rows(
    groups: Groups, scores: NDArray[Any], documents: NDArray[Any], depth: int
) -> NDArray[Any]:
    """The first rows of each query in its ranking."""
    from didyma.metrics.ranking import order, tie_break

    rows = order(scores, groups, tie_break(groups, documents))
    return rows[_places(groups.sizes) < depth]


def _places(sizes: NDArray[Any]) -> NDArray[Any]:
    """0, 1, 2, … within each group of the given sizes."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)


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
