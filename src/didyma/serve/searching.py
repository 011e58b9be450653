"""What is asked of an index, and how that is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from didyma.serve.dialects import Count, Dialect, DocumentsError, whole
from didyma.serve.refusal import Refused

if TYPE_CHECKING:
    from didyma.text.found import FoundPassage

__all__ = ["CANDIDATES", "SEARCH", "TOP_N", "SearchQuestion"]

TOP_N, CANDIDATES = 10, 100  # unless a request or the limits say otherwise


@dataclass(frozen=True)
class SearchQuestion:
    """What a request asks; ``index`` and ``model`` are names, if there are any."""

    query: str
    top_n: int | None = None
    candidates: int | None = None
    index: str | None = None
    model: str | None = None
    explain: bool = False


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


class SearchDialect(Dialect[SearchQuestion, "FoundPassage"]):
    """This server's own."""

    name = "search"
    body = SearchBody
    answered = SearchAnswer
    refused = DocumentsError
    invalid = 400

    def _question(self, body: SearchBody) -> SearchQuestion:
        return SearchQuestion(
            query=body.query,
            top_n=whole(body.top_n),
            candidates=whole(body.candidates),
            index=body.index,
            model=body.model,
            explain=bool(body.explain),
        )

    def answer(self, id: str, question: SearchQuestion, items: Sequence[FoundPassage]) -> bytes:
        """The body of an answer, with the names of what has answered."""
        results = [
            SearchItem(
                item.id,
                item.text,
                item.score,
                FirstStagePlace(item.first_score, item.first_rank),
                item.metadata or UNSET,
                UNSET if item.explanation is None else item.explanation.to_dict(),
            )
            for item in items
        ]
        return msgspec.json.encode(SearchAnswer(id, question.index, question.model, results))

    def refuse(self, refused: Refused) -> bytes:
        """The body of a refusal."""
        return msgspec.json.encode(DocumentsError.of(refused))


SEARCH = SearchDialect()
