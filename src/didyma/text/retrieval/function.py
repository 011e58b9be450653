"""Any function as a search engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from didyma.data.passage import passages_of
from didyma.errors import DataError
from didyma.text.retrieval.search_engine import Retrieved, SearchEngine


class FunctionEngine(SearchEngine):
    """A function of a query and a number that gives passages, best first.

    A passage is a text, or a mapping with a text and, in the field ``score``, its score. Where
    scores are missing, the order is all that is known: scores are 1, 1/2, 1/3, …

    >>> engine = FunctionEngine(lambda query, k: ["Jane Austen.", {"text": "Goethe.", "id": 7}][:k])
    >>> [(found.id, found.text, found.score) for found in engine.search("who?")]
    [(None, 'Jane Austen.', 1.0), ('7', 'Goethe.', 0.5)]
    """

    def __init__(self, function: Callable[[str, int], Iterable[Any]]) -> None:
        self.function = function

    def retrieve(self, query: str, k: int) -> Retrieved:
        """What the function gives."""
        passages = list(passages_of(self.function(query, k)))[:k]
        told = [passage.metadata.pop("score", None) for passage in passages]
        if any(score is None for score in told):
            told = [1 / rank for rank in range(1, len(told) + 1)]
        try:
            scores = np.array(told, np.float64)
        except (TypeError, ValueError):
            raise DataError("expected a number for each passage", field="score") from None
        return Retrieved(passages, scores, {"score": scores})
