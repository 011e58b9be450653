"""SQLite's full-text search, for real."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from didyma.errors import DataError
from didyma.text.retrieval import SQLiteEngine, resolve
from tests.text.retrieval.passages import PASSAGES


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = "id UNINDEXED, title, body, year UNINDEXED"
        connection.execute(f"CREATE VIRTUAL TABLE notes USING fts5({columns})")
        connection.executemany("INSERT INTO notes VALUES (?, ?, ?, ?)", PASSAGES)
    return path


def test_scores_are_those_of_sqlite(database: Path) -> None:
    engine = SQLiteEngine(database, id="id")
    found = engine.search("Who is Jane Austen?")
    with closing(sqlite3.connect(database)) as connection:
        expected = connection.execute(
            "SELECT id, -bm25(notes) FROM notes('who OR is OR jane OR austen') ORDER BY rank"
        ).fetchall()
    assert [(one.id, one.score) for one in found] == expected
    assert expected[0][0] == "emma"
    assert found[0].text == "Emma A novel by Jane Austen about a matchmaker."
    assert found[0].metadata == {"rowid": 1, "year": 1815}
    assert [one.first_rank for one in found] == [1, 2]


@pytest.mark.parametrize(
    "query", ["", "?!", 'a "quote', "NOT austen", "body : x*", "emma AND (", "ß\0"]
)
def test_no_query_is_an_error_of_syntax(database: Path, query: str) -> None:
    assert len(SQLiteEngine(database).search(query)) <= len(PASSAGES)


def test_words_that_match_have_spans(database: Path) -> None:
    ((span,),) = SQLiteEngine(database).spans("austen", ["Jane Austen"])
    assert (span.start, span.stop) == (5, 11)


def test_threads_share_an_engine_and_nothing_is_written(database: Path) -> None:
    engine, found = SQLiteEngine(database), []
    threads = [Thread(target=lambda: found.append(engine.search("moon")[0].id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["3"] * 4
    with pytest.raises(DataError, match="readonly database"):
        list(engine._rows("DELETE FROM notes"))


def test_what_is_wrong_is_told(database: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no file"):
        SQLiteEngine(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("no database, but long enough to be read as if it were one")
    with pytest.raises(DataError, match=r"text\.db: SQLite says: file is not a database"):
        SQLiteEngine(tmp_path / "text.db")
    with pytest.raises(DataError, match="SQLite says: no such table: other"):
        SQLiteEngine(database, "other")
    with pytest.raises(DataError, match="expected one of rowid, id, title, body, year, found 'x'"):
        SQLiteEngine(database, text="x")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE VIRTUAL TABLE more USING fts5(body)")
    with pytest.raises(DataError, match="table: expected a table of FTS5, found notes, more"):
        SQLiteEngine(database)
    assert resolve(f"sqlite:///{database}?table=notes&id=id").search("moon")[0].id == "tides"
    with pytest.raises(DataError, match="sqlite: expected table, text, id, found 'tables'"):
        resolve(f"sqlite:///{database}?tables=notes")
