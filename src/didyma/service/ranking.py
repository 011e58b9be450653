"""From a question to ranked items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from didyma.service.dialects import Question, RankedItem, RelevantSpan, SpanRequest

if TYPE_CHECKING:
    from didyma.rerank.explanation import MatchedSpan
    from didyma.rerank.text import TextReranker

__all__ = ["rank", "relevant_spans"]


def rank(reranker: TextReranker, question: Question) -> list[RankedItem]:
    """The documents of a question, the best first."""
    texts = [document.text for document in question.documents]
    if not texts:
        return []
    wanted = len(texts) if question.top_n is None else min(question.top_n, len(texts))
    ranked = reranker.rank(question.query, texts, top_k=wanted, scores=question.scores)
    if not question.explain and question.spans is None:
        return [
            RankedItem(one.index, one.raw if question.raw_scores else one.score) for one in ranked
        ]
    explanations = reranker.explain(question.query, texts, scores=question.scores)
    return [
        RankedItem(
            one.index,
            one.raw if question.raw_scores else one.score,
            explanations[one.index].to_dict() if question.explain else UNSET,
            UNSET
            if question.spans is None
            else relevant_spans(explanations[one.index].spans, question.spans),
        )
        for one in ranked
    ]


def relevant_spans(spans: Sequence[MatchedSpan], asked: SpanRequest) -> list[RelevantSpan]:
    """The spans that match most, in the order of the text.

    The score of a span is the share of the query's words, among those that the document has, that
    it matches.
    """
    words = {word for span in spans for word in span.matched}
    found = [
        RelevantSpan(span.start, span.stop, len(set(span.matched)) / len(words)) for span in spans
    ]
    found = [span for span in found if span.score >= (asked.threshold or 0.0)]
    found.sort(key=lambda span: -span.score)
    kept = found if asked.max_spans is None else found[: max(asked.max_spans, 0)]
    return sorted(kept, key=lambda span: span.start)
