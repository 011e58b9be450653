"""The calls of a cross-encoder of sentence-transformers, for code that is written for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.integrations.retrieved import GivenReranker, reranker_of
from didyma.values import shown

TextPair: TypeAlias = "tuple[str, str] | list[str]"


class RerankEncoder:
    """Has `rank` and `predict` in the place of a ``CrossEncoder``; needs no other library.

    Scores of `rank` tell the order of one query's documents; those of `predict` are chances of
    relevance, which do not depend on the other pairs.

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

    @overload
    def predict(self, sentences: TextPair, **_: Any) -> float: ...

    @overload
    def predict(self, sentences: Sequence[TextPair], **_: Any) -> NDArray[np.float64]: ...

    def predict(self, sentences: Any, **_: Any) -> NDArray[np.float64] | float:
        """The chance of relevance of each pair of a query and a document, or of a single pair."""
        if len(sentences) > 0 and isinstance(sentences[0], str):
            return float(self.predict([sentences])[0])
        pairs = [_checked(pair, row) for row, pair in enumerate(sentences)]
        rows: dict[str, list[int]] = {}
        for row, (query, _document) in enumerate(pairs):
            rows.setdefault(query, []).append(row)
        scores = np.zeros(len(pairs))
        for query, of_query in rows.items():
            for one in self.reranker.rank(query, [pairs[row][1] for row in of_query]):
                if one.probability is None:
                    raise DataError(
                        "expected a reranker that learned from judgements, as others have no "
                        "chances of relevance: use rank"
                    )
                scores[of_query[one.index]] = one.probability
        return scores


def _checked(pair: Any, row: int) -> tuple[str, str]:
    is_list = isinstance(pair, Sequence | np.ndarray) and not isinstance(pair, str)
    if not is_list or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
        problem = f"expected a query and a document, found {shown(pair)}"
        raise DataError(problem, field=f"pair {row}")
    return str(pair[0]), str(pair[1])
