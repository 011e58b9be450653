"""Request and response formats: Cohere's, Jina's (which vLLM shares), TEI's, and of searches.

A dialect is known by the end of the path, since clients put their own ends behind any base
address, and where that is not enough by the keys of the body. Absent and null mean the same, and
unknown keys are ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.data.column_roles import NAMES, known_as
from didyma.data.passage import Passage
from didyma.errors import DataError
from didyma.serve.errors import DocumentsError, ErrorBody, HTTPError, TextsError

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranked

__all__ = [
    "COHERE",
    "DIALECTS",
    "JINA",
    "SEARCH",
    "TEI",
    "Body",
    "Dialect",
    "Question",
    "SearchQuestion",
    "dialect_of",
]

SPAN_THRESHOLD = 0.1  # Cohere's

Body: TypeAlias = bytes | bytearray

# A number without a fraction, which JSON may write with a point.
Count: TypeAlias = Annotated[
    float,
    msgspec.Meta(ge=0, multiple_of=1),
]
Query: TypeAlias = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"\S"})]
Document: TypeAlias = Annotated[
    dict[str, Any],
    msgspec.Meta(
        description="A text under one of these names, perhaps a title, and anything else. Of "
        "several names the first counts, in this order.",
        extra_json_schema={
            "anyOf": [
                {"properties": {name: {"type": "string"}}, "required": [name]}
                for name in NAMES["passage"]
            ]
        },
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

    ``given`` are the documents as they came, to be sent back; ``scores`` those of a first stage.
    """

    query: str
    documents: Sequence[Passage]
    given: Sequence[str | dict[str, Any]]
    model: str | None = None
    top_n: int | None = None
    scores: Sequence[float] | None = None
    return_documents: bool = False
    raw_scores: bool = False
    explain: bool = False
    spans: SpanRequest | None = None


@dataclass(frozen=True)
class SearchQuestion:
    """A search request; ``index`` and ``model`` are names, if there are any."""

    query: str
    top_n: int | None = None
    candidates: int | None = None
    index: str | None = None
    model: str | None = None
    explain: bool = False


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

    def answer(self, id: str, question: Q, ranked: Sequence[Ranked]) -> bytes:
        """Encode a ranking."""
        return msgspec.json.encode(self._answer(id, question, ranked))

    def refuse(self, error: HTTPError) -> bytes:
        """Encode an error."""
        return msgspec.json.encode(self.error.of(error))

    @abstractmethod
    def _question(self, body: Any) -> Q: ...

    @abstractmethod
    def _answer(self, id: str, question: Q, ranked: Sequence[Ranked]) -> Any: ...


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


class DocumentsItem(Struct):
    """A document in the answer to Cohere's and Jina's clients."""

    index: int
    relevance_score: float
    document: dict[str, Any] | UnsetType = UNSET
    relevant_spans: list[RelevantSpan] | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET


class Usage(Struct):
    """Tokens that are charged for: none are."""

    total_tokens: int = 0


class DocumentsAnswer(Struct):
    """The answer to Cohere's and Jina's clients, the best document first."""

    id: str
    model: str | None
    usage: Usage
    results: list[DocumentsItem]


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
            documents=_passages(body.documents),
            given=body.documents,
            model=body.model,
            top_n=_whole(body.top_n),
            scores=body.scores,
            return_documents=self.returns_documents if returned is None else returned,
            explain=bool(body.explain),
            spans=None if spans is None or spans.mode == "disabled" else spans,
        )

    def _answer(self, id: str, question: Question, ranked: Sequence[Ranked]) -> DocumentsAnswer:
        results = [
            DocumentsItem(
                one.index,
                one.score,
                _returned(question, one.index) if question.return_documents else UNSET,
                _relevant_spans(one, question.spans),
                _explanation(one, asked=question.explain),
            )
            for one in ranked
        ]
        return DocumentsAnswer(id, question.model, Usage(), results)


class TextsBody(Struct):
    """A request of TEI's clients, and what else this server understands."""

    query: Query
    texts: list[str]
    documents: None = None  # which would make it a request of Jina's
    model: str | None = None
    raw_scores: bool | None = None
    return_text: bool | None = None
    explain: bool | None = None
    scores: list[float] | None = None


class TextsItem(Struct):
    """A text in the answer to TEI's clients."""

    index: int
    score: float
    text: str | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET


class TextsDialect(Dialect[Question]):
    """That of TEI, whose clients want one entry for each text."""

    name = "tei"
    body = TextsBody
    answered = list[TextsItem]
    error = TextsError
    invalid = 422

    def _question(self, body: TextsBody) -> Question:
        return Question(
            query=_asked(body.query),
            documents=_passages(body.texts),
            given=body.texts,
            model=body.model,
            scores=body.scores,
            return_documents=bool(body.return_text),
            raw_scores=bool(body.raw_scores),
            explain=bool(body.explain),
        )

    def _answer(self, id: str, question: Question, ranked: Sequence[Ranked]) -> list[TextsItem]:
        return [
            TextsItem(
                one.index,
                one.raw if question.raw_scores else one.score,
                question.documents[one.index].text if question.return_documents else UNSET,
                _explanation(one, asked=question.explain),
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
    metadata: dict[str, Any] | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET


class SearchAnswer(Struct):
    """The answer, the best passage first; without a model it is in the order of BM25."""

    id: str
    index: str | None
    model: str | None
    results: list[SearchItem]


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
        )

    def _answer(self, id: str, question: SearchQuestion, ranked: Sequence[Ranked]) -> SearchAnswer:
        results = [
            SearchItem(
                str(one.id),
                one.text,
                one.score,
                FirstStagePlace(one.first_score or 0.0, one.first_rank or 0),
                one.metadata or UNSET,
                _explanation(one, asked=question.explain),
            )
            for one in ranked
        ]
        return SearchAnswer(id, question.index, question.model, results)


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


def _passages(documents: Sequence[str | dict[str, Any]]) -> list[Passage]:
    passages = []
    for n, document in enumerate(documents):
        try:
            passages.append(_passage(document))
        except DataError as error:
            raise DataError(error.problem, field=f"document {n}") from None
    return passages


def _passage(document: str | dict[str, Any]) -> Passage:
    """A document; of an object only its texts are looked at."""
    if isinstance(document, str):
        return Passage.of(document)
    texts = {name: value for name, value in document.items() if isinstance(value, str)}
    return Passage.of(texts if known_as("passage", texts) else document)


def _returned(question: Question, index: int) -> dict[str, Any]:
    """A document as it was given, and always with a text."""
    given = question.given[index]
    return {"text": question.documents[index].text, **({} if isinstance(given, str) else given)}


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
