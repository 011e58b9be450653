"""Full-text search of PostgreSQL, and nearest vectors of its extension pgvector."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from didyma.data.column_roles import known_as
from didyma.errors import DataError, MissingExtraError
from didyma.text.encoders.resolution import EncoderLike, resolve
from didyma.text.retrieval.search_engine import EngineError, Retrieved, SearchEngine, fuse

SECONDS = 10  # that a question may take
WORDS, VECTORS = "ts_rank", "dense"

# Candidates have any word of the query: plainto_tsquery asks for all of them.
ASKED = """
    SELECT replace(plainto_tsquery({language}::regconfig, %(query)s)::text, '&', '|')::tsquery
    AS words
"""
READ = "to_tsvector({language}::regconfig, coalesce({text}, ''))"
BY_WORDS = """
    SELECT t.ctid AS place FROM {table} t, asked WHERE {document} @@ asked.words
    ORDER BY ts_rank_cd({document}, asked.words) DESC, t.ctid LIMIT %(k)s
"""
COSINE = "{vector} <=> %(vector)s::vector"
BY_VECTORS = "UNION (SELECT t.ctid AS place FROM {table} t ORDER BY {cosine} LIMIT %(k)s)"
SIMILARITY = ", (1 - ({cosine}))::float8 AS {dense}"
STATEMENT = """
    WITH asked AS ({asked}), best AS (({by_words}) {by_vectors})
    SELECT t.*, ts_rank_cd({document}, asked.words)::float8 AS {words} {similarity}
    FROM {table} t, asked WHERE t.ctid IN (SELECT place FROM best) ORDER BY {words} DESC, t.ctid
"""


class PostgresEngine(SearchEngine):
    """Passages in a table, found by words and, with pgvector and an encoder, by vectors.

    Parameters
    ----------
    address : str
        As `psycopg.connect` takes it: ``postgresql://user@host/database``.
    table : str
        Perhaps with its schema before a point.
    text, id : str, optional
        Columns with text and id, if their names do not say so. All others are fields.
    document : str, optional
        A column of type ``tsvector``, which is quick if it has an index; else the text is read.
    language : str
        A configuration of PostgreSQL's text search.
    vector : str, optional
        A column of pgvector's type ``vector``.
    encoder : Encoder, str, object or callable, optional
        What makes the vectors of queries (`didyma.text.encoders.resolve`); ``vector`` needs one.
    """

    stages: tuple[str, ...] = (WORDS,)

    def __init__(
        self,
        address: str,
        table: str,
        *,
        text: str | None = None,
        id: str | None = None,
        document: str | None = None,
        language: str = "english",
        vector: str | None = None,
        encoder: EncoderLike = None,
    ) -> None:
        self._idle: deque[Any] = deque()
        try:
            import psycopg
        except ModuleNotFoundError:
            raise MissingExtraError("searching PostgreSQL", "postgres") from None
        if (vector is None) != (encoder is None):
            raise DataError("expected both a column of vectors and an encoder", field="vector")
        self._psycopg = psycopg
        self.address, self.table, self.language, self.vector = address, table, language, vector
        self.encoder = None if encoder is None else resolve(encoder)
        if vector is not None:
            self.stages = (WORDS, VECTORS)
        columns = self._columns()
        text = text or known_as("passage", columns)
        named = {"text": text, "id": id, "document": document, "vector": vector}
        for name, column in named.items():
            if column not in columns and (column is not None or name == "text"):
                problem = f"expected one of {', '.join(columns)}, found {column!r:.40}"
                raise DataError(problem, field=name)
        self.roles = {"passage": text, "docid": id}
        self._hidden = {column for column in (document, vector) if column is not None}
        self._statement = self._compose(str(text), document)

    def retrieve(self, query: str, k: int) -> Retrieved:
        """Passages that have any word of the query, by cover density, or are near its vector."""
        values: dict[str, Any] = {"query": query.replace("\0", " "), "k": k}
        if self.encoder is not None:
            vector = self.encoder.encode_queries([query])[0]
            values["vector"] = "[" + ",".join(repr(float(x)) for x in vector) + "]"
        rows = self._rows(self._statement, values)
        stages = {
            name: np.array([row.pop(name) for row in rows], np.float64) for name in self.stages
        }
        records = [
            {name: value for name, value in row.items() if name not in self._hidden} for row in rows
        ]
        by_words = Retrieved.of(zip(records, stages[WORDS]), WORDS, **self.roles)
        if len(stages) == 1:
            return by_words
        orders = [np.argsort(-scores, kind="stable")[:k] for scores in stages.values()]
        fused = fuse(orders, len(rows))
        best = np.argsort(-fused, kind="stable")
        return Retrieved(
            [by_words.passages[place] for place in best],
            fused[best],
            {name: scores[best] for name, scores in stages.items()},
        )

    def _compose(self, text: str, document: str | None) -> Any:
        """The statement, with names quoted as PostgreSQL does."""
        sql = self._psycopg.sql
        parts = {
            "table": sql.Identifier(*self.table.split(".")),
            "text": sql.Identifier("t", text),
            "language": sql.Literal(self.language),
            "words": sql.Identifier(WORDS),
            "dense": sql.Identifier(VECTORS),
        }
        templates = {"document": READ, "asked": ASKED, "by_words": BY_WORDS}
        if document is not None:
            parts["document"] = sql.Identifier("t", document)
            del templates["document"]
        if self.vector is None:
            templates |= {"by_vectors": "", "similarity": ""}
        else:
            parts["vector"] = sql.Identifier("t", self.vector)
            templates |= {"cosine": COSINE, "by_vectors": BY_VECTORS, "similarity": SIMILARITY}
        for name, template in templates.items():
            parts[name] = sql.SQL(template).format(**parts)
        return sql.SQL(STATEMENT).format(**parts)

    def _columns(self) -> list[str]:
        sql = self._psycopg.sql
        table = sql.Identifier(*self.table.split("."))
        statement = sql.SQL("SELECT * FROM {} LIMIT 0").format(table)
        with self._connection() as connection:
            return [column.name for column in connection.execute(statement).description or ()]

    def _rows(self, statement: Any, values: dict[str, Any]) -> list[dict[str, Any]]:
        with self._connection() as connection:
            cursor = connection.execute(statement, values)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row)) for row in cursor.fetchall()]

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection that nobody else has meanwhile; it only reads."""
        connection = self._idle.pop() if self._idle else None
        options = f"-c default_transaction_read_only=on -c statement_timeout={SECONDS}s"
        try:
            if connection is None:
                connection = self._psycopg.connect(
                    self.address, autocommit=True, connect_timeout=SECONDS, options=options
                )
            yield connection
        except self._psycopg.Error as error:
            message = " ".join(str(error).split())
            raise EngineError(f"PostgreSQL says: {message:.200}") from None
        finally:
            if connection is not None and not connection.closed:
                self._idle.append(connection)

    def close(self) -> None:
        """Close connections that are kept for the next question."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()
