"""Request and response formats: Cohere's, Jina's (which vLLM shares) and TEI's.

A dialect is known by the end of the path, since clients put their own ends behind any base
address, and where that is not enough by the keys of the body. Absent and null mean the same, and
unknown keys of a request are ignored; what documents have that the model does not know is noted.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.errors import DataError
from didyma.serve.documents import GivenDocument
from didyma.serve.responses import DocumentsError, ErrorBody, HTTPError, TextsError
from didyma.text.steps import Boost, Diversity, Recency, Step

if TYPE_CHECKING:
    from didyma.ranking.ranked import Ranked, Ranking

MOST_STEPS = 16  # after ranking, of a request
SPAN_THRESHOLD = 0.1  # Cohere's
NOTES = "x-didyma-notes"  # a header, where an answer has no room for notes

Body: TypeAlias = bytes | bytearray

# A number without a fraction, which JSON may write with a point.
Count: TypeAlias = Annotated[float, msgspec.Meta(ge=0, multiple_of=1)]
Ignored: TypeAlias = Annotated[
    float,
    msgspec.Meta(ge=1, multiple_of=1, description="Cohere's; nothing is cut off, whatever it is."),
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


class DiversityBody(Struct, tag="diversity", tag_field="step"):
    """Documents that resemble better ones come later."""

    weight: float
    by: str | None = None


class RecencyBody(Struct, tag="recency", tag_field="step"):
    """Documents lose by their age."""

    field: str
    half_life: str
    weight: float = 0.5


class BoostBody(Struct, tag="boost", tag_field="step"):
    """Documents whose field has a value gain, or lose."""

    field: str
    value: str | float | bool
    amount: float


StepBody: TypeAlias = DiversityBody | RecencyBody | BoostBody
STEPS = {DiversityBody: Diversity, RecencyBody: Recency, BoostBody: Boost}
Then: TypeAlias = Annotated[
    list[StepBody],
    msgspec.Meta(
        max_length=MOST_STEPS,
        description="Steps after ranking, diversity last; unless given, those of the server.",
    ),
]


def steps_of(then: Sequence[StepBody]) -> list[Step]:
    """Steps that a request asks for."""
    steps: list[Step] = []
    for n, body in enumerate(then):
        try:
            steps.append(STEPS[type(body)](**msgspec.structs.asdict(body)))
        except DataError as error:
            raise DataError(error.problem, field=f"then {n}, {error.field}") from None
    return steps


class SpanRequest(Struct):
    """Which spans of a document to return."""

    mode: Literal["auto", "disabled", "enabled"] | None = None
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


Q = TypeVar("Q")


KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a text",
}
MISSING = re.compile(r"Object missing required field `([^`]+)`")
WRONG = re.compile(r"Expected `([^`]+)`(?: (.*?))?(?:, got `([^`]+)`)?")
OTHER = re.compile(r"Invalid (?:enum )?value (.*)", re.DOTALL)
CHOICES = {"step": "boost, diversity or recency", "mode": "auto, disabled or enabled"}
BOUNDS = {
    "that's a multiple of 1.0": "without a fraction",
    ">= 0.0": "from 0 on",
    ">= 1.0": "from 1 on",
    "of length >= 1": "that is not empty",
    f"of length <= {MOST_STEPS}": f"of at most {MOST_STEPS}",
}


def explained(error: msgspec.ValidationError) -> str:
    """What is wrong with the values of a request, in the words of this library.

    >>> explained(msgspec.ValidationError("Expected `str`, got `int` - at `$.documents[0]`"))
    'documents[0]: expected a text, found a whole number'
    """
    problem, _, place = str(error).partition(" - at `$")
    place = place.removesuffix("`").removeprefix(".")
    if missing := MISSING.fullmatch(problem):
        place = f"{place}.{missing[1]}" if place else missing[1]
        problem = "expected it, found nothing"
    elif wrong := WRONG.fullmatch(problem):
        kinds = [KINDS.get(kind, kind) for kind in wrong[1].split(" | ")]
        bound = BOUNDS.get(wrong[2] or "", wrong[2])
        found = KINDS.get(wrong[3] or "", wrong[3])
        problem = "expected " + " or ".join(kinds)
        problem += f" {bound}" * bool(bound) + f", found {found}" * bool(found)
    elif other := OTHER.fullmatch(problem):
        choices = CHOICES.get(place.rpartition(".")[2], "another value")
        problem = f"expected {choices}, found {other[1]:.40}"
    else:
        problem = problem[:1].lower() + problem[1:]
    return f"{place}: {problem}" if place else problem


class Dialect(ABC, Generic[Q]):
    """Decodes request bodies, and encodes rankings and errors."""

    name: str
    body: type[Struct]
    answered: Any
    summary = "Rank documents by their relevance to a query."
    error: type[ErrorBody] = DocumentsError
    invalid = 400  # status of a request that cannot be understood

    def read(self, body: Body) -> Q:
        """Decode and check the body of a request."""
        try:
            return self._question(msgspec.json.decode(body, type=self.body))
        except msgspec.ValidationError as error:
            raise HTTPError(self.invalid, explained(error)) from None
        except DataError as error:
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


class RankBody(Struct, kw_only=True):
    """What requests to rank have in common."""

    query: Query
    model: str | None = None
    explain: bool | None = None
    scores: list[float] | None = None
    query_vector: list[float] | None = None
    then: Then | None = None

    def question(self, documents: Sequence[GivenDocument], **more: Any) -> Question:
        """The request to rank these documents."""
        return Question(
            query=checked_query(self.query),
            documents=documents,
            model=self.model,
            scores=self.scores,
            query_vector=self.query_vector,
            explain=bool(self.explain),
            then=None if self.then is None else steps_of(self.then),
            **more,
        )


class RankedItem(Struct, kw_only=True):
    """What answers tell of a document, beside its place and score."""

    probability: float | UnsetType = UNSET
    explanation: dict[str, Any] | UnsetType = UNSET
    steps: list[dict[str, Any]] | UnsetType = UNSET


def ranked_item(ranked: Ranked, *, explain: bool) -> dict[str, Any]:
    """The fields of a `RankedItem`, where the model tells them."""
    reason = ranked.explanation if explain else None
    return {
        "probability": UNSET if ranked.probability is None else ranked.probability,
        "explanation": UNSET if reason is None else reason.to_dict(),
        "steps": [effect._asdict() for effect in ranked.steps] or UNSET,
    }


class DocumentsBody(RankBody, kw_only=True):
    """A request of Cohere's and Jina's clients, and what else this server understands."""

    documents: list[str | Document]
    top_n: Count | None = None
    return_documents: bool | None = None
    relevant_spans: SpanRequest | None = None
    max_tokens_per_doc: Ignored | None = None
    rank_fields: RankFields | None = None


class DocumentsItem(RankedItem):
    """A document in the answer to Cohere's and Jina's clients."""

    index: int
    relevance_score: float
    document: dict[str, Any] | UnsetType = UNSET
    relevant_spans: list[RelevantSpan] | UnsetType = UNSET


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
    """Cohere's and Jina's formats, which differ in whether documents are returned by default."""

    name: str
    returns_documents: bool
    body = DocumentsBody
    answered = DocumentsAnswer

    def _question(self, body: DocumentsBody) -> Question:
        returned, spans = body.return_documents, body.relevant_spans
        return body.question(
            body.documents,
            top_n=whole(body.top_n),
            rank_fields=body.rank_fields,
            return_documents=self.returns_documents if returned is None else returned,
            spans=None if spans is None or spans.mode == "disabled" else spans,
        )

    def _answer(self, id: str, question: Question, ranked: Ranking) -> DocumentsAnswer:
        results = [
            DocumentsItem(
                one.index,
                one.score,
                _returned(question, one) if question.return_documents else UNSET,
                _relevant_spans(one, question.spans),
                **ranked_item(one, explain=question.explain),
            )
            for one in ranked
        ]
        notes = list(ranked.notes) or UNSET
        return DocumentsAnswer(id, question.model, Usage(), results, notes)


class TextsBody(RankBody, kw_only=True):
    """A request of TEI's clients, and what else this server understands."""

    texts: list[str | Document]
    documents: None = None  # which would make it a request of Jina's
    raw_scores: bool | None = None
    return_text: bool | None = None


class TextsItem(RankedItem):
    """A text in the answer to TEI's clients."""

    index: int
    score: float
    text: str | UnsetType = UNSET


class TextsDialect(Dialect[Question]):
    """TEI's format, whose answers are lists with one entry for each text; notes are in a header."""

    name = "tei"
    body = TextsBody
    answered = list[TextsItem]
    error = TextsError
    invalid = 422

    def _question(self, body: TextsBody) -> Question:
        return body.question(
            body.texts,
            return_documents=bool(body.return_text),
            raw_scores=bool(body.raw_scores),
        )

    def headers(self, ranked: Ranking) -> dict[str, str]:
        """The notes as JSON."""
        return {NOTES: json.dumps(ranked.notes)} if ranked.notes else {}

    def _answer(self, id: str, question: Question, ranked: Ranking) -> list[TextsItem]:
        return [
            TextsItem(
                one.index,
                one.raw if question.raw_scores else one.score,
                one.text if question.return_documents else UNSET,
                **ranked_item(one, explain=question.explain),
            )
            for one in ranked
        ]


COHERE = DocumentsDialect("cohere", returns_documents=False)
JINA = DocumentsDialect("jina", returns_documents=True)
TEI = TextsDialect()
DIALECTS = (COHERE, JINA, TEI)


class Keys(Struct):
    """Which of these keys a body has, without a look into what they hold."""

    texts: msgspec.Raw | UnsetType = UNSET
    text_1: msgspec.Raw | UnsetType = UNSET
    documents: msgspec.Raw | UnsetType = UNSET


def has_instead_of_documents(key: str, body: Body) -> bool:
    """Whether a body has a key, and no documents."""
    if f'"{key}"'.encode() not in body:  # most often, and at once
        return False
    try:
        keys = msgspec.json.decode(body, type=Keys)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return getattr(keys, key) is not UNSET and keys.documents in (UNSET, msgspec.Raw(b"null"))


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
    return TEI if has_instead_of_documents("texts", body) else JINA


def whole(count: float | None) -> int | None:
    """A count, where null and 0 mean that there is none."""
    return int(count) if count else None


def checked_query(query: str) -> str:
    """The query, which must not be empty."""
    if not query.strip():
        raise DataError("expected a text, found an empty one", field="query")
    return query


def _returned(question: Question, one: Ranked) -> dict[str, Any]:
    """A document as it was given, and always with a text."""
    document = question.documents[one.index]
    return {"text": one.text, **({} if isinstance(document, str) else document)}


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
