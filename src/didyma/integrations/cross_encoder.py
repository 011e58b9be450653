"""The calls of a cross-encoder of sentence-transformers, for code that is written for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.integrations.loading import GivenReranker, reranker_of

__all__ = ["RerankEncoder"]


class RerankEncoder:
    """Has `rank` and `predict` in the place of a ``CrossEncoder``; needs no other library.

    Scores are chances of relevance.

    Parameters
    ----------
    reranker : TextReranker or path
    """

    def __init__(self, reranker: GivenReranker) -> None:
        self.reranker = reranker_of(reranker)

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        return_documents: bool = False,
        **_: Any,
    ) -> list[dict[str, Any]]:
        """Dictionaries with ``corpus_id``, ``score`` and, if wanted, ``text``, the best first.

        What else a ``CrossEncoder`` takes, such as a batch size, has no meaning here.
        """
        return [
            {"corpus_id": one.index, "score": one.score}
            | ({"text": one.text} if return_documents else {})
            for one in self.reranker.rank(query, documents, top_k=top_k)
        ]

    def predict(self, sentences: Sequence[tuple[str, str]], **_: Any) -> NDArray[np.float64]:
        """The score of each pair of a query and a document."""
        rows: dict[str, list[int]] = {}
        for row, (query, _document) in enumerate(sentences):
            rows.setdefault(query, []).append(row)
        scores = np.zeros(len(sentences))
        for query, own in rows.items():
            for one in self.reranker.rank(query, [sentences[row][1] for row in own]):
                scores[own[one.index]] = one.score
        return scores
