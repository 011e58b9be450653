"""Requests for chances of relevance of pairs: this server's own, and vLLM's ``/score``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from didyma.errors import DataError
from didyma.serve.dialects import Body, Dialect, Document, Query, Usage
from didyma.serve.documents import GivenDocument
from didyma.serve.errors import DocumentsError, HTTPError

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

    text_1: Queries
    text_2: Documents
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
    """This server's own."""

    name = "score"
    body: ClassVar[type[Struct]] = ScoreBody
    answered = ScoreAnswer
    error = DocumentsError
    invalid = 400

    def _question(self, body: Any) -> ScoreQuestion:
        return _pairs(body.query, body.documents, body.model, body.scores)

    def _answer(
        self, id: str, question: ScoreQuestion, ranked: tuple[list[float], list[str]]
    ) -> ScoreAnswer:
        scores, notes = ranked
        data = [PairScore(n, score) for n, score in enumerate(scores)]
        return ScoreAnswer(id, question.model, data, notes=notes or UNSET)


class VllmScoreDialect(ScoreDialect):
    """That of vLLM."""

    name = "vllm score"
    body = TextPairsBody

    def _question(self, body: Any) -> ScoreQuestion:
        return _pairs(body.text_1, body.text_2, body.model, body.scores)


SCORE, VLLM_SCORE = ScoreDialect(), VllmScoreDialect()
SCORE_DIALECTS = (SCORE, VLLM_SCORE)


def score_dialect_of(path: str, body: Body = b"{}") -> ScoreDialect:
    """The dialect of a request, by its keys.

    >>> score_dialect_of("/v1/score", b'{"text_1": "q", "text_2": "d"}').name
    'vllm score'
    """
    if not path.endswith("/score"):
        raise HTTPError(404, f"expected a path that ends in /score, found {path:.80}")
    return VLLM_SCORE if b'"text_1"' in body and b'"documents"' not in body else SCORE


def _pairs(
    query: str | list[str], documents: Any, model: str | None, scores: list[float] | None
) -> ScoreQuestion:
    listed = documents if isinstance(documents, list) else [documents]
    queries = query if isinstance(query, list) else [query] * len(listed)
    if len(queries) != len(listed):
        raise DataError(f"expected one, or {len(listed)}, found {len(queries)}", field="query")
    for text in queries if isinstance(query, list) else [query]:
        if not text.strip():
            raise DataError("expected a text, found an empty one", field="query")
    return ScoreQuestion(queries, listed, model, scores)
