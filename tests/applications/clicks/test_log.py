"""Logs of clicks: one pass, the same counts whatever the layout, and errors with a place."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.applications.clicks import log as click_log
from didyma.applications.clicks.log import ClickLog
from didyma.errors import DataError, LeftOutWarning

NAMES = ("query", "docid", "position", "clicked")


def counts_of(log: ClickLog) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Impressions and clicks by query, document and position."""
    return {
        (log.queries[log.query[p]], log.documents[p], k): (n, c)
        for p, k, n, c in zip(
            *(a.tolist() for a in (log.pair, log.position, log.impressions, log.clicks))
        )
    }


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The same rows in the format that the name tells."""
    if ".jsonl" in path.name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        file = io.StringIO()
        mark = "," if ".csv" in path.name else "\t"
        quoting = csv.QUOTE_MINIMAL if mark == "," else csv.QUOTE_NONE
        writer = csv.writer(file, delimiter=mark, lineterminator="\n", quoting=quoting)
        writer.writerows([list(rows[0]), *(row.values() for row in rows)])
        text = file.getvalue()
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


words = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters='"'), min_size=1)
lines = st.lists(
    st.tuples(words, words, st.integers(0, 40), st.booleans()).map(lambda v: dict(zip(NAMES, v))),
    min_size=1,
)


@given(rows=lines, ending=st.sampled_from([".jsonl", ".csv", ".tsv", ".jsonl.gz", ".tsv.gz"]))
def test_every_line_is_counted_once(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], ending: str
) -> None:
    log = click_log.read(written(tmp_path_factory.mktemp("log") / f"log{ending}", rows))
    keys = [(row["query"], row["docid"], row["position"]) for row in rows]
    shown = Counter(keys)
    clicked = Counter(key for key, row in zip(keys, rows) if row["clicked"])
    assert counts_of(log) == {key: (shown[key], clicked[key]) for key in shown}
    assert (np.diff(log.pair) >= 0).all()
    assert set(log.pair.tolist()) == set(range(len(log.documents)))


@pytest.mark.parametrize("true", [True, 1, "1", "true", "True", 1.0])
@pytest.mark.parametrize("position", [3, "3", 3.0, "3.0", " 3 "])
def test_ways_to_write_a_value(tmp_path: Path, true: Any, position: Any) -> None:
    row = {"query": "who?", "doc_id": 7, "rank": position, "click": true}
    log = click_log.read(written(tmp_path / "log.jsonl", [row]))
    assert counts_of(log) == {("who?", "7", 3): (1, 1)}


def test_positions_may_count_from_0(tmp_path: Path) -> None:
    rows = [{"query": "q", "docid": "d", "position": k, "clicked": 0} for k in (0, 1)]
    assert click_log.read(written(tmp_path / "log.csv", rows)).position.tolist() == [0, 1]


def test_ids_and_texts(tmp_path: Path) -> None:
    row = {"qid": "7", "query": "who?", "docid": "d", "document": "Jane.", "position": 1}
    log = click_log.read(written(tmp_path / "log.tsv", [row | {"clicked": "true"}]))
    assert (log.queries, log.query_texts) == (["7"], {"7": "who?"})
    assert (log.documents, log.passages) == (["d"], {"d": "Jane."})
    only = {"query": "who?", "document": "Jane.", "position": 1, "clicked": False}
    log = click_log.read(written(tmp_path / "texts.jsonl", [only]))
    assert (log.documents, log.passages) == (["Jane."], {"Jane.": "Jane."})
    assert repr(log) == "ClickLog(1 queries, 1 impressions, 0 clicks)"
    named = {"q": "who?", "d": "x", "p": 2, "c": 1, "position": 9}
    log = click_log.read(
        written(tmp_path / "named.csv", [named]), query="q", docid="d", position="p", clicked="c"
    )
    assert counts_of(log) == {("who?", "x", 2): (1, 1)}
    (tmp_path / "passages.tsv").write_text("x\tA text.\ny\tAnother.\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "who?", "text": "Who?"}\n')
    known = log.with_texts(queries=tmp_path / "queries.jsonl", passages=tmp_path / "passages.tsv")
    assert (known.query_texts, known.passages) == ({"who?": "Who?"}, {"x": "A text."})


def test_an_impression_shows_a_document_once(tmp_path: Path) -> None:
    events = [("a", "x", 0), ("a", "y", 0), ("a", "x", 1), ("a", "x", 1), ("b", "x", 1)]
    rows = [
        {"query": "q", "docid": d, "position": 1 + (d == "y"), "clicked": c, "impression_id": i}
        for i, d, c in events
    ]
    log = click_log.read(written(tmp_path / "log.csv", rows))
    assert counts_of(log) == {("q", "x", 1): (2, 2), ("q", "y", 2): (1, 0)}
    path = written(tmp_path / "again.csv", [*rows, rows[0]])
    with pytest.raises(DataError, match=r"line 7, impression: expected its lines together.*'a'"):
        click_log.read(path)


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    row = {"query": "q", "docid": "d", "passage": "Jane.", "position": 1, "clicked": 1}
    path = written(tmp_path / "log.jsonl", [row, row | {"query": " "}, row | {"docid": ""}])
    with pytest.warns(LeftOutWarning, match="left out 2 lines with an empty query or document"):
        assert click_log.read(path).impressions.sum() == 1
    path = written(tmp_path / "changed.jsonl", [row, row | {"passage": "Emma."}, row])
    with pytest.warns(LeftOutWarning, match="texts of 1 lines with another text"):
        assert click_log.read(path).passages == {"d": "Jane."}


GOOD = {"query": "q", "docid": "d", "position": 1, "clicked": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"position": "first"}, "position: expected a whole number from 0 on, found 'first'"),
        ({"position": -1}, "position: expected a whole number from 0 on, found -1"),
        ({"position": 1.5}, "position: expected a whole number from 0 on, found 1.5"),
        ({"position": True}, "position: expected a whole number from 0 on, found True"),
        ({"position": None}, "position: expected a whole number from 0 on, found None"),
        ({"position": [1]}, "position: expected a whole number from 0 on, found [1]"),
        ({"position": "1_0"}, "position: expected a whole number from 0 on, found '1_0'"),
        ({"position": 10**400}, f"position: expected a whole number from 0 on, found 1{'0' * 39}"),
        ({"position": "nan"}, "position: expected a whole number from 0 on, found 'nan'"),
        ({"clicked": 2}, "clicked: expected true or false, 1 or 0, found 2"),
        ({"clicked": -1}, "clicked: expected true or false, 1 or 0, found -1"),
        ({"clicked": None}, "clicked: expected true or false, 1 or 0, found None"),
        ({"clicked": {}}, "clicked: expected true or false, 1 or 0, found {}"),
        ({"query": 3}, "query: expected a text, found 3"),
        ({"query": None}, "query: expected a text or an id, found none"),
        ({"docid": 1.5}, "docid: expected a text or an integer, found 1.5"),
        ({"impression": []}, "impression: expected a text or an integer, found []"),
    ],
    ids=str,
)
def test_an_error_names_line_and_field(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = written(tmp_path / "log.jsonl", [GOOD, GOOD | change])
    with pytest.raises(DataError) as error:
        click_log.read(path)
    assert str(error.value) == f"{path}, line 2, {said}"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.csv", "", "expected a line with the names of the columns, found none"),
        ("log.csv", "query,docid,position,clicked\n", "expected lines of a log, found none"),
        ("log.jsonl", "", "expected lines of a log, found none"),
        ("log.csv", "query,docid,rank\na,b,1\n", ", line 1: expected a clicked among"),
        ("log.csv", "q,docid,rank,click\na,b,1,1\n", ", line 1: expected a query among"),
        ("log.csv", "query,rank,click\na,1,1\n", ", line 1: expected a document among"),
        ("log.tsv", "query\tdocid\trank\tclick\na\tb\t1\n", "line 2: expected 4 fields, found 3"),
        ("log.jsonl", "{}\n", "line 1: expected a query among no names"),
        ("log.jsonl", "[]\n", "line 1: expected a JSON object"),
        ("log.jsonl", "\x1f\x8b", "expected"),
    ],
)
def test_files_that_are_no_log(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said):
        click_log.read(tmp_path / name)


def test_names_that_are_none(tmp_path: Path) -> None:
    path = written(tmp_path / "log.csv", [GOOD])
    with pytest.raises(DataError, match="rank: no such name among query, docid, position"):
        click_log.read(path, position="rank")
    with pytest.raises(DataError, match="expected roles among query, qid"):
        click_log.read(path, when="time")
