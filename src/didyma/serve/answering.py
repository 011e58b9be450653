"""Rank, score and search for requests, within limits; runs on the threads of the queue."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import Histogram

from didyma.errors import DataError
from didyma.serve.afterwards import Observer
from didyma.serve.dialects import Question, steps_of, whole
from didyma.serve.documents import first_scores, read_documents, sizes_of
from didyma.serve.limits import Limits
from didyma.serve.logs import log
from didyma.serve.metrics import ServiceMetrics
from didyma.serve.native import SEARCH, ScoreQuestion, SearchBody
from didyma.serve.responses import HTTPError
from didyma.serve.served import ServedIndexes, ServedModels
from didyma.text.observation import Scored, observing

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranking
    from didyma.text.steps import Step

TOP_N, CANDIDATES = 10, 100  # of a search, unless a request or the limits say otherwise


@dataclass(frozen=True)
class Answering:
    """Answers questions; ``fields`` of each call collect what is logged of it.

    Except ``afterwards``, which is work for after the response.

    Attributes
    ----------
    models : ServedModels
    indexes : ServedIndexes
    limits : Limits
    metrics : ServiceMetrics
    log_queries : bool
        Put queries into ``fields``.
    then : sequence of Step
        Steps after ranking, for requests that ask for none of their own.
    observer : Observer
        Watches answers.
    """

    models: ServedModels
    indexes: ServedIndexes
    limits: Limits
    metrics: ServiceMetrics
    log_queries: bool
    then: Sequence[Step]
    observer: Observer

    def rank(self, question: Question, fields: dict[str, Any]) -> Ranking:
        """The documents of a request, the best first."""
        return self.rank_all([question], fields)[0]

    def rank_all(
        self, questions: Sequence[Question], fields: dict[str, Any], part: str = ""
    ) -> list[Ranking]:
        """The rankings of several requests; errors name the ``part`` by its number."""
        n_documents = sum(len(question.documents) for question in questions)
        self.limits.check_documents(n_documents)
        fields["documents"] = n_documents
        read, sizes = [], []
        for n, question in enumerate(questions):
            name = self.models.resolve(question.model)
            model = self.models.by_name[name]
            versions = [*fields.get("version", "").split(","), model.version]
            fields |= {"model": name, "version": ",".join(dict.fromkeys(filter(None, versions)))}
            reranker = model.reranker
            with _placed(part, n):
                scores = _scores(question, uses_scores=reranker.uses_scores)
                schema = reranker.schema_
                passages = read_documents(question.documents, schema, question.rank_fields)
            read.append((name, model, scores, passages))
            sizes.append((question.query, sizes_of(passages, schema)))
        self.limits.check_sizes(sizes)
        rankings = []
        for n, (question, (name, model, scores, passages)) in enumerate(zip(questions, read)):
            scored: list[Scored] = []
            with (
                self._measured(question.query, fields, self.metrics.rank_seconds, name),
                _placed(part, n),
                observing(scored.append),
            ):
                explain = question.explain or question.spans is not None
                ranked = model.reranker.rank(
                    _query(question),
                    passages,
                    question.top_n,
                    scores,
                    explain=explain,
                    then=self.then if question.then is None else question.then,
                )
            self.metrics.documents.observe(len(passages))
            seen = name, model, question.query, ranked, scored, partial(_ask_again, question)
            fields.setdefault("afterwards", []).extend(self.observer.note(*seen))
            rankings.append(ranked)
        return rankings

    def score(
        self, question: ScoreQuestion, fields: dict[str, Any]
    ) -> tuple[list[float], list[str]]:
        """The chance of relevance of each pair, and notes."""
        scores = question.scores
        _check_one_each(scores, question.documents)
        rows_of: dict[str, list[int]] = {}
        for row, query in enumerate(question.queries):
            rows_of.setdefault(query, []).append(row)
        questions = [
            Question(
                query,
                [question.documents[row] for row in rows],
                question.model,
                scores=None if scores is None else [scores[row] for row in rows],
                then=(),
            )
            for query, rows in rows_of.items()
        ]
        chances = [0.0] * len(question.documents)
        notes: dict[str, None] = {}
        rankings = self.rank_all(questions, fields, "query" if len(questions) > 1 else "")
        for rows, ranked in zip(rows_of.values(), rankings):
            notes |= dict.fromkeys(ranked.notes)
            for one in ranked:
                if one.probability is None:
                    raise DataError("the model has learned no chances of relevance: ask for a rank")
                chances[rows[one.index]] = one.probability
        return chances, list(notes)

    def search(self, question: SearchBody, fields: dict[str, Any]) -> tuple[SearchBody, Ranking]:
        """The request with the names of index and model, and the passages that it asks for."""
        self.limits.check_search(question)
        name = self.indexes.resolve(question.index)
        has_models = question.model is not None or bool(self.models.by_name)
        model = self.models.resolve(question.model) if has_models else None
        if model is None and question.explain:
            raise HTTPError(SEARCH.invalid, "expected a model for reasons: a search has none")
        fields |= {"index": name, "model": model}
        served = None if model is None else self.models.by_name[model]
        if served is not None:
            fields["version"] = served.version
        find = partial(
            self.indexes.by_name[name].index.search,
            question.query,
            whole(question.top_n) or min(TOP_N, self.limits.documents),
            candidates=whole(question.candidates) or min(CANDIDATES, self.limits.documents),
        )
        scored: list[Scored] = []
        with (
            self._measured(question.query, fields, self.metrics.search_seconds, name),
            _asked_engine(name),
            observing(scored.append),
        ):
            ranked = find(
                reranker=None if served is None else served.reranker,
                explain=bool(question.explain),
                then=self.then if question.then is None else steps_of(question.then),
            )
        if model is not None and served is not None:
            again = lambda shadow: find(reranker=shadow)  # noqa: E731
            seen = model, served, question.query, ranked, scored, again
            fields["afterwards"] = self.observer.note(*seen)
        return msgspec.structs.replace(question, index=name, model=model), ranked

    @contextmanager
    def _measured(
        self, query: str, fields: dict[str, Any], histogram: Histogram, label: str
    ) -> Iterator[None]:
        """Measure the duration of the block, for log and metrics."""
        if self.log_queries:
            fields["query"] = f"{fields['query']}\n{query}" if "query" in fields else query
        began = time.perf_counter()
        yield
        seconds = time.perf_counter() - began
        before = fields.get("rank_milliseconds", 0.0)
        fields["rank_milliseconds"] = round(before + 1000 * seconds, 3)
        histogram.labels(label).observe(seconds)


def _query(question: Question) -> Any:
    if question.query_vector is None:
        return question.query
    return {"text": question.query, "vector": question.query_vector}


def _ask_again(question: Question, shadow: Any) -> Ranking:
    """Ask another reranker the same, with the scores that it needs."""
    scores = _scores(question, uses_scores=True) if shadow.uses_scores else None
    passages = read_documents(question.documents, shadow.schema_, question.rank_fields)
    ranking: Ranking = shadow.rank(_query(question), passages, scores=scores)
    return ranking


def _scores(question: Question, *, uses_scores: bool) -> Sequence[float] | None:
    """The first stage's scores, which a request has exactly if the model was trained so."""
    scores, documents = question.scores, question.documents
    if scores is not None and not uses_scores:
        raise DataError(
            "the model was trained without a first stage's: leave them out", field="scores"
        )
    if scores is None and uses_scores:
        scores = first_scores(documents) if documents else []
        if scores is None:
            raise DataError("expected the first stage's scores, found none", field="scores")
    _check_one_each(scores, documents)
    return scores


def _check_one_each(scores: Sequence[float] | None, documents: Sequence[Any]) -> None:
    if scores is not None and len(scores) != len(documents):
        raise DataError(f"expected {len(documents)}, found {len(scores)}", field="scores")


@contextmanager
def _placed(part: str, n: int) -> Iterator[None]:
    """Errors of the block are those of the n-th part of the request, if that has parts."""
    try:
        yield
    except DataError as error:
        if not part or error.path is not None:
            raise
        raise DataError(str(error), field=f"{part} {n}") from None


@contextmanager
def _asked_engine(name: str) -> Iterator[None]:
    """Turn failures of a search engine into status 503; only the log says why (it names hosts)."""
    from didyma.text.retrieval.search_engine import EngineError

    try:
        yield
    except EngineError as error:
        log(logging.ERROR, "search engine", index=name, reason=str(error))
        raise HTTPError(503, "the search engine cannot be asked", retry_after=1) from None
