"""A search engine from its address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from didyma.errors import DataError
from didyma.text.encoders.resolution import EncoderLike
from didyma.text.retrieval.function import FunctionEngine
from didyma.text.retrieval.open_search import OpenSearchEngine
from didyma.text.retrieval.postgres import PostgresEngine
from didyma.text.retrieval.search_engine import SearchEngine
from didyma.text.retrieval.sqlite import SQLiteEngine
from didyma.text.retrieval.tantivy import TantivyEngine

OPTIONS = {
    "sqlite": ("table", "text", "id"),
    "postgres": ("table", "text", "id", "document", "language", "vector"),
    "postgresql": ("table", "text", "id", "document", "language", "vector"),
    "opensearch+http": ("text", "id"),
    "opensearch+https": ("text", "id"),
    "elasticsearch+http": ("text", "id"),
    "elasticsearch+https": ("text", "id"),
    "tantivy": ("text", "id"),
}


def is_address(text: str) -> bool:
    """Whether a text is the address of a search engine, and no path.

    >>> is_address("postgresql://localhost/notes?table=passages"), is_address("notes.index")
    (True, False)
    """
    return "://" in text


def resolve(
    engine: str | Callable[..., Any] | SearchEngine, encoder: EncoderLike = None
) -> SearchEngine:
    """The engine at an address, or of a function of a query and a number.

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
    if parts.scheme not in OPTIONS:
        expected = ", ".join(f"{scheme}://" for scheme in OPTIONS)
        raise DataError(f"expected an address with {expected}, found {engine!r:.60}")
    pairs = dict(parse_qsl(parts.query, keep_blank_values=True))
    options = {name: pairs.pop(name) for name in OPTIONS[parts.scheme] if name in pairs}
    if pairs and not parts.scheme.startswith("postgres"):
        known = ", ".join(OPTIONS[parts.scheme])
        raise DataError(f"expected {known}, found {next(iter(pairs))!r:.40}", field=parts.scheme)
    if "+" in parts.scheme:
        _, scheme = parts.scheme.split("+")
        return OpenSearchEngine(f"{scheme}://{parts.netloc}{parts.path}", **options)
    if parts.scheme in ("sqlite", "tantivy"):
        path = unquote(parts.netloc + parts.path)
        if parts.scheme == "sqlite":
            return SQLiteEngine(path, **options)
        if "text" not in options:
            raise DataError("expected the field that is searched: ?text=NAME", field="text")
        return TantivyEngine(path, **options)
    if "table" not in options:
        raise DataError("expected the table with the passages: ?table=NAME", field="table")
    rest = f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(pairs)}"
    vectors = encoder if "vector" in options else None
    return PostgresEngine(rest, **options, encoder=vectors)
