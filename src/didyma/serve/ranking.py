"""From a question to ranked items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from didyma.errors import DataError
from didyma.serve.dialects import Question, RankedItem, RelevantSpan, SpanRequest

if TYPE_CHECKING:
    from didyma.text.explanation import MatchedSpan
    from didyma.text.text_reranker import TextReranker

__all__ = ["rank", "relevant_spans"]

THRESHOLD = 0.1  # Cohere's, for spans


def rank(reranker: TextReranker, question: Question) -> list[RankedItem]:
    """The documents of a question, the best first."""
    texts = [document.text for document in question.documents]
    _check_scores(question, uses_scores=reranker.uses_scores)
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


def _check_scores(question: Question, *, uses_scores: bool) -> None:
    """Refuse scores of a first stage that the model knows none of, and the reverse."""
    scores, expected = question.scores, len(question.documents)
    if scores is None and uses_scores:
        raise DataError("expected the first stage's scores, found none", field="scores")
    if scores is not None and not uses_scores:
        raise DataError(
            "the model was trained without a first stage's: leave them out", field="scores"
        )
    if scores is not None and len(scores) != expected:
        raise DataError(f"expected {expected}, found {len(scores)}", field="scores")


def relevant_spans(spans: Sequence[MatchedSpan], asked: SpanRequest) -> list[RelevantSpan]:
    """The spans that match most, in the order of the text.

    The score of a span is the number of the query's words that it matches, as a share of those
    that the best span of the document does.
    """
    most = max((len(span.matched) for span in spans), default=1)
    found = [RelevantSpan(span.start, span.stop, len(span.matched) / most) for span in spans]
    least = THRESHOLD if asked.threshold is None else asked.threshold
    found = [span for span in found if span.score >= least]
    found.sort(key=lambda span: -span.score)
    kept = found if asked.max_spans is None else found[: int(asked.max_spans)]
    return sorted(kept, key=lambda span: span.start)
