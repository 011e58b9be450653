"""PostgreSQL's full-text search, on a server of this test; vectors by a stand-in for pgvector."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from didyma.errors import DataError
from didyma.text.retrieval import PostgresEngine, resolve
from tests.text.retrieval.passages import PASSAGES

# What pgvector's type and operator say, for numbers of a few dimensions.
STAND_IN = """
    CREATE DOMAIN vector AS text;
    CREATE FUNCTION cosine_distance(a text, b text) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
        SELECT 1 - sum(x::float8 * y::float8) / sqrt(sum(x::float8 ^ 2) * sum(y::float8 ^ 2))
        FROM ROWS FROM (json_array_elements_text(a::json), json_array_elements_text(b::json))
        AS pairs (x, y) $$;
    CREATE OPERATOR <=> (LEFTARG = text, RIGHTARG = text, FUNCTION = cosine_distance);
"""
VECTORS = ["[1,0]", "[0,1]", "[0.6,0.8]", "[-1,0]"]


def program(name: str) -> str:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))
    if path is None:
        pytest.skip("PostgreSQL is not installed")
    return path


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server in a folder of its own, without a port; it does not run as root."""
    initdb, control = program("initdb"), program("pg_ctl")
    user = []
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        if os.getuid() == 0:
            try:
                pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("PostgreSQL does not run as root, and has no user of its own")
            user = ["runuser", "-u", "postgres", "--"]
            shutil.chown(place, "postgres")
        folder = f"{place}/data"
        quick = f"-c listen_addresses='' -c fsync=off -k {place}"
        subprocess.run(
            [*user, initdb, "-D", folder, "-U", "didyma", "-A", "trust", "-E", "UTF8"],
            check=True,
            capture_output=True,
        )
        server = [*user, control, "-D", folder, "-w", "-l", f"{place}/log"]
        subprocess.run([*server, "-o", quick, "start"], check=True, capture_output=True)
        try:
            yield f"postgresql:///postgres?host={place}&user=didyma"
        finally:
            subprocess.run([*server, "-m", "immediate", "stop"], check=True, capture_output=True)


@pytest.fixture(scope="module")
def filled(address: str) -> str:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(STAND_IN)
        connection.execute(
            'CREATE TABLE "My notes" (id text, title text, body text, year int, near vector, '
            "words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)"
        )
        for passage, vector in zip(PASSAGES, VECTORS):
            connection.execute(
                'INSERT INTO "My notes" VALUES (%s, %s, %s, %s, %s)', [*passage, vector]
            )
    return address


@pytest.mark.parametrize("document", [None, "words"])
def test_passages_with_any_word_by_cover_density(filled: str, document: str | None) -> None:
    found = PostgresEngine(filled, "My notes", document=document).search("Jane Austen's bets")
    assert [one.id for one in found] == ["emma", "faust", "odd"]
    assert found[0].text == "Emma A novel by Jane Austen about a matchmaker."
    assert found[0].metadata["year"] == 1815
    assert found[0].score > found[1].score == found[2].score > 0
    with psycopg.connect(filled) as connection:
        statement = (
            "SELECT ts_rank_cd(words, to_tsquery('english', 'jane | austen | bet'))::float8 "
            'FROM "My notes" ORDER BY 1 DESC'
        )
        best = connection.execute(statement).fetchone()
    assert found[0].score == best[0]


@pytest.mark.parametrize("query", ["", "the", "'; DROP TABLE x", "a & | ! <-> (", "\0", "%s {}"])
def test_no_query_is_an_error_of_syntax(filled: str, query: str) -> None:
    assert PostgresEngine(filled, "My notes").search(query) is not None


class Encoder:
    """Vectors of two numbers, as sentence-transformers would give them."""

    def encode(self, texts: Any, **_: Any) -> Any:
        return np.array([[0.0, 1.0] if "bet" in text else [1.0, 0.0] for text in texts])


def test_vectors_find_what_words_do_not(filled: str) -> None:
    options: dict[str, Any] = {"vector": "near", "encoder": Encoder()}
    engine = PostgresEngine(filled, "My notes", **options)
    retrieved = engine.retrieve("a bet", 2)
    assert [passage.id for passage in retrieved.passages] == ["faust", "tides"]
    np.testing.assert_allclose(retrieved.stages["dense"], [1.0, 0.8])
    assert retrieved.stages["ts_rank"][1] == 0
    np.testing.assert_allclose(retrieved.scores, [2 / 61, 1 / 62 + 1 / 62])
    assert "near" not in retrieved.passages[0].metadata
    with pytest.raises(DataError, match="vector: expected both a column of vectors and an encoder"):
        PostgresEngine(filled, "My notes", vector="near")


def test_a_server_that_went_away_is_asked_again(filled: str) -> None:
    engine = PostgresEngine(filled, "My notes")
    with psycopg.connect(filled, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    with pytest.raises(DataError, match="PostgreSQL says: terminating connection"):
        engine.search("moon")
    assert engine.search("moon")[0].id == "tides"


def test_what_is_wrong_is_told(filled: str) -> None:
    with pytest.raises(DataError, match='PostgreSQL says: relation "none" does not exist'):
        PostgresEngine(filled, "none")
    with pytest.raises(DataError, match=r"text: expected one of id, title, body, .* found 'x'"):
        PostgresEngine(filled, "My notes", text="x")
    with pytest.raises(DataError, match='text search configuration "klingon" does not exist'):
        PostgresEngine(filled, "My notes", language="klingon").search("moon")
    with pytest.raises(DataError, match="PostgreSQL says: connection"):
        PostgresEngine("postgresql:///x?host=/nowhere", "notes")
    engine = resolve(f"{filled}&table=My%20notes&id=id")
    assert engine.search("moon")[0].id == "tides"
    with engine._connection() as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute('DELETE FROM "My notes"')
