"""Teachers by address or command, and from cross-encoders and functions that a user has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from didyma.errors import DataError
from didyma.text.teachers.command import CommandTeacher
from didyma.text.teachers.endpoint import Dialect, EndpointTeacher
from didyma.text.teachers.teacher import Teacher
from didyma.values import kind_of

TeacherLike: TypeAlias = Any
"""A `Teacher`, an address, a command, a cross-encoder, or a function."""

INDEX, SCORE = ("corpus_id", "index", "doc_id"), ("raw", "score", "relevance_score")


def resolve(value: TeacherLike, dialect: Dialect | None = None) -> Teacher:
    """A teacher from an address, a command, a cross-encoder or a function.

    Parameters
    ----------
    value : Teacher, str, object or callable
        An address (``http://…``, ``https://…``, see `EndpointTeacher`) or a command (any other
        text, see `CommandTeacher`); a cross-encoder, or a function of a query and documents that
        gives scores (see `ObjectTeacher`).
    dialect : {"cohere", "jina", "tei"}, optional
        Of an address, if its path does not tell.

    >>> resolve("http://localhost:8000/v2/rerank")
    EndpointTeacher('http://localhost:8000/v2/rerank')
    >>> resolve("python teacher.py")
    CommandTeacher('python teacher.py')
    """
    is_address = isinstance(value, str) and value.lower().startswith(("http://", "https://"))
    if dialect is not None and not is_address:
        raise DataError("only an address has one", field="dialect")
    if isinstance(value, Teacher):
        return value
    if is_address:
        return EndpointTeacher(value, dialect)
    return CommandTeacher(value) if isinstance(value, str) else ObjectTeacher(value)


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
        index, score = _first(one, INDEX), _first(one, SCORE)
        if index is None or score is None or not 0 <= int(index) < n:
            raise DataError(f"expected index and score, found {one!r:.80}", field="teacher")
        scores[int(index)] = score
    return scores


def _first(result: Any, names: tuple[str, ...]) -> Any:
    """The first of some fields that a result has, which is a mapping or an object."""
    fields = (
        result
        if isinstance(result, Mapping)
        else {name: getattr(result, name) for name in names if hasattr(result, name)}
    )
    return next((fields[name] for name in names if name in fields), None)


def _name(model: Any) -> str:
    """What a model is called by its library, or the name of its class."""
    config = getattr(model, "config", None)  # of transformers
    names = (getattr(model, "model_name", None), getattr(config, "_name_or_path", None))
    called = next((name for name in names if isinstance(name, str) and name), None)
    return called or str(getattr(model, "__name__", type(model).__name__))
