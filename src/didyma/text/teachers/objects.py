"""Teachers that users have: cross-encoders of other libraries, and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from didyma.errors import DataError
from didyma.text.teachers.teacher import Teacher
from didyma.values import kind_of

INDEX, SCORE = ("corpus_id", "index", "doc_id"), ("raw", "score", "relevance_score")


class ObjectTeacher(Teacher):
    """A model of another library, or a function of a query and documents, as a `Teacher`.

    A ``CrossEncoder`` of sentence-transformers (``predict(pairs)``), one of fastembed
    (``rerank(query, documents)``), a reranker of ours, and whatever else has a method
    ``rank(query, documents)`` whose results have an index and a score, are taken as they are.

    >>> def overlap(query, documents):
    ...     words = set(query.split())
    ...     return [len(words & set(document.split())) for document in documents]
    >>> ObjectTeacher(overlap).score("who wrote it", ["she wrote it", "no"])
    array([2., 0.])

    Parameters
    ----------
    model : object or callable
        What scores documents.
    name : str, optional
        What to call it.
    """

    def __init__(self, model: Any, name: str | None = None) -> None:
        self.model = model
        self.name = name or _name(model)
        _method(model)  # which refuses what is none

    def _score(self, query: str, documents: list[str], timeout: float | None) -> Any:
        return _method(self.model)(query, documents)


def _method(model: Any) -> Callable[[str, list[str]], Any]:
    """From a query and documents to scores."""
    is_own = type(model).__module__.partition(".")[0] == "didyma"  # whose `predict` takes lists
    rank = getattr(model, "rank", None)
    if callable(predict := getattr(model, "predict", None)) and not (is_own and rank):
        return lambda query, documents: predict([(query, document) for document in documents])
    if callable(rerank := getattr(model, "rerank", None)):
        return lambda query, documents: list(rerank(query, documents))
    if callable(rank):
        return lambda query, documents: _by_index(rank(query, documents), len(documents))
    if callable(model):
        called: Callable[[str, list[str]], Any] = model
        return called
    raise DataError(
        "expected an address, a command, a function of a query and documents, or an object with "
        f"predict(pairs) or rank(query, documents), found {kind_of(model)}",
        field="teacher",
    )


def _by_index(ranked: Iterable[Any], n: int) -> Any:
    """Scores in the order of the documents; NaN for those that are missing."""
    scores = np.full(n, np.nan)
    for one in ranked:
        record = one if isinstance(one, Mapping) else _Attributes(one)
        index, score = (next((k for k in keys if k in record), None) for keys in (INDEX, SCORE))
        if index is None or score is None or not 0 <= int(record[index]) < n:
            raise DataError(f"expected index and score, found {one!r:.80}", field="teacher")
        scores[int(record[index])] = record[score]
    return scores


class _Attributes:
    """The attributes of an object as entries."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __contains__(self, name: str) -> bool:
        return hasattr(self._value, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self._value, name)


def _name(model: Any) -> str:
    """What a model is called by its library, or the name of its class."""
    config = getattr(model, "config", None)  # of transformers
    names = (getattr(model, "model_name", None), getattr(config, "_name_or_path", None))
    given = next((name for name in names if isinstance(name, str) and name), None)
    return given or str(getattr(model, "__name__", type(model).__name__))
