"""Full-text search of SQLite (FTS5)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from didyma.errors import DataError
from didyma.files import PathName
from didyma.text.retrieval.search_engine import EngineError, Retrieved, SearchEngine


class SQLiteEngine(SearchEngine):
    """Passages in an FTS5 table, found by SQLite's own BM25; the database is only read.

    Parameters
    ----------
    path : path
        The database.
    table : str, optional
        The FTS5 table; needed if there are several.
    text, id : str, optional
        Columns with text and id, if their names do not say so; without an id it is the ``rowid``.
        All other columns are fields of the passage.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "notes.db")
    >>> with closing(sqlite3.connect(path)) as database, database:
    ...     _ = database.execute("CREATE VIRTUAL TABLE notes USING fts5(title, body)")
    ...     _ = database.execute("INSERT INTO notes VALUES ('Emma', 'a novel by Jane Austen')")
    >>> [(found.id, found.text) for found in SQLiteEngine(path).search("who wrote Emma?")]
    [('1', 'Emma a novel by Jane Austen')]
    """

    stages = ("bm25",)

    def __init__(
        self, path: PathName, table: str | None = None, *, text: str | None = None, id: str = ""
    ) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise DataError("expected a database of SQLite, found no file", path=path)
        self.table = table if table is not None else self._only_table()
        self.roles = {"docid": id or "rowid", "passage": text}
        for row in self._rows(f"SELECT rowid, * FROM {_quoted(self.table)} LIMIT 1"):
            for name in self.roles.values():
                if name is not None and name not in row:
                    problem = f"expected one of {', '.join(row)}, found {name!r:.40}"
                    raise DataError(problem, path=self.path)

    def retrieve(self, query: str, k: int) -> Retrieved:
        """Passages that have any word of the query, by BM25."""
        words = re.findall(r"\w+", query)
        if not words:
            return Retrieved.of([], "bm25")
        table = _quoted(self.table)
        statement = (
            f'SELECT rowid, *, -bm25({table}) AS "-" FROM {table} '
            f"WHERE {table} MATCH ? ORDER BY rank, rowid LIMIT ?"
        )
        rows = list(self._rows(statement, " OR ".join(map(_quoted, words)), k))
        return Retrieved.of(((row, row.pop("-")) for row in rows), "bm25", **self.roles)

    def _only_table(self) -> str:
        statement = "SELECT name FROM sqlite_master WHERE sql LIKE ?"
        names = [row["name"] for row in self._rows(statement, "CREATE VIRTUAL TABLE%USING fts5%")]
        if len(names) != 1:
            problem = f"expected a table of FTS5, found {', '.join(names) or 'none'}"
            raise DataError(problem, path=self.path, field="table")
        return str(names[0])

    def _rows(self, statement: str, *values: Any) -> Iterator[dict[str, Any]]:
        """Rows by the names of columns; a connection for each question, as threads need."""
        address = f"{self.path.resolve().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True)) as database:
                cursor = database.execute(statement, values)
                names = [column[0] for column in cursor.description]
                yield from (dict(zip(names, row)) for row in cursor.fetchall())
        except sqlite3.Error as error:
            raise EngineError(f"SQLite says: {error}", path=self.path) from None


def _quoted(name: str) -> str:
    """A name of SQL, or a word of a query, as it is."""
    return '"' + name.replace('"', '""') + '"'
