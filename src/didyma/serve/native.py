"""Requests of this server's own: searches, pairs, batches, and those that change something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.errors import DataError
from didyma.judgements import Judgement
from didyma.serve.dialects import (
    COHERE,
    Body,
    Count,
    Dialect,
    Document,
    DocumentsAnswer,
    DocumentsBody,
    Query,
    Question,
    RankedItem,
    Then,
    Usage,
    checked_query,
    has_instead_of_documents,
    ranked_item,
    steps_of,
)
from didyma.serve.documents import GivenDocument
from didyma.serve.responses import HTTPError

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranking
    from didyma.serve.app import Service

NO_TOKENS = "expected a server with tokens (--token-file): without them nobody may change anything"


class SearchBody(Struct):
    """A request for passages of an index."""

    query: str
    top_n: Count | None = None
    candidates: Count | None = None
    index: str | None = None
    model: str | None = None
    explain: bool | None = None
    then: Then | None = None


class FirstStagePlace(Struct):
    """Score and place in the order of BM25."""

    score: float
    rank: int


class SearchItem(RankedItem):
    """A passage in the answer."""

    id: str
    text: str
    relevance_score: float
    first_stage: FirstStagePlace
    metadata: dict[str, Any] | UnsetType = UNSET


class SearchAnswer(Struct):
    """The answer, the best passage first; without a model it is in the order of BM25."""

    id: str
    index: str | None
    model: str | None
    results: list[SearchItem]
    notes: list[str] | UnsetType = UNSET


class SearchDialect(Dialect[SearchBody]):
    """Passages of an index, with their places in its own order."""

    name = "search"
    body = SearchBody
    answered = SearchAnswer
    summary = "Find the passages of an index that are relevant to a query."

    def _question(self, body: SearchBody) -> SearchBody:
        steps_of(body.then or ())  # which are checked before anything is looked for
        return body

    def _answer(self, id: str, question: SearchBody, ranked: Ranking) -> SearchAnswer:
        results = [
            SearchItem(
                str(one.id),
                one.text,
                one.score,
                FirstStagePlace(one.first_score or 0.0, one.first_rank or 0),
                one.metadata or UNSET,
                **ranked_item(one, explain=bool(question.explain)),
            )
            for one in ranked
        ]
        notes = list(ranked.notes) or UNSET
        return SearchAnswer(id, question.index, question.model, results, notes)


SEARCH = SearchDialect()

Queries: TypeAlias = Query | list[Query]
Documents: TypeAlias = str | Document | list[str | Document]


@dataclass(frozen=True)
class ScoreQuestion:
    """Pairs of a query and a document; ``scores`` are those of a first stage."""

    queries: Sequence[str]
    documents: Sequence[GivenDocument]
    model: str | None = None
    scores: Sequence[float] | None = None


class ScoreBody(Struct):
    """One query for all documents, or one for each."""

    query: Queries
    documents: Documents
    model: str | None = None
    scores: list[float] | None = None


class TextPairsBody(Struct):
    """The same as vLLM's clients say it."""

    query: Queries = msgspec.field(name="text_1")
    documents: Documents = msgspec.field(name="text_2")
    # A request with this key would be one of this server's own.
    no_documents: None = msgspec.field(name="documents", default=None)
    model: str | None = None
    scores: list[float] | None = None


class PairScore(Struct):
    """The chance that the document of a pair is relevant to its query."""

    index: int
    score: float
    object: str = "score"


class ScoreAnswer(Struct):
    """The answer, in the order of the pairs."""

    id: str
    model: str | None
    data: list[PairScore]
    object: str = "list"
    usage: Usage = Usage()
    notes: list[str] | UnsetType = UNSET


class ScoreDialect(Dialect[ScoreQuestion]):
    """One query, or one for each document."""

    name = "score"
    body: type[Struct] = ScoreBody
    answered = ScoreAnswer
    summary = "The chance that documents are relevant to queries, pair by pair."

    def _question(self, body: Any) -> ScoreQuestion:
        documents = body.documents if isinstance(body.documents, list) else [body.documents]
        queries = body.query if isinstance(body.query, list) else [body.query] * len(documents)
        if len(queries) != len(documents):
            expected = f"expected one, or {len(documents)}"
            raise DataError(f"{expected}, found {len(queries)}", field="query")
        for query in body.query if isinstance(body.query, list) else [body.query]:
            checked_query(query)
        return ScoreQuestion(queries, documents, body.model, body.scores)

    def _answer(
        self, id: str, question: ScoreQuestion, ranked: tuple[list[float], list[str]]
    ) -> ScoreAnswer:
        scores, notes = ranked
        data = [PairScore(n, score) for n, score in enumerate(scores)]
        return ScoreAnswer(id, question.model, data, notes=notes or UNSET)


class VllmScoreDialect(ScoreDialect):
    """vLLM's format of the same."""

    name = "vllm score"
    body = TextPairsBody


SCORE, VLLM_SCORE = ScoreDialect(), VllmScoreDialect()
SCORE_DIALECTS = (SCORE, VLLM_SCORE)


def score_dialect_of(path: str, body: Body = b"{}") -> ScoreDialect:
    """The dialect of a request, by its keys.

    >>> score_dialect_of("/v1/score", b'{"text_1": "q", "text_2": "d"}').name
    'vllm score'
    """
    if not path.endswith("/score"):
        raise HTTPError(404, f"expected a path that ends in /score, found {path:.80}")
    return VLLM_SCORE if has_instead_of_documents("text_1", body) else SCORE


Requests: TypeAlias = Annotated[
    list[DocumentsBody],
    msgspec.Meta(description="Requests as for /v2/rerank; limits hold for all of them together."),
]


class BatchBody(Struct):
    """Rerank requests; ``model`` is that of those which name none."""

    requests: Requests
    model: str | None = None


class BatchAnswer(Struct):
    """The answer to each request, in their order."""

    id: str
    answers: list[DocumentsAnswer]


class BatchDialect(Dialect[Sequence[Question]]):
    """Requests and answers as Cohere's, in lists."""

    name = "batch"
    body = BatchBody
    answered = BatchAnswer
    summary = "Rank the documents of several requests."

    def _question(self, body: BatchBody) -> list[Question]:
        questions = []
        for n, request in enumerate(body.requests):
            try:
                question = COHERE._question(request)
            except DataError as error:
                raise DataError(str(error), field=f"request {n}") from None
            questions.append(replace(question, model=question.model or body.model))
        return questions

    def _answer(
        self, id: str, question: Sequence[Question], ranked: Sequence[Ranking]
    ) -> BatchAnswer:
        pairs = enumerate(zip(question, ranked))
        return BatchAnswer(id, [COHERE._answer(f"{id}-{n}", *pair) for n, pair in pairs])


BATCH = BatchDialect()


class Operation(Struct):
    """A request that changes what is served or stored: who sends it has a token."""

    def run(self, service: Service, fields: dict[str, Any]) -> Any:
        """Do it, if requests need a token; ``fields`` are for the log."""
        if not len(service.tokens):
            raise HTTPError(403, NO_TOKENS)
        return self._run(service, fields)

    def _run(self, service: Service, fields: dict[str, Any]) -> Any:
        raise NotImplementedError


class Rollback(Operation):
    """Serve an earlier version of a model again: a given one that is kept, or the one before."""

    model: str | None = None
    version: str | None = None

    def _run(self, service: Service, fields: dict[str, Any]) -> RollbackAnswer:
        name = service.models.resolve(self.model)
        before = service.models.by_name[name].version
        model = service.models.roll_back(name, self.version)
        fields |= {"model": name, "version": model.version, "before": before}
        service.metrics.reloads.labels(name, "rolled back").inc()
        return RollbackAnswer(name, model.version, before)


class RollbackAnswer(Struct):
    """The version that is served, and the one that was."""

    model: str
    version: str
    before: str


class GivenJudgement(Struct):
    """A judgement; ``label`` null takes back what the same judge has said before."""

    query: str
    document: str
    label: float | None
    who: str = ""
    why: str = ""
    shown: list[str] = []
    text: str | None = None
    qid: str | None = None


class Judging(Operation):
    """Judgements for the store of the server."""

    judgements: list[GivenJudgement]

    def _run(self, service: Service, fields: dict[str, Any]) -> JudgingAnswer:
        if service.judgements is None:
            raise HTTPError(404, "expected a server that keeps judgements (--judgements)")
        service.limits.check_documents(len(self.judgements))
        judgements = [Judgement.of(msgspec.to_builtins(given)) for given in self.judgements]
        fields["judgements"] = service.judgements.add(judgements)
        return JudgingAnswer(len(judgements))


class JudgingAnswer(Struct):
    """How many were stored."""

    stored: int


@dataclass(frozen=True)
class OperationDialect(Dialect[Operation]):
    """Bodies that are operations, and what each answers."""

    name: str
    body: type[Operation]
    answered: type[Struct]
    summary: str

    def _question(self, body: Operation) -> Operation:
        return body

    def _answer(self, id: str, question: Operation, ranked: Any) -> Any:
        return ranked


OPERATIONS: dict[str, Dialect[Any]] = {
    "/v1/rollback": OperationDialect(
        "rollback", Rollback, RollbackAnswer, "Serve an earlier version of a model again."
    ),
    "/v1/judgements": OperationDialect(
        "judgements", Judging, JudgingAnswer, "Add judgements to the store of the server."
    ),
}
NATIVE: dict[str, Dialect[Any]] = {"/v1/search": SEARCH, "/v1/batch": BATCH, **OPERATIONS}
