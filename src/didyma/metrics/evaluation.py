"""Evaluate scores against labels, and TREC runs against relevance judgements, query by query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.groups import Groups, group_rows
from didyma.data.lists import high_level
from didyma.errors import DataError, warn
from didyma.metrics.measures import Measure, is_native, level_of, parse, parse_all
from didyma.metrics.per_query import Judgements, Ranking, RunAndQrels, values_per_query
from didyma.metrics.ranking import one_per_row, rank, read_labels, read_scores, tie_break, tie_order

Measures: TypeAlias = "str | Measure | Iterable[str | Measure]"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of each measure, one per query, in the order of ``queries``.

    >>> result = evaluate([3.0, 1.0, 2.0], [1, 0, 1], qid=["a", "a", "b"], measures="AP, P@2")
    >>> result.queries.tolist(), result["P@2"].tolist(), result.mean("AP")
    (['a', 'b'], [0.5, 0.5], 1.0)
    """

    queries: NDArray[Any]
    values: dict[Measure, NDArray[np.float64]]

    def __getitem__(self, measure: str | Measure) -> NDArray[np.float64]:
        values = self.values.get(parse(measure))
        if values is None:
            evaluated = ", ".join(map(str, self.values))
            raise KeyError(f"{measure} was not evaluated; there are {evaluated}")
        return values

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """The values of other queries after each other.

        >>> parts = [evaluate([2.0, 1.0], y, qid=[0, 0]) for y in ([1, 0], [0, 1])]
        >>> Evaluation.joined(parts)["AP"].tolist()
        [1.0, 0.5]
        """
        values = {
            measure: np.concatenate([part.values[measure] for part in parts])
            for measure in parts[0].values
        }
        return cls(np.concatenate([part.queries for part in parts]), values)

    def mean(self, measure: str | Measure) -> float:
        """Mean over the queries that have a value."""
        values = self[measure]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else float("nan")

    def to_dict(self) -> dict[str, Any]:
        """Means and values by name, ready for JSON (None for a value that is missing)."""
        columns = {str(measure): _plain(values) for measure, values in self.values.items()}
        return {
            "mean": dict(zip(columns, _plain([self.mean(measure) for measure in self.values]))),
            "queries": {
                str(query): {name: column[i] for name, column in columns.items()}
                for i, query in enumerate(self.queries.tolist())
            },
        }

    def __repr__(self) -> str:
        means = ", ".join(f"{measure} {self.mean(measure):.4f}" for measure in self.values)
        return f"Evaluation({len(self.queries)} queries: {means})"


class Evaluator:
    """Evaluates one set of rows again and again, as a training loop does.

    What does not depend on scores (the order of ties, the best possible DCG) is computed once.

    >>> groups = Groups.from_qid(["a", "a", "a"])
    >>> evaluator = Evaluator([0, 1, 0], groups, "AP")
    >>> evaluator([3.0, 2.0, 1.0])
    Evaluation(1 queries: AP 0.5000)
    """

    def __init__(
        self, y: ArrayLike, groups: Groups, measures: Measures, *, docid: ArrayLike | None = None
    ) -> None:
        self.groups = groups
        self.measures = parse_all(measures)
        if not len(groups):
            raise DataError("there are no queries to evaluate")
        self._rows = tie_order(groups, tie_break(groups, docid))
        self._labels = read_labels(y, len(self._rows))[self._rows]
        self._judged = Judgements(self._labels, groups.starts)

    def __call__(self, scores: ArrayLike) -> Evaluation:
        """Values of the ranking by ``scores``, one for each row."""
        return self._evaluate(scores, average_ties=False)

    def expected(self, scores: ArrayLike) -> Evaluation:
        """Values expected when rows with equal scores are shuffled."""
        if foreign := [str(measure) for measure in self.measures if not is_native(measure)]:
            raise DataError(f"no expectation over ties is known for {', '.join(foreign)}")
        return self._evaluate(scores, average_ties=True)

    def _evaluate(self, scores: ArrayLike, *, average_ties: bool) -> Evaluation:
        slots, equal = rank(read_scores(scores, len(self._rows))[self._rows], self.groups.starts)
        averaged = equal if average_ties else np.zeros_like(equal)
        ranking = Ranking(self._labels[slots], self.groups.starts, equal, averaged)

        def documents() -> RunAndQrels:
            names = [*map(str, range(len(slots)))]
            run, qrels = {}, {}
            for query, (start, stop) in enumerate(pairwise(self.groups.starts.tolist())):
                run[str(query)] = [names[slot] for slot in slots[start:stop].tolist()]
                qrels[str(query)] = dict(zip(names[start:stop], self._labels[start:stop].tolist()))
            return run, qrels

        values = values_per_query(self.measures, ranking, self._judged, documents)
        return Evaluation(self.groups.names, values)


def warn_if_all_relevant(measures: Sequence[Measure], labels: NDArray[np.float64]) -> None:
    """Warn of measures that no order can change, where labels are grades without a 0."""
    low, high = (labels.min(), labels.max()) if len(labels) else (0.0, 0.0)
    if not 1.0 <= low < high:
        return
    idle = [str(each) for each in measures if low >= (level_of(each) or np.inf)]
    if idle:
        warn(
            f"labels are {low:g} to {high:g}, so that all rows are relevant to {', '.join(idle)}; "
            f"give a level, as AP(rel={ceil(high_level(labels))}), or take nDCG",
            UserWarning,
        )


def check_decisive(measure: Measure, labels: NDArray[np.float64], groups: Groups) -> None:
    """Refuse lists of which no order is better than another by the measure: they choose nothing.

    >>> check_decisive(parse("AP"), np.array([0.0, 0.0]), Groups.from_qid(["a", "a"]))
    Traceback (most recent call last):
    didyma.errors.DataError: y: expected a query with labels of 1 or more and others, found none: \
AP cannot tell one model from another
    """
    level = level_of(measure)
    worth = np.maximum(labels, 0) if level is None else (labels >= level).astype(np.float64)
    worth = worth[groups.rows]
    same = np.concatenate([[True], worth[1:] == worth[:-1]])
    same[groups.starts[:-1][groups.sizes > 0]] = True
    if same.all():
        expected = "different labels" if level is None else f"labels of {level} or more and others"
        raise DataError(
            f"expected a query with {expected}, found none: {measure} cannot tell one model from "
            "another",
            field="y",
        )


def evaluate(
    scores: ArrayLike,
    y: ArrayLike,
    groups: Groups | None = None,
    measures: Measures = "AP",
    *,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    docid: ArrayLike | None = None,
) -> Evaluation:
    """Values of each measure when the rows of each query are ranked by ``scores``.

    Queries are given by ``qid`` (one per row), ``group`` (sizes) or ready-made ``groups``; without
    any, all rows are one query. ``scores``, ``y`` and ``docid`` have one entry per row.
    `didyma.metrics.ranking` says how ties are broken. All rows count as judged; a query without a
    relevant row has the value 0 and takes part in the mean, as in trec_eval.

    >>> result = evaluate([3.0, 1.0, 1.0, 2.0], [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> result["AP"].tolist(), result.mean("AP")
    ([1.0, 0.5], 0.75)
    """
    if groups is None:
        groups = group_rows(np.size(y), qid, group)
    elif not isinstance(groups, Groups) or qid is not None or group is not None:
        raise DataError("give the queries once, as qid= (one per row) or group= (sizes)")
    return Evaluator(y, groups, measures, docid=docid)(scores)


def expected(scores: ArrayLike, y: ArrayLike, groups: Groups, measures: Measures) -> Evaluation:
    """Values of each measure in expectation over all orders of rows with equal scores.

    >>> groups = Groups.from_qid(["a", "a"])
    >>> expected([1.0, 1.0], [1, 0], groups, "AP").mean("AP")
    0.75
    """
    return Evaluator(y, groups, measures).expected(scores)


class DocumentColumns(Protocol):
    """Documents of queries, as columns."""

    @property
    def qid(self) -> NDArray[Any]:
        """Query of each row."""

    @property
    def docid(self) -> NDArray[Any]:
        """Document of each row."""


class RetrievedDocuments(DocumentColumns, Protocol):
    """Columns of a run."""

    @property
    def score(self) -> NDArray[Any]:
        """Score of each row."""


class JudgedDocuments(DocumentColumns, Protocol):
    """Columns of relevance judgements."""

    @property
    def relevance(self) -> NDArray[Any]:
        """Label of each row."""


class RunEvaluator:
    """Evaluates runs against one set of judgements, as ir_measures does.

    The queries are those of the judgements. Relevant documents that a run does not have count;
    those of the run that are not judged are not relevant. A query that is missing in the run has
    the value 0. Ranks in the run are ignored: `didyma.metrics.ranking` says how scores decide.

    >>> from types import SimpleNamespace
    >>> qrels = SimpleNamespace(qid=["1", "1"], docid=["a", "b"], relevance=[1, 1])
    >>> evaluator = RunEvaluator(qrels, "AP")
    >>> evaluator(SimpleNamespace(qid=["1", "1"], docid=["a", "c"], score=[2.0, 1.0])).mean("AP")
    0.5
    """

    def __init__(self, qrels: JudgedDocuments, measures: Measures) -> None:
        self.measures = parse_all(measures)
        judged = Groups.from_qid(_text(qrels.qid))
        if not len(judged):
            raise DataError("there are no judgements to evaluate against", field="qrels")
        labels = read_labels(qrels.relevance, len(judged.rows), "relevance")
        self.queries = judged.names
        self._place = {query: i for i, query in enumerate(self.queries.tolist())}
        self._label = dict(zip(_documents(qrels, "qrels"), labels.tolist()))
        self._judged = Judgements(labels[judged.rows], judged.starts)

    def __call__(self, run: RetrievedDocuments) -> Evaluation:
        """Values for the queries of the judgements; ``run`` must share at least one of them."""
        scores = read_scores(run.score, len(run.qid))
        documents = _documents(run, "run")
        query = np.array([self._place.get(name, -1) for name, _ in documents], dtype=np.int64)
        (judged,) = np.nonzero(query >= 0)
        if not len(judged):
            raise DataError("no query of the run is judged in the qrels", field="qid")
        groups = self._groups(query[judged])
        rows = judged[tie_order(groups, tie_break(groups, _text(run.docid)[judged]))]
        slots, equal = rank(scores[rows], groups.starts)
        ranked = rows[slots]
        labels = np.array([self._label.get(document, np.nan) for document in documents])
        ranking = Ranking(labels[ranked], groups.starts, equal, np.zeros_like(equal))

        def run_and_qrels() -> RunAndQrels:
            return self._run_and_qrels([documents[row] for row in ranked.tolist()])

        values = values_per_query(self.measures, ranking, self._judged, run_and_qrels)
        return Evaluation(self.queries, values)

    def _groups(self, query: NDArray[np.int64]) -> Groups:
        """Rows by the number of their query; some queries may have none."""
        sizes = np.bincount(query, minlength=len(self.queries))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Groups(self.queries, np.argsort(query, kind="stable"), starts)

    def _run_and_qrels(self, ranked: list[tuple[str, str]]) -> RunAndQrels:
        run: dict[str, list[str]] = {}
        for query, document in ranked:
            run.setdefault(query, []).append(document)
        qrels: dict[str, dict[str, float]] = {query: {} for query in self._place}
        for (query, document), label in self._label.items():
            qrels[query][document] = label
        return run, qrels


def evaluate_run(run: RetrievedDocuments, qrels: JudgedDocuments, measures: Measures) -> Evaluation:
    """Values of each measure for every query of ``qrels``; see `RunEvaluator`.

    >>> from types import SimpleNamespace
    >>> qrels = SimpleNamespace(qid=["1", "1"], docid=["a", "b"], relevance=[1, 1])
    >>> run = SimpleNamespace(qid=["1", "1"], docid=["a", "c"], score=[2.0, 1.0])
    >>> evaluate_run(run, qrels, "AP")
    Evaluation(1 queries: AP 0.5000)
    """
    return RunEvaluator(qrels, measures)(run)


def _documents(rows: DocumentColumns, source: str) -> list[tuple[str, str]]:
    """Query and document of each row; no document may be listed twice for a query."""
    docid = one_per_row(rows.docid, len(rows.qid), f"{source} docid")
    documents = list(zip(_text(rows.qid).tolist(), _text(docid).tolist()))
    seen: set[tuple[str, str]] = set()
    for row, pair in enumerate(documents):
        if pair in seen:
            query, document = pair
            problem = f"row {row}: document {document} is listed twice for query {query}"
            raise DataError(problem, field=source)
        seen.add(pair)
    return documents


def _text(column: ArrayLike) -> NDArray[Any]:
    return np.asarray(column).astype(str)


def _plain(values: ArrayLike) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in np.asarray(values)]
