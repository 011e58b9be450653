"""Queries, passages and judgements in the forms that users have them in, as lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.values import shown

__all__ = ["check_queries", "read_judged"]


def read_judged(queries: Any, passages: Any, labels: Any, scores: Any) -> Lists:
    """Lists of texts from one entry for each query, or from one for each passage.

    >>> nested = read_judged(["a", "b"], [["x", "y"], ["z"]], [[1, 0], [1]], None)
    >>> flat = read_judged(["a", "b", "a"], ["x", "z", "y"], [1, 1, 0], None)
    >>> [(lists.queries, lists.groups.sizes.tolist()) for lists in (nested, flat)]
    [(['a', 'b'], [2, 1]), (['a', 'b'], [2, 1])]
    """
    if isinstance(queries, Lists):
        if not (passages is None and labels is None and scores is None):
            raise DataError("lists have passages, labels and scores already: give no others")
        lists = queries
    else:
        if passages is None or labels is None:
            raise DataError("expected queries, passages and labels, or lists that have them all")
        asked, given = _sequence(queries, "queries"), _sequence(passages, "passages")
        if given and all(isinstance(own, str) for own in given):
            lists = _flat(asked, given, labels, scores)
        else:
            lists = _nested(asked, given, labels, scores)
    check_queries(lists)
    return lists.select(np.arange(len(lists)))  # queries without passages teach nothing


def check_queries(lists: Lists) -> None:
    """Refuse queries that ask for nothing."""
    if lists.queries is None:
        raise DataError("expected the text of each query, found none", field="queries")
    for q, query in enumerate(lists.queries):
        if not isinstance(query, str):
            raise DataError(f"expected a text, found {shown(query)}", field=f"query {q}")
        if not query.strip():
            raise DataError("expected a text, found an empty one", field=f"query {q}")


def _nested(queries: list[Any], passages: list[Any], labels: Any, scores: Any) -> Lists:
    for q, own in enumerate(passages):
        if isinstance(own, str) or not isinstance(own, Iterable):
            raise DataError(
                f"expected a list of texts, found {shown(own)}", field=f"passages of query {q}"
            )
    own = [list(part) for part in passages]
    judged = _sequence(labels, "labels")
    first = None if scores is None else _sequence(scores, "scores")
    return Lists.of_texts(queries, own, judged, first)


def _flat(queries: list[Any], passages: list[str], labels: Any, scores: Any) -> Lists:
    if len(queries) != len(passages):
        raise DataError(
            f"{len(passages)} passages for {len(queries)} queries: expected a list of passages for "
            "each query, or a query for each passage",
            field="passages",
        )
    numbers: dict[Any, int] = {}
    qid = [numbers.setdefault(query, len(numbers)) for query in queries]
    return Lists(
        passages,
        _numbers(labels, len(passages), "labels"),
        np.array(qid, np.int64),
        queries=list(numbers),
        scores=None if scores is None else _numbers(scores, len(passages), "scores"),
    )


def _numbers(values: Any, n: int, field: str) -> NDArray[np.float64]:
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError("expected numbers", field=field) from None
    if found.shape != (n,):
        raise DataError(f"expected {n} numbers, found shape {found.shape}", field=field)
    return found


def _sequence(values: Any, field: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise DataError(f"expected a list, found {shown(values)}", field=field)
    return list(values)
