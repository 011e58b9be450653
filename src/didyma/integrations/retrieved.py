"""Documents as other libraries retrieve them: texts, metadata, scores and embeddings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from didyma.data.field_kinds import FIRST_STAGE
from didyma.errors import DataError, LeftOutWarning, warn
from didyma.files import PathName
from didyma.ranking.ranked import Ranking
from didyma.text.text_reranker import TextReranker


class Retrieved(NamedTuple):
    """A document, its score by the retriever, and its embedding, if there are any."""

    text: str
    metadata: Mapping[str, Any] = {}
    score: float | None = None
    vector: Sequence[float] | None = None


def rank_retrieved(
    reranker: TextReranker,
    query: str,
    documents: Sequence[Retrieved],
    top_k: int | None = None,
    query_vector: Sequence[float] | None = None,
) -> Ranking:
    """Rank by all that the reranker was trained with.

    Metadata are the fields of the same names. The retriever's score is the first stage's if the
    reranker uses such, or else the signal that is one, if there is one and metadata do not have it.
    What the reranker looks at and documents lack is told as a warning.
    """
    schema = reranker.schema_
    names = {field.name for field in schema.of_role("text", "signal", "category", "vector")}
    vector = next((field.name for field in schema.of_role("vector")), None)
    signal = None if reranker.uses_scores else _score_signal(reranker, documents)
    scores = _scores(documents) if reranker.uses_scores else None
    records = []
    for document in documents:
        record = {name: value for name, value in document.metadata.items() if name in names}
        if signal is not None and document.score is not None:
            record[signal] = document.score
        if vector is not None and document.vector is not None:
            record.setdefault(vector, document.vector)
        records.append({**record, schema.main: document.text})
    question: Any = query
    if query_vector is not None and vector is not None:
        question = {"text": query, "vector": query_vector}
    ranked = reranker.rank(question, records, top_k, scores)
    for note in ranked.notes:
        warn(note, LeftOutWarning)
    return ranked


def _scores(documents: Sequence[Retrieved]) -> list[float]:
    scores = [document.score for document in documents]
    if None in scores:
        raise DataError(
            "expected the retriever's score, with which the reranker was trained, found none",
            field=f"document {scores.index(None)}",
        )
    return cast("list[float]", scores)


def _score_signal(reranker: TextReranker, documents: Sequence[Retrieved]) -> str | None:
    """The signal that is the score of a retrieval, if it is one and not in the metadata."""
    names = [
        field.name
        for field in reranker.schema_.of_role("signal")
        if field.kind == FIRST_STAGE
        and not any(field.name in document.metadata for document in documents)
    ]
    return names[0] if len(names) == 1 else None


GivenReranker: TypeAlias = TextReranker | PathName


def reranker_of(given: GivenReranker) -> TextReranker:
    """The reranker itself, or loaded from its file."""
    return TextReranker.load(given) if isinstance(given, (str, os.PathLike)) else given
