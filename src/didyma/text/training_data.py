"""Judged texts as training data: read from what users have, as a learning target, as hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.schema import read_documents, read_queries
from didyma.errors import DataError
from didyma.model import Saved, Serialisable
from didyma.values import shown

GREATEST_GRADE = 10  # whole numbers beyond are a teacher's scores
LEVELS = 4  # grades above 0 that a teacher's scores become


def read_judged(
    queries: Any, passages: Any, labels: Any, scores: Any, query_vectors: Any = None
) -> Lists:
    """Lists of texts from one entry for each query, or from one for each passage.

    Passages and queries may be mappings, as `Lists.of_texts` reads them; then labels may stand in
    the passages.

    >>> nested = read_judged(["a", "b"], [["x", "y"], ["z"]], [[1, 0], [1]], None)
    >>> flat = read_judged(["a", "b", "a"], ["x", "z", "y"], [1, 1, 0], None)
    >>> [(lists.queries, lists.groups.sizes.tolist()) for lists in (nested, flat)]
    [(['a', 'b'], [2, 1]), (['a', 'b'], [2, 1])]
    """
    if isinstance(queries, Lists):
        if not all(value is None for value in (passages, labels, scores, query_vectors)):
            raise DataError("lists have passages, labels and scores already: give no others")
        lists = queries
    else:
        if passages is None:
            raise DataError("expected queries, passages and labels, or lists that have them all")
        columns = _sequence(queries, "queries"), _sequence(passages, "passages")
        is_flat = bool(columns[1]) and all(isinstance(one, (str, Mapping)) for one in columns[1])
        lists = (_flat if is_flat else _nested)(*columns, labels, scores, query_vectors)
    check_queries(lists)
    return lists.select(np.arange(len(lists)))  # queries without passages teach nothing


def check_queries(lists: Lists) -> None:
    """Raise unless every query is a text that is not empty."""
    if lists.queries is None:
        raise DataError("expected the text of each query, found none", field="queries")
    for q, query in enumerate(lists.queries):
        if not isinstance(query, str):
            raise DataError(f"expected a text, found {shown(query)}", field=f"query {q}")
        if not query.strip():
            raise DataError("expected a text, found an empty one", field=f"query {q}")


def _nested(
    queries: list[Any], passages: list[Any], labels: Any, scores: Any, vectors: Any
) -> Lists:
    for q, texts in enumerate(passages):
        if isinstance(texts, (str, Mapping)) or not isinstance(texts, Iterable):
            raise DataError(
                f"expected a list of texts, found {shown(texts)}", field=f"passages of query {q}"
            )
    return Lists.of_texts(
        queries,
        [list(texts) for texts in passages],
        None if labels is None else _sequence(labels, "labels"),
        None if scores is None else _sequence(scores, "scores"),
        query_vectors=vectors,
    )


def _flat(queries: list[Any], passages: list[Any], labels: Any, scores: Any, vectors: Any) -> Lists:
    if len(queries) != len(passages):
        raise DataError(
            f"{len(passages)} passages for {len(queries)} queries: expected a list of passages for "
            "each query, or a query for each passage",
            field="passages",
        )
    texts, of_rows = read_queries(queries, vectors)
    numbers: dict[Any, int] = {}
    qid = [numbers.setdefault(text, len(numbers)) for text in texts]
    first = np.unique(qid, return_index=True)[1]
    n = len(passages)
    beside = {
        "label": None if labels is None else _numbers(labels, n, "labels"),
        "score": None if scores is None else _numbers(scores, n, "scores"),
    }
    documents = read_documents(passages, beside)
    return Lists(
        documents.texts,
        documents.labels if labels is None else beside["label"],
        np.array(qid, np.int64),
        documents.docid,
        queries=list(numbers),
        scores=documents.scores if scores is None else beside["score"],
        attributes=documents.attributes,
        query_vectors=None if of_rows is None else of_rows[first],
    )


def _numbers(values: Any, n: int, field: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise DataError("expected numbers", field=field) from None
    if numbers.shape != (n,):
        raise DataError(f"expected {n} numbers, found shape {numbers.shape}", field=field)
    return numbers


def _sequence(values: Any, field: str) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise DataError(f"expected a list, found {shown(values)}", field=field)
    return list(values)


@dataclass(frozen=True, eq=False)
class Target:
    """Labels as grades, with the loss to learn by and the measure to select by.

    Whole numbers up to 10 are grades, negative ones 0; a passage is relevant from 1 on, or from the
    level of the measure, as in "AP(rel=2)". Other numbers are a teacher's scores t, such as those
    of a large model, and become grades within each list: with r the range of t in the list, or its
    deviation over all lists where that is more,

        grade = round(4 (t − min t) / r)

    so that a passage which the teacher puts far above all others stands alone, scores that lie
    close together count as equal, and a list that the teacher finds alike teaches nothing. What is
    learned is then the ranking by 1 − NDCG with linear gains, whose value is the share of the
    teacher's gains that the student's order collects.

    Attributes
    ----------
    kind : {"binary", "graded", "teacher"}
    grades : array of shape (n_rows,), whole numbers
    relevance : array of shape (n_rows,)
        The share of relevance that calibration aims at, in [0, 1].
    loss, measure : str
    rel : float
        The least grade of what is relevant.

    >>> groups = Groups.from_lists([3])
    >>> Target.of(np.array([-8.5, -8.0, 3.0]), groups).grades.tolist()
    [0.0, 0.0, 4.0]
    """

    kind: str
    grades: NDArray[np.float64]
    relevance: NDArray[np.float64]
    loss: str
    measure: str
    rel: float = 1.0

    @classmethod
    def of(cls, labels: NDArray[np.float64], groups: Groups, measure: str | None = None) -> Target:
        """The target of labels; ``measure`` takes the place of the default one."""
        if not len(labels):
            raise DataError("expected judged passages, found none", field="labels")
        rel = 1.0
        if measure is not None:
            from didyma.metrics.measures import level_of, parse

            chosen = parse(measure)
            rel, measure = float(level_of(chosen) or 1), str(chosen)
        is_whole = bool((labels == np.floor(labels)).all())
        if is_whole and np.abs(labels).max() <= GREATEST_GRADE:
            from didyma.ranking.losses import AveragePrecision

            grades, measure = np.maximum(labels, 0.0), measure or "AP"
            kind = "graded" if grades.max() > 1 else "binary"
            loss = "ndcg" if measure.startswith("nDCG") else str(AveragePrecision(rel))
            return cls(kind, grades, (grades >= rel).astype(float), loss, measure, rel)
        # By a power of two, which changes no digit: squares of what was given may be infinite.
        scores = np.ldexp(labels, -int(np.frexp(np.abs(labels).max())[1]))
        low, high = scores.min(), scores.max()
        within_unit = labels.min() >= 0 and labels.max() <= 1
        share = labels if within_unit else (scores - low) / max(high - low, np.finfo(float).tiny)
        return cls(
            "teacher", _graded(scores, groups), share, "ndcg(gain=linear)", measure or "nDCG"
        )


def _graded(scores: NDArray[np.float64], groups: Groups) -> NDArray[np.float64]:
    least, most = groups.least(scores), -groups.least(-scores)
    span = np.maximum((most - least)[groups.codes], scores.std())
    distance = scores - least[groups.codes]
    return np.rint(LEVELS * np.divide(distance, span, out=np.zeros_like(span), where=span > 0))


@dataclass(frozen=True, eq=False)
class TrainingData(Serialisable):
    """A fingerprint of judged lists, and a hash of each of their queries.

    Queries that differ in case or spaces count as equal. A hash has 32 bits, so that of ten
    thousand training queries a new one is taken for one of them with a chance of 2·10⁻⁶. Hashes
    hide queries from readers, not from those who can guess them.

    >>> lists = Lists.of_texts(["Who rang?"], [["They did.", "It rains."]], [[1, 0]])
    >>> data = TrainingData.of(lists)
    >>> data.seen(["who  rang?", "who sang?"]).tolist()
    [True, False]
    """

    fingerprint: str
    n_queries: int  # that differ
    queries: Annotated[NDArray[np.uint32], Saved("n_queries")]

    @classmethod
    def of(cls, lists: Lists) -> Self | None:
        """That of lists of texts; None of others."""
        if lists.queries is None or not all(isinstance(query, str) for query in lists.queries):
            return None
        digest = blake2b(digest_size=8)
        labels, scores = (
            [None] * len(lists) if column is None else column.tolist()
            for column in (lists.labels, lists.scores)
        )
        for number, query in enumerate(lists.queries):
            digest.update(f"{query}\0".encode())
            for row in lists.groups.rows_of(number).tolist():
                digest.update(f"{lists.document(row)}\0{labels[row]}\0{scores[row]}\0".encode())
        queries = np.unique(hashes(lists.queries))
        return cls(digest.hexdigest(), len(queries), queries)

    def seen(self, queries: Iterable[str]) -> NDArray[np.bool_]:
        """Whether each query is one of those."""
        return np.isin(hashes(queries), self.queries)

    def _check_state(self) -> None:
        if len(self.queries) != self.n_queries:
            raise ValueError(f"expected {self.n_queries} hashes, found {len(self.queries)}")


def hashes(queries: Iterable[str]) -> NDArray[np.uint32]:
    """A hash of each query, which case and spaces do not change."""
    digests = (
        blake2b(" ".join(query.casefold().split()).encode(), digest_size=4).digest()
        for query in queries
    )
    return np.frombuffer(b"".join(digests), "<u4").astype(np.uint32)
