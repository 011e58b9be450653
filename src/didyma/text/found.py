"""A passage in the answer to a query."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from didyma.text.explanation import PassageExplanation

__all__ = ["FoundPassage"]


@dataclass(frozen=True)
class FoundPassage:
    """A passage that was found.

    Attributes
    ----------
    id, text, metadata
        What is known of it.
    score : float
        How likely it is to be relevant, if a reranker ranked; else that of BM25.
    raw : float
        The score by which passages are ranked.
    first_score, first_rank
        Score and place (from 1) in the order of BM25.
    index : int
        Its place among all passages.
    explanation : PassageExplanation or None
        What makes its score, if that was asked for.
    """

    id: str
    text: str
    score: float
    raw: float
    first_score: float
    first_rank: int
    index: int
    metadata: dict[str, Any] = field(default_factory=dict)
    explanation: PassageExplanation | None = None
