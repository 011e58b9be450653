"""Request and response formats: Cohere's, Jina's (which vLLM shares), TEI's, and of searches.

A dialect is known by the end of the path, since clients put their own ends behind any base
address, and where that is not enough by the keys of the body. Absent and null mean the same, and
unknown keys of a request are ignored; what documents have that the model does not know is noted.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.errors import DataError
from didyma.serve.documents import GivenDocument
from didyma.serve.errors import DocumentsError, ErrorBody, HTTPError, TextsError
from didyma.serve.steps import Then, effects_of, steps_of

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranked, Ranking
    from didyma.text.steps import Step

SPAN_THRESHOLD = 0.1  # Cohere's
NOTES = "x-didyma-notes"  # a header, where an answer has no room for notes

Body: TypeAlias = bytes | bytearray

# A number without a fraction, which JSON may write with a point.
Count: TypeAlias = Annotated[
    float,
    msgspec.Meta(ge=0, multiple_of=1),
]
Query: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
DOCUMENT = (
    "A text under one of these names, perhaps a title, and anything else: text fields, signals, a "
    "vector, an id. Of several names the first counts, in this order."
)
Document: TypeAlias = Annotated[dict[str, Any], msgspec.Meta(description=DOCUMENT)]
RankFields: TypeAlias = Annotated[
    list[str],
    msgspec.Meta(
        min_length=1, description="Fields of documents that are the text; no other text counts."
    ),
]


class SpanRequest(Struct):
    """Which spans of a document to return."""

    mode: str | None = None
    threshold: float | None = None
    max_spans: Count | None = None


class RelevantSpan(Struct):
    """Code points ``start`` to ``end`` of a document, the end excluded."""

    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Question:
    """A rerank request, in whatever dialect.

    ``scores`` are those of a first stage, ``rank_fields`` the fields that are the text, ``then``
    steps after ranking, if they are not those of the server.
    """

    query: str
    documents: Sequence[GivenDocument]
    model: str | None = None
    top_n: int | None = None
    scores: Sequence[float] | None = None
    query_vector: Sequence[float] | None = None
    rank_fields: Sequence[str] | None = None
    return_documents: bool = False
    raw_scores: bool = False
    explain: bool = False
    spans: SpanRequest | None = None
    then: Sequence[Step] | None = None


@dataclass(frozen=True)
class SearchQuestion:
    """A search request; ``index`` and ``model`` are names, if there are any."""

    query: str
    top_n: int | None = None
    candidates: int | None = None
    index: str | None = None
    model: str | None = None
    explain: bool = False
    then: Sequence[Step] | None = None


Q = TypeVar("Q")


class Dialect(ABC, Generic[Q]):
    """Decodes request bodies, and encodes rankings and errors."""

    name: ClassVar[str]
    body: ClassVar[type[Struct]]
    answered: ClassVar[Any]
    error: ClassVar[type[ErrorBody]]
    invalid: ClassVar[int]  # status of a request that cannot be understood

    def read(self, body: Body) -> Q:
        """Decode and check the body of a request."""
        try:
            return self._question(msgspec.json.decode(body, type=self.body))
        except (msgspec.ValidationError, DataError) as error:
            raise HTTPError(self.invalid, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HTTPError(self.invalid, f"expected JSON: {error}") from None

    def answer(self, id: str, question: Q, ranked: Any) -> bytes:
        """Encode a ranking."""
        return msgspec.json.encode(self._answer(id, question, ranked))

    def headers(self, ranked: Any) -> dict[str, str]:
        """Headers of an answer."""
        return {}

    def refuse(self, error: HTTPError) -> bytes:
        """Encode an error."""
        return msgspec.json.encode(self.error.of(error))

    @abstractmethod
    def _question(self, body: Any) -> Q: ...

    @abstractmethod
    def _answer(self, id: str, question: Q, ranked: Any) -> Any: ...


class DocumentsBody(Struct):
    """A request of Cohere's and Jina's clients, and what else this server understands."""

    query: Query
    documents: list[str | Document]
    model: str | None = None
    top_n: Count | None = None
    return_documents: bool | None = None
    relevant_spans: SpanRequest | None = None
    explain: bool | None = None
    scores: list[float] | None = None
    query_vector: list[float] | None = None
    rank_fields: RankFields | None = None
    then: Then | None = None


class DocumentsItem(Struct):
    """A document in the answer to Cohere's and Jina's clients."""

    index: int
    relevance_score: float
    probability: float | UnsetType = UNSET
    document: dict[str, Any] | UnsetType = UNSET
    relevant_spans: list[RelevantSpan] | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET
    steps: list[dict[str, Any]] | UnsetType = UNSET


class Usage(Struct, frozen=True):
    """Tokens that are charged for: none are."""

    total_tokens: int = 0


class DocumentsAnswer(Struct):
    """The answer to Cohere's and Jina's clients, the best document first.

    Notes say what documents lacked, and what they had that the model does not know.
    """

    id: str
    model: str | None
    usage: Usage
    results: list[DocumentsItem]
    notes: list[str] | UnsetType = UNSET


@dataclass(frozen=True)
class DocumentsDialect(Dialect[Question]):
    """That of Cohere and of Jina, which differ in whether documents are sent back unasked."""

    name: str  # type: ignore[misc]
    returns_documents: bool
    body = DocumentsBody
    answered = DocumentsAnswer
    error = DocumentsError
    invalid = 400

    def _question(self, body: DocumentsBody) -> Question:
        returned = body.return_documents
        spans = body.relevant_spans
        return Question(
            query=_asked(body.query),
            documents=body.documents,
            model=body.model,
            top_n=_whole(body.top_n),
            scores=body.scores,
            query_vector=body.query_vector,
            rank_fields=body.rank_fields,
            return_documents=self.returns_documents if returned is None else returned,
            explain=bool(body.explain),
            spans=None if spans is None or spans.mode == "disabled" else spans,
            then=steps_of(body.then),
        )

    def _answer(self, id: str, question: Question, ranked: Ranking) -> DocumentsAnswer:
        results = [
            DocumentsItem(
                one.index,
                one.score,
                probability_of(one),
                _returned(question, one) if question.return_documents else UNSET,
                _relevant_spans(one, question.spans),
                _explanation(one, asked=question.explain),
                effects_of(one),
            )
            for one in ranked
        ]
        notes = list(ranked.notes) or UNSET
        return DocumentsAnswer(id, question.model, Usage(), results, notes)


class TextsBody(Struct):
    """A request of TEI's clients, and what else this server understands."""

    query: Query
    texts: list[str | Document]
    documents: None = None  # which would make it a request of Jina's
    model: str | None = None
    raw_scores: bool | None = None
    return_text: bool | None = None
    explain: bool | None = None
    scores: list[float] | None = None
    query_vector: list[float] | None = None
    then: Then | None = None


class TextsItem(Struct):
    """A text in the answer to TEI's clients."""

    index: int
    score: float
    probability: float | UnsetType = UNSET
    text: str | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET
    steps: list[dict[str, Any]] | UnsetType = UNSET


class TextsDialect(Dialect[Question]):
    """That of TEI, whose clients want one entry for each text; notes are in a header."""

    name = "tei"
    body = TextsBody
    answered = list[TextsItem]
    error = TextsError
    invalid = 422

    def _question(self, body: TextsBody) -> Question:
        return Question(
            query=_asked(body.query),
            documents=body.texts,
            model=body.model,
            scores=body.scores,
            query_vector=body.query_vector,
            return_documents=bool(body.return_text),
            raw_scores=bool(body.raw_scores),
            explain=bool(body.explain),
            then=steps_of(body.then),
        )

    def headers(self, ranked: Ranking) -> dict[str, str]:
        """The notes as JSON."""
        return {NOTES: json.dumps(ranked.notes)} if ranked.notes else {}

    def _answer(self, id: str, question: Question, ranked: Ranking) -> list[TextsItem]:
        return [
            TextsItem(
                one.index,
                one.raw if question.raw_scores else one.score,
                probability_of(one),
                one.text if question.return_documents else UNSET,
                _explanation(one, asked=question.explain),
                effects_of(one),
            )
            for one in ranked
        ]


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


class SearchItem(Struct):
    """A passage in the answer."""

    id: str
    text: str
    relevance_score: float
    first_stage: FirstStagePlace
    probability: float | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET
    steps: list[dict[str, Any]] | UnsetType = UNSET


class SearchAnswer(Struct):
    """The answer, the best passage first; without a model it is in the order of BM25."""

    id: str
    index: str | None
    model: str | None
    results: list[SearchItem]
    notes: list[str] | UnsetType = UNSET


class SearchDialect(Dialect[SearchQuestion]):
    """This server's own."""

    name = "search"
    body = SearchBody
    answered = SearchAnswer
    error = DocumentsError
    invalid = 400

    def _question(self, body: SearchBody) -> SearchQuestion:
        return SearchQuestion(
            query=body.query,
            top_n=_whole(body.top_n),
            candidates=_whole(body.candidates),
            index=body.index,
            model=body.model,
            explain=bool(body.explain),
            then=steps_of(body.then),
        )

    def _answer(self, id: str, question: SearchQuestion, ranked: Ranking) -> SearchAnswer:
        results = [
            SearchItem(
                str(one.id),
                one.text,
                one.score,
                FirstStagePlace(one.first_score or 0.0, one.first_rank or 0),
                probability_of(one),
                one.metadata or UNSET,
                _explanation(one, asked=question.explain),
                effects_of(one),
            )
            for one in ranked
        ]
        notes = list(ranked.notes) or UNSET
        return SearchAnswer(id, question.index, question.model, results, notes)


COHERE = DocumentsDialect("cohere", returns_documents=False)
JINA = DocumentsDialect("jina", returns_documents=True)
TEI = TextsDialect()
SEARCH = SearchDialect()
DIALECTS = (COHERE, JINA, TEI)


class Keys(Struct):
    """Whether a body has texts or documents, without a look into them."""

    texts: msgspec.Raw | UnsetType = UNSET
    documents: msgspec.Raw | UnsetType = UNSET


def dialect_of(path: str, body: Body = b"{}") -> Dialect[Question]:
    """The dialect of a request; without a body, or with a damaged one, what the path says.

    >>> dialect_of("/any/base/v2/rerank").name
    'cohere'
    >>> dialect_of("/v1/rerank", b'{"query": "q", "documents": []}').name
    'jina'
    >>> dialect_of("/rerank", b'{"query": "q", "texts": []}').name
    'tei'
    """
    if path.endswith("/v2/rerank"):
        return COHERE
    if not path.endswith("/rerank"):
        raise HTTPError(404, f"expected a path that ends in /rerank, found {path:.80}")
    if b'"texts"' not in body:  # most often, and at once
        return JINA
    try:
        keys = msgspec.json.decode(body, type=Keys)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return JINA
    is_tei = keys.texts is not UNSET and keys.documents in (UNSET, msgspec.Raw(b"null"))
    return TEI if is_tei else JINA


def _whole(count: float | None) -> int | None:
    """A count, where null and 0 mean that there is none."""
    return int(count) if count else None


def _asked(query: str) -> str:
    if not query.strip():
        raise DataError("expected a text, found an empty one", field="query")
    return query


def _returned(question: Question, one: Ranked) -> dict[str, Any]:
    """A document as it was given, and always with a text."""
    given = question.documents[one.index]
    return {"text": one.text, **({} if isinstance(given, str) else given)}


def probability_of(one: Ranked) -> float | UnsetType:
    """The chance that a document is relevant, where the model tells it."""
    return UNSET if one.probability is None else one.probability


def _explanation(one: Ranked, *, asked: bool) -> dict[str, Any] | UnsetType:
    return one.explanation.to_dict() if asked and one.explanation is not None else UNSET


def _relevant_spans(one: Ranked, asked: SpanRequest | None) -> list[RelevantSpan] | UnsetType:
    """The spans that match most, in the order of the text.

    The score of a span is the number of the query's words that it matches, as a share of those
    that the best span of the document does.
    """
    if asked is None or one.explanation is None:
        return UNSET
    matched = one.explanation.spans
    most = max((len(span.matched) for span in matched), default=1)
    spans = [RelevantSpan(span.start, span.stop, len(span.matched) / most) for span in matched]
    least = SPAN_THRESHOLD if asked.threshold is None else asked.threshold
    spans = sorted((s for s in spans if s.score >= least), key=lambda span: -span.score)
    best = spans if asked.max_spans is None else spans[: int(asked.max_spans)]
    return sorted(best, key=lambda span: span.start)
