"""Columns that compare a row with the others of its list: places, and reciprocal rank fusion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Groups

IN_LIST = " in list"  # ends the names of columns that compare passages with those beside them
RRF = " rrf"  # ends the names of columns to add up for reciprocal rank fusion
RRF_CONSTANT = 60  # of Cormack, Clarke and Büttcher (2009)

Vector = NDArray[np.float64]


def places(values: Vector, groups: Groups) -> NDArray[np.int64]:
    """How many values of its list are greater than each.

    >>> places(np.array([1.0, 3.0, 3.0, 2.0]), Groups.from_lists([3, 1])).tolist()
    [2, 0, 0, 0]
    """
    codes = groups.codes
    order = np.lexsort((-values, codes))
    ranked, query = values[order], codes[order]
    is_new = np.ones(len(order), np.bool_)  # neither the value nor the list of before
    is_new[1:] = (ranked[1:] != ranked[:-1]) | (query[1:] != query[:-1])
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    result = np.empty(len(order), np.int64)
    result[order] = first - groups.starts[query]
    return result


def reciprocal_ranks(values: Vector, document: NDArray[np.int64], groups: Groups) -> Vector:
    """1 / (60 + rank) of each window's value among the best values of the list's documents.

    ``document`` is that of each window, in the order of their lists, and ``groups`` are of
    documents.

    >>> windows, document = np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1])
    >>> (1 / reciprocal_ranks(windows, document, Groups.from_lists([2]))).round().tolist()
    [63.0, 61.0, 62.0]
    """
    if len(document) == len(groups.rows):
        return 1 / (RRF_CONSTANT + 1 + places(values, groups))
    best = np.maximum.reduceat(values, np.flatnonzero(np.diff(document, prepend=-1)))
    rank = np.empty(len(values))
    bounds = np.searchsorted(document, groups.starts)
    for q in range(len(groups)):
        of_list = slice(bounds[q], bounds[q + 1])
        ranked = np.sort(best[groups.starts[q] : groups.starts[q + 1]])
        rank[of_list] = 1 + len(ranked) - np.searchsorted(ranked, values[of_list], side="right")
    return 1 / (RRF_CONSTANT + rank)
