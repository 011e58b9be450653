"""The languages that clients speak: Cohere's, Jina's (which vLLM shares) and TEI's.

A dialect is known by the end of the path, since clients put their own ends behind any base
address, and where that is not enough by the keys of the body. Absent and null mean the same, and
unknown keys are ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.data.column_roles import NAMES, known_as
from didyma.data.passage import Passage
from didyma.errors import DataError
from didyma.serve.refusal import Refused

__all__ = [
    "COHERE",
    "DIALECTS",
    "JINA",
    "TEI",
    "Body",
    "Dialect",
    "Question",
    "RankedItem",
    "RelevantSpan",
    "SpanRequest",
    "dialect_of",
    "whole",
]


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
    """Which parts of a document to point at."""

    mode: str | None = None
    threshold: float | None = None
    max_spans: Count | None = None


def whole(count: float | None) -> int | None:
    """A count, where null and 0 mean that there is none."""
    return int(count) if count else None


class RelevantSpan(Struct):
    """Code points ``start`` to ``end`` of a document, the end excluded."""

    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Question:
    """What a request asks, in whatever dialect.

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
class RankedItem:
    """A document in the answer."""

    index: int
    score: float
    explanation: dict[str, Any] | UnsetType = UNSET
    spans: list[RelevantSpan] | UnsetType = UNSET


Q = TypeVar("Q")
I = TypeVar("I")  # noqa: E741


class Dialect(ABC, Generic[Q, I]):
    """How a request is read, and how an answer and a refusal are written.

    A body asks a question, and items answer it.
    """

    name: ClassVar[str]
    body: ClassVar[type[Struct]]
    answered: ClassVar[Any]
    refused: ClassVar[type[Struct]]
    invalid: ClassVar[int]  # status of what cannot be understood

    def read(self, body: Body) -> Q:
        """The question that a body asks."""
        try:
            return self._question(msgspec.json.decode(body, type=self.body))
        except msgspec.ValidationError as error:
            raise Refused(self.invalid, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(self.invalid, f"expected JSON: {error}") from None
        except DataError as error:
            raise Refused(self.invalid, str(error)) from None

    @abstractmethod
    def _question(self, body: Any) -> Q: ...

    @abstractmethod
    def answer(self, id: str, question: Q, items: Sequence[I]) -> bytes:
        """The body of an answer, the best document first."""

    @abstractmethod
    def refuse(self, refused: Refused) -> bytes:
        """The body of a refusal."""


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


class ErrorDetail(Struct):
    """The error as vLLM's clients read it."""

    message: str
    type: str
    code: int


class DocumentsError(Struct):
    """One error for all who look for it, be it under message, detail or error."""

    message: str
    detail: str
    error: ErrorDetail

    @classmethod
    def of(cls, refused: Refused) -> DocumentsError:
        """The error that a refusal is written as."""
        message = str(refused)
        kind = KINDS[refused.status].vllm
        return cls(message, message, ErrorDetail(message, kind, refused.status))


class ErrorKind(NamedTuple):
    """What vLLM and TEI call an error."""

    vllm: str
    tei: str


# Of each status that is answered.
KINDS = {
    400: ErrorKind("BadRequestError", "Validation"),
    401: ErrorKind("AuthenticationError", "Unauthorized"),
    403: ErrorKind("PermissionDeniedError", "Unauthorized"),
    404: ErrorKind("NotFoundError", "Validation"),
    405: ErrorKind("MethodNotAllowedError", "Validation"),
    408: ErrorKind("TimeoutError", "Validation"),
    413: ErrorKind("RequestEntityTooLargeError", "Validation"),
    422: ErrorKind("UnprocessableEntityError", "Validation"),
    429: ErrorKind("RateLimitError", "Overloaded"),
    500: ErrorKind("InternalServerError", "Backend"),
    503: ErrorKind("ServiceUnavailableError", "Overloaded"),
}


@dataclass(frozen=True)
class DocumentsDialect(Dialect[Question, RankedItem]):
    """That of Cohere and of Jina, which differ in whether documents are sent back unasked."""

    name: str  # type: ignore[misc]
    returns_documents: bool
    body = DocumentsBody
    answered = DocumentsAnswer
    refused = DocumentsError
    invalid = 400

    def _question(self, body: DocumentsBody) -> Question:
        returned = body.return_documents
        spans = body.relevant_spans
        return Question(
            query=_asked(body.query),
            documents=_passages(body.documents),
            given=body.documents,
            model=body.model,
            top_n=whole(body.top_n),
            scores=body.scores,
            return_documents=self.returns_documents if returned is None else returned,
            explain=bool(body.explain),
            spans=None if spans is None or spans.mode == "disabled" else spans,
        )

    def answer(self, id: str, question: Question, items: Sequence[RankedItem]) -> bytes:
        """The body of an answer: the model is called what it was asked for as."""
        results = [
            DocumentsItem(
                item.index,
                item.score,
                _returned(question, item.index) if question.return_documents else UNSET,
                item.spans,
                item.explanation,
            )
            for item in items
        ]
        return msgspec.json.encode(DocumentsAnswer(id, question.model, Usage(), results))

    def refuse(self, refused: Refused) -> bytes:
        """The body of a refusal."""
        return msgspec.json.encode(DocumentsError.of(refused))


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


class TextsError(Struct):
    """The error as TEI's clients read it."""

    error: str
    error_type: str


class TextsDialect(Dialect[Question, RankedItem]):
    """That of TEI, whose clients want one entry for each text."""

    name = "tei"
    body = TextsBody
    answered = list[TextsItem]
    refused = TextsError
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

    def answer(self, id: str, question: Question, items: Sequence[RankedItem]) -> bytes:
        """The body of an answer: a bare list."""
        return msgspec.json.encode(
            [
                TextsItem(
                    item.index,
                    item.score,
                    question.documents[item.index].text if question.return_documents else UNSET,
                    item.explanation,
                )
                for item in items
            ]
        )

    def refuse(self, refused: Refused) -> bytes:
        """The body of a refusal."""
        return msgspec.json.encode(TextsError(str(refused), KINDS[refused.status].tei))


COHERE = DocumentsDialect("cohere", returns_documents=False)
JINA = DocumentsDialect("jina", returns_documents=True)
TEI = TextsDialect()
DIALECTS = (COHERE, JINA, TEI)


class Keys(Struct):
    """Whether a body has texts or documents, without a look into them."""

    texts: msgspec.Raw | UnsetType = UNSET
    documents: msgspec.Raw | UnsetType = UNSET


def dialect_of(path: str, body: Body = b"{}") -> Dialect[Question, RankedItem]:
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
        raise Refused(404, f"expected a path that ends in /rerank, found {path:.80}")
    if b'"texts"' not in body:  # most often, and at once
        return JINA
    try:
        keys = msgspec.json.decode(body, type=Keys)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return JINA
    is_tei = keys.texts is not UNSET and keys.documents in (UNSET, msgspec.Raw(b"null"))
    return TEI if is_tei else JINA


def _asked(query: str) -> str:
    if not query.strip():
        raise DataError("expected a text, found an empty one", field="query")
    return query


def _passages(given: Sequence[str | dict[str, Any]]) -> list[Passage]:
    found = []
    for n, document in enumerate(given):
        try:
            found.append(_passage(document))
        except DataError as error:
            raise DataError(error.problem, field=f"document {n}") from None
    return found


def _passage(document: str | dict[str, Any]) -> Passage:
    """A document; of an object only its texts are looked at."""
    if isinstance(document, str):
        return Passage.of(document)
    texts = {name: value for name, value in document.items() if isinstance(value, str)}
    return Passage.of(texts if known_as("passage", texts) else document)


def _returned(question: Question, index: int) -> dict[str, Any]:
    """A document as it was given, and always with a text."""
    given = question.given[index]
    own = {} if isinstance(given, str) else given
    return {"text": question.documents[index].text, **own}
