"""A search engine from its address, or from a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import numpy as np

from didyma.data.passage import passages_of
from didyma.errors import DataError
from didyma.text.encoders.resolution import EncoderLike
from didyma.text.retrieval.open_search import OpenSearchEngine
from didyma.text.retrieval.postgres import PostgresEngine
from didyma.text.retrieval.search_engine import Retrieved, SearchEngine
from didyma.text.retrieval.sqlite import SQLiteEngine
from didyma.text.retrieval.tantivy import TantivyEngine

ENGINES: dict[str, Callable[..., SearchEngine]] = {
    "sqlite": SQLiteEngine,
    "postgres": PostgresEngine,
    "postgresql": PostgresEngine,
    "opensearch+http": OpenSearchEngine,
    "opensearch+https": OpenSearchEngine,
    "elasticsearch+http": OpenSearchEngine,
    "elasticsearch+https": OpenSearchEngine,
    "tantivy": TantivyEngine,
}
REQUIRED = {"table": "the table with the passages", "text": "the field that is searched"}


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
        values = [passage.metadata.pop("score", None) for passage in passages]
        if any(score is None for score in values):
            values = [1 / rank for rank in range(1, len(values) + 1)]
        try:
            scores = np.array(values, np.float64)
        except (TypeError, ValueError):
            raise DataError("expected a number for each passage", field="score") from None
        return Retrieved(passages, scores, {"score": scores})


def is_address(text: str) -> bool:
    """Whether a text is the address of a search engine, and no path.

    >>> is_address("postgresql://localhost/notes?table=passages"), is_address("notes.index")
    (True, False)
    """
    return "://" in text


def resolve(
    engine: str | Callable[..., Any] | SearchEngine, encoder: EncoderLike = None
) -> SearchEngine:
    """A search engine from its address, or from a function of a query and a number.

    | address | engine |
    |---|---|
    | ``sqlite:///notes.db?table=passages`` | SQLite's FTS5 |
    | ``postgresql://user@host/database?table=passages&text=body`` | PostgreSQL |
    | ``opensearch+https://host:9200/notes?text=title^2,body`` | OpenSearch, Elasticsearch |
    | ``tantivy:///folder?text=body`` | tantivy |

    What stands after the question mark are parameters of the class, as text; all else after it is
    left to PostgreSQL. A path of SQLite and tantivy is relative after two slashes, and absolute
    after three. ``encoder`` is for PostgreSQL's vectors.
    """
    if isinstance(engine, SearchEngine):
        return engine
    if not isinstance(engine, str):
        return FunctionEngine(engine)
    parts = urlsplit(engine)
    kind = ENGINES.get(parts.scheme)
    if kind is None:
        expected = ", ".join(f"{scheme}://" for scheme in ENGINES)
        raise DataError(f"expected an address with {expected}, found {engine!r:.60}")
    # What an engine takes beside its place, but for what is no text.
    parameters = list(inspect.signature(kind).parameters.values())[1:]
    names = [one.name for one in parameters if one.name != "encoder"]
    pairs = dict(parse_qsl(parts.query, keep_blank_values=True))
    options: dict[str, Any] = {name: pairs.pop(name) for name in names if name in pairs}
    if pairs and kind is not PostgresEngine:
        unknown = next(iter(pairs))
        raise DataError(f"expected {', '.join(names)}, found {unknown!r:.40}", field=parts.scheme)
    for one in parameters:
        if one.default is one.empty and one.name not in options:
            problem = f"expected {REQUIRED[one.name]}: ?{one.name}=NAME"
            raise DataError(problem, field=one.name)
    place = unquote(parts.netloc + parts.path)
    if kind is OpenSearchEngine:
        place = f"{parts.scheme.partition('+')[2]}://{parts.netloc}{parts.path}"
    elif kind is PostgresEngine:
        place = f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(pairs)}"
        options["encoder"] = encoder if "vector" in options else None
    return kind(place, **options)
