"""Judged texts as JSON lines, in every shape that is known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.lists import Lists
from didyma.data.texts import json_lines as json_texts
from didyma.data.texts import reader as texts
from didyma.errors import DataError, LeftOutWarning


def read(folder: Path, *records: Any, **names: str) -> Lists:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path = folder / "data.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return texts.read(path, **names)


def contents(lists: Lists) -> dict[str, list[tuple[Any, ...]]]:
    """(text, label, score, docid) of each row, by query."""
    columns = [
        [None] * len(lists) if column is None else column.tolist()
        for column in (lists.labels, lists.scores, lists.docid)
    ]
    rows = list(zip(lists.items, *columns))
    groups = lists.groups
    assert lists.queries is not None
    return {
        query: [rows[k] for k in groups.rows[groups.starts[n] : groups.starts[n + 1]]]
        for n, query in enumerate(lists.queries)
    }


WANTED = {"who?": [("a", 1.0, None, None), ("b", 0.0, None, None)]}


@pytest.mark.parametrize(
    "records",
    [
        [{"query": "who?", "passages": ["a", "b"], "labels": [1, 0]}],
        [{"question": "who?", "documents": [{"text": "a", "label": 1}, {"text": "b", "label": 0}]}],
        [
            {
                "query": "who?",
                "passages": [
                    {"is_selected": 1, "passage_text": "a"},
                    {"is_selected": 0, "passage_text": "b"},
                ],
            }
        ],
        [
            {"query": "who?", "passage": "a", "label": 1},
            "",
            {"query": "who?", "text": "b", "relevance": False},
        ],
        [{"query": "who?", "positive": "a", "negative": "b"}],
        [{"anchor": "who?", "positive": "a", "negative": "b"}],
        [{"query": "who?", "pos": ["a"], "neg": ["b"]}],
        [
            {"query": "who?", "positives": ["a"], "negatives": ["b", "a"]},
            {"query": "who?", "positive": "a", "negative_1": "b"},
        ],
        [
            {"query": "who?", "negative": "a", "positive": "a"},
            {"query": "who?", "positive_passages": [], "negative_passages": [{"text": "b"}]},
        ],
    ],
)
def test_shapes(records: list[Any], tmp_path: Path) -> None:
    assert contents(read(tmp_path, *records)) == WANTED


def test_everything_that_may_be_known(tmp_path: Path) -> None:
    lists = read(
        tmp_path,
        {
            "id": 7,
            "query": "who?",
            "passages": [
                {"_id": 3, "title": "Emma", "text": "a", "year": 1815},
                {"id": "x", "text": "b"},
            ],
            "labels": [2, 0.5],
            "scores": [3, -1],
        },
    )
    assert contents(lists) == {"who?": [("Emma a", 2.0, 3.0, "3"), ("b", 0.5, -1.0, "x")]}
    assert lists.qid.tolist() == ["7", "7"]


def test_rows_of_a_query_need_not_stand_together(tmp_path: Path) -> None:
    pairs = [("a", "p"), ("b", "q"), ("a", "r")]
    lists = read(tmp_path, *({"query": query, "passage": passage} for query, passage in pairs))
    assert lists.labels is None
    assert lists.qid.tolist() == ["1", "2", "1"]
    assert {query: [row[0] for row in rows] for query, rows in contents(lists).items()} == {
        "a": ["p", "r"],
        "b": ["q"],
    }


def test_an_empty_id_is_none(tmp_path: Path) -> None:
    pairs = [("who?", "a"), ("why?", "b")]
    lists = read(tmp_path, *({"query": q, "passage": p, "qid": "", "docid": ""} for q, p in pairs))
    assert lists.queries == ["who?", "why?"]
    assert lists.docid is None


def test_a_teachers_scores_are_labels(tmp_path: Path) -> None:
    record = {"query": "who?", "passage": "a", "score": 0.25}
    assert contents(read(tmp_path, record)) == {"who?": [("a", None, 0.25, None)]}
    assert contents(read(tmp_path, record, label="score")) == {"who?": [("a", 0.25, None, None)]}


def test_queries_without_passages_are_counted(tmp_path: Path) -> None:
    with pytest.warns(LeftOutWarning, match=r"data\.jsonl: 1 queries without passages"):
        lists = read(
            tmp_path, {"query": "who?", "passages": []}, {"query": "why?", "passages": ["a"]}
        )
    assert lists.queries == ["why?"]


def test_packed(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress(b'\xef\xbb\xbf{"query": "who?", "passage": "a"}\r\n'))
    assert texts.read(path).items == ["a"]


PAIR = {"query": "who?", "passage": "a", "label": 1, "qid": 1}


@pytest.mark.parametrize(
    ("records", "place", "problem"),
    [
        (["[1]"], "line 1", "expected a JSON object"),
        (["", '{"query": '], "line 2", "expected a JSON object"),
        ([{"query": "who?"}], "line 1, passage", "expected a passage, found query"),
        ([{"passages": ["a"]}], "line 1, query", "expected a query"),
        ([{"query": 3, "passage": "a"}], "line 1, query", "expected a text, found 3"),
        ([PAIR, {**PAIR, "query": " "}], "line 2, query", "expected a text, found an empty one"),
        ([{"query": "who?", "passages": "a"}], "line 1, passages", "expected a list"),
        ([{"query": "who?", "passages": [3]}], "line 1, passages 1", "text or an object"),
        ([{"query": "who?", "passages": [{}]}], "line 1, passages 1", "expected a text among"),
        ([{"query": "who?", "passages": [{"text": None}]}], "passages 1, text", "expected a text"),
        ([{"query": "who?", "neg": [{"text": "a", "id": 0.5}]}], "neg 1, id", "an integer"),
        ([{"query": "who?", "passages": ["a"], "labels": []}], "labels", "expected 1, one for"),
        ([{"query": "who?", "passages": ["a"], "labels": ["x"]}], "labels, 1", "finite number"),
        ([{"query": "who?", "passages": ["a"], "scores": [None]}], "scores, 1", "found none"),
        ([{**PAIR, "label": 10**400}], "line 1, label", "finite number"),
        ([PAIR, {**PAIR, "query": "why?"}], "line 2, query", "text that query 1 had"),
        ([PAIR, {"query": "who?", "passage": "a", "qid": 1}], "line 2, label", "as line 1 has one"),
        ([PAIR, {"query": "who?", "passage": "a", "label": 1}], "line 2, qid", "expected one"),
        ([PAIR, {**PAIR, "qid": ""}], "line 2, qid", "expected one, as line 1 has one"),
        ([""], "data.jsonl", "found none"),
    ],
)
def test_mistakes_are_named(records: list[Any], place: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem) as found:
        read(tmp_path, *records)
    assert "data.jsonl" in str(found.value)
    assert place in str(found.value)


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1, rating: no such name among query, passage"):
        read(tmp_path, {"query": "who?", "passage": "a"}, label="rating")


words = st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)


@given(
    queries=st.dictionaries(words, st.lists(words, min_size=1, unique=True), min_size=1),
    scored=st.booleans(),
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, queries: dict[str, list[str]], scored: bool
) -> None:
    labels = [[n + 0.1 for n in range(len(own))] for own in queries.values()]
    names = [[f"d{n}" for n in range(len(own))] for own in queries.values()]
    given = labels if scored else None
    lists = Lists.of_texts(list(queries), list(queries.values()), labels, given, names)
    path = tmp_path_factory.mktemp("json") / "data.jsonl"
    json_texts.write(lists, path, seen=np.arange(len(lists)))
    again = texts.read(path)
    assert contents(again) == contents(lists)
    assert again.qid.tolist() == list(map(str, lists.qid.tolist()))
    assert json.loads(path.read_text(encoding="utf-8").split("\n")[0])["passages"][0]["judged"] == {
        "seen": 0
    }
