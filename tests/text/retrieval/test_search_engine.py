"""Candidates of any engine, ranked by a reranker that knows its scores."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.data import texts
from didyma.errors import DataError
from didyma.text import TextReranker
from didyma.text.retrieval import SQLiteEngine
from didyma.text.retrieval.search_engine import fuse


def words(number: int) -> str:
    return f"passage {number} has word{number % 7} and other{number % 5}"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> SQLiteEngine:
    path = tmp_path_factory.mktemp("engine") / "notes.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE VIRTUAL TABLE notes USING fts5(id UNINDEXED, body, age UNINDEXED)"
        )
        rows = [(f"d{number}", words(number), number) for number in range(35)]
        connection.executemany("INSERT INTO notes VALUES (?, ?, ?)", rows)
    return SQLiteEngine(path, id="id")


def test_a_reranker_is_trained_on_what_the_engine_finds(
    engine: SQLiteEngine, tmp_path: Path
) -> None:
    queries, qrels = tmp_path / "queries.tsv", tmp_path / "qrels.txt"
    queries.write_text("".join(f"q{n}\tword{n % 7} other{n % 5}\n" for n in range(30)))
    qrels.write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(30)))
    lists = texts.read_files(queries=queries, qrels=qrels, first_stage=engine, depth=8)
    assert len(lists.groups) == 30
    assert lists.labels is not None
    assert lists.labels.sum() == 30
    reranker = TextReranker(random_state=0).fit(lists)
    found = engine.search("word3 other3", k=5, reranker=reranker, explain=True)
    assert found[0].id == "d3"
    assert found[0].first_rank == 1
    assert found[0].explanation is not None
    assert found[0].metadata["age"] == 3


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "many"])
def test_numbers_are_checked(engine: SQLiteEngine, k: Any) -> None:
    with pytest.raises(DataError, match="k: expected a positive number"):
        engine.search("x", k=k)
    with pytest.raises(DataError, match="query: expected a text, found None"):
        engine.search(None)  # type: ignore[arg-type]


def test_fusion_by_its_definition() -> None:
    fused = fuse([np.array([2, 0]), np.array([0, 1])], 4)
    np.testing.assert_allclose(fused, [1 / 62 + 1 / 61, 1 / 62, 1 / 61, 0])
