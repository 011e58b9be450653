"""Evaluate TREC runs against relevance judgements."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Groups
from didyma.errors import DataError
from didyma.metrics.evaluation import Evaluation, Measures
from didyma.metrics.measures import Measure, is_native, parse_all
from didyma.metrics.ranking import one_per_row, rank, read_labels, read_scores, tie_break, tie_order


class RetrievedDocuments(Protocol):
    """Columns of retrieved documents."""

    @property
    def qid(self) -> NDArray[Any]:
        """Query of each row."""

    @property
    def docid(self) -> NDArray[Any]:
        """Document of each row."""

    @property
    def score(self) -> NDArray[Any]:
        """Score of each row."""


class JudgedDocuments(Protocol):
    """Columns of judged documents."""

    @property
    def qid(self) -> NDArray[Any]:
        """Query of each row."""

    @property
    def docid(self) -> NDArray[Any]:
        """Document of each row."""

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
    >>> run = SimpleNamespace(qid=["1", "1"], docid=["a", "c"], score=[2.0, 1.0])
    >>> RunEvaluator(qrels, "AP")(run).mean("AP")
    0.5
    """

    def __init__(self, qrels: JudgedDocuments, measures: Measures) -> None:
        from didyma.metrics.native import Judgements

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
        from didyma.metrics import native

        scores = read_scores(run.score, len(run.qid))
        documents = _documents(run, "run")
        query = np.array([self._place.get(name, -1) for name, _ in documents], dtype=np.int64)
        (kept,) = np.nonzero(query >= 0)
        if not len(kept):
            raise DataError("no query of the run is judged in the qrels", field="qid")
        groups = self._groups(query[kept])
        rows = kept[tie_order(groups, tie_break(groups, _text(run.docid)[kept]))]

        slots, equal = rank(scores[rows], groups.starts)
        ranked = rows[slots]
        labels = np.array([self._label.get(document, np.nan) for document in documents])
        ranking = native.Ranking(labels[ranked], groups.starts, equal, np.zeros_like(equal))
        values = {
            measure: native.per_query(measure, ranking, self._judged)
            for measure in self.measures
            if is_native(measure)
        }
        if foreign := [measure for measure in self.measures if measure not in values]:
            values |= self._reference(foreign, [documents[row] for row in ranked.tolist()])
        return Evaluation(self.queries, {measure: values[measure] for measure in self.measures})

    def _groups(self, query: NDArray[np.int64]) -> Groups:
        """Rows by the number of their query; some queries may have none."""
        sizes = np.bincount(query, minlength=len(self.queries))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Groups(self.queries, np.argsort(query, kind="stable"), starts)

    def _reference(
        self, measures: list[Measure], ranked: list[tuple[str, str]]
    ) -> dict[Measure, NDArray[np.float64]]:
        from didyma.metrics import reference

        run: dict[str, list[str]] = {}
        for query, document in ranked:
            run.setdefault(query, []).append(document)
        qrels: dict[str, dict[str, float]] = {query: {} for query in self._place}
        for (query, document), label in self._label.items():
            qrels[query][document] = label
        return reference.per_query(measures, list(self._place), run, qrels)


def evaluate_run(run: RetrievedDocuments, qrels: JudgedDocuments, measures: Measures) -> Evaluation:
    """Values of each measure for every query of ``qrels``; see `RunEvaluator`.

    >>> from types import SimpleNamespace
    >>> qrels = SimpleNamespace(qid=["1", "1"], docid=["a", "b"], relevance=[1, 1])
    >>> run = SimpleNamespace(qid=["1", "1"], docid=["a", "c"], score=[2.0, 1.0])
    >>> evaluate_run(run, qrels, "AP")
    Evaluation(1 queries: AP 0.5000)
    """
    return RunEvaluator(qrels, measures)(run)


def _documents(rows: RetrievedDocuments | JudgedDocuments, source: str) -> list[tuple[str, str]]:
    """Query and document of each row; no document may be listed twice for a query."""
    docid = one_per_row(rows.docid, len(rows.qid), f"{source} docid")
    documents = list(zip(_text(rows.qid).tolist(), _text(docid).tolist()))
    if len(set(documents)) < len(documents):
        seen: set[tuple[str, str]] = set()
        for row, (query, document) in enumerate(documents):
            if (query, document) in seen:
                raise DataError(
                    f"row {row}: document {document} is listed twice for query {query}",
                    field=source,
                )
            seen.add((query, document))
    return documents


def _text(column: ArrayLike) -> NDArray[Any]:
    return np.asarray(column).astype(str)
