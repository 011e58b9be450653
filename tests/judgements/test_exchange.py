"""Judgements go to other tools and come back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from didyma.errors import DataError
from didyma.judgements import Judgement, read_judgements, write_judgements

SAID = [
    Judgement("who rang?", "d1", 2, who="anna", text="They, they rang.", qid="q1"),
    Judgement("who rang?", "d2", 0, who="anna", text="It rains.", qid="q1"),
    Judgement("who rang?", "d1", 2, who="bert", text="They, they rang.", qid="q1"),
    Judgement("who sang?", "d3", 1, who="anna", text="She sang.", qid="q2"),
]
MERGED = {("who rang?", "d1"): 2, ("who rang?", "d2"): 0, ("who sang?", "d3"): 1}


def labels(judgements: list[Judgement]) -> dict[tuple[str, str], float | None]:
    return {(own.query, own.document): own.label for own in judgements}


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.csv", None),
        ("a.tsv", None),
        ("a.json", None),
        ("a.jsonl", None),
        ("quepid.csv", "quepid"),
    ],
)
def test_what_is_written_is_read_again(tmp_path: Path, name: str, format: str | None) -> None:
    count = write_judgements(SAID, tmp_path / name, format)
    found = read_judgements(tmp_path / name, format, who="other")
    assert labels(found) == MERGED
    each = name in ("a.csv", "a.tsv", "a.json")
    assert len(found) == count == (4 if each else 3)
    assert {own.who for own in found} == ({"anna", "bert"} if each else {"other"})
    if format is None:
        assert {own.text for own in found} == {own.text for own in SAID}


def test_qrels_have_ids_and_texts_by_them(tmp_path: Path) -> None:
    write_judgements(SAID, tmp_path / "qrels.txt")
    assert (tmp_path / "qrels.txt").read_text() == "q1 0 d1 2\nq1 0 d2 0\nq2 0 d3 1\n"
    queries = {"q1": "who rang?", "q2": "who sang?"}
    found = read_judgements(tmp_path / "qrels.txt", queries=queries, passages={"d1": "They."})
    assert labels(found) == MERGED
    assert found[0].text == "They."
    with pytest.raises(DataError, match="whole grades"):
        write_judgements([Judgement("q", "d", 0.5)], tmp_path / "other.txt")


def test_a_book_of_quepid_has_a_column_for_each_judge(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text("query,docid,Anna,Bert\nwho rang?,d1,3,\nwho rang?,d2,0,1\n")
    found = [(own.document, own.who, own.label) for own in read_judgements(path)]
    assert found == [("d1", "Anna", 3), ("d2", "Anna", 0), ("d2", "Bert", 1)]


def test_suggestions_of_argilla_are_those_of_an_agent(tmp_path: Path) -> None:
    record = {
        "id": "1",
        "fields": {"query": "who rang?", "passage": "They."},
        "responses": {"grade": [{"value": "2", "user_id": "u1"}]},
        "suggestions": {"grade": {"value": 1, "agent": "llm", "score": 0.7}},
    }
    (tmp_path / "a.json").write_text(json.dumps([record]))
    found = read_judgements(tmp_path / "a.json")
    assert [(own.document, own.who, own.label) for own in found] == [
        ("They.", "u1", 2),
        ("They.", "llm", 1),
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.csv", "colour,docid\nred,d1\n", "line 1: expected columns query, docid and label"),
        ("a.csv", "query,docid,label\nq,d,good\n", "line 2, label: expected a number"),
        ("a.json", "[1]", "record 0: expected an object"),
        ("a.json", '[{"fields": {"text": "a"}}]', "fields: expected query and passage"),
        ("a.json", "[", "expected JSON"),
    ],
)
def test_nonsense_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=problem):
        read_judgements(tmp_path / name)
