"""Readers of sentence pairs: SNLI's JSONL and both layouts of SICK."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from didyma.applications.alignment import reader as nli
from didyma.applications.alignment.reader import Pair
from didyma.errors import DataError

OBJECTS = [
    {
        "annotator_labels": ["neutral"],
        "gold_label": "neutral",
        "pairID": "1.jpg#0r1n",
        "sentence1": "A person on a horse jumps.",
        "sentence1_binary_parse": "( ( A person ) jumps )",
        "sentence2": "A person is training a horse.",
    },
    {"gold_label": "-", "sentence1": "It rains.", "sentence2": "It’s wet."},
    {"sentence1": "", "sentence2": "A line\u2028break"},
]
HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "pairs"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def lines_of(records: list[dict[str, object]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


@pytest.mark.parametrize("pack", [lambda text: text, gzip.compress])
def test_json_lines(tmp_path, pack):
    pairs = nli.read(write(tmp_path, pack(lines_of(OBJECTS).encode())))
    assert pairs == [
        Pair(
            "A person on a horse jumps.", "A person is training a horse.", "neutral", "1.jpg#0r1n"
        ),
        Pair("It rains.", "It’s wet."),
        Pair("", "A line\u2028break"),
    ]
    assert nli.labelled(pairs) == (pairs[:1], 2)


def test_sick_with_a_header(tmp_path):
    text = HEADER + "6\tA dog runs\tNo dog runs\t3.3\tCONTRADICTION\r\n7\tA\t\t1\tNEUTRAL\r\n"
    assert nli.read(write(tmp_path, text)) == [
        Pair("A dog runs", "No dog runs", "contradiction", "6"),
        Pair("A", "", "neutral", "7"),
    ]


def test_sick_without_judgements_has_no_labels(tmp_path):
    path = write(tmp_path, "pair_ID\tsentence_A\tsentence_B\n1\tA dog runs\tIt runs\n")
    assert nli.read(path) == [Pair("A dog runs", "It runs", None, "1")]


def test_three_columns(tmp_path):
    pairs = nli.read(write(tmp_path, "a\tb\t0\nc\td\t1\ne\tf\t2"))
    assert [pair.label for pair in pairs] == ["entailment", "neutral", "contradiction"]
    assert pairs[2][:2] == ("e", "f")


def test_both_layouts_of_sick_agree(shared_data):
    folder = shared_data / "sick"
    for name, short, size in (("SICK_train", "train", 4500), ("SICK_trial", "dev", 500)):
        known = nli.read(folder / f"{name}.txt")
        assert len(known) == size
        of_texts = {(pair.premise, pair.hypothesis): pair.label for pair in known}
        for pair in nli.read(folder / f"{short}.txt"):
            assert of_texts[pair.premise, pair.hypothesis] == pair.label
    assert Counter(pair.label for pair in known) == {
        "neutral": 282,
        "entailment": 144,
        "contradiction": 74,
    }


@pytest.mark.parametrize(
    ("text", "line", "field", "problem"),
    [
        ("", None, None, "expected pairs of sentences, found none"),
        (b'{"sentence1": "\xff"}', 1, None, "expected UTF-8 text"),
        (lines_of(OBJECTS) + "{oops\n", 4, None, "expected a JSON object"),
        (r'{"sentence1": "\ud800", "sentence2": ""}', 1, None, "half of a surrogate pair"),
        ('{"sentence1": ' + "9" * 5000 + "}", 1, None, r"expected a JSON object \(Exceeds"),
        ("[" * 100_000, 1, None, "expected 3 tab-separated"),
        ('{"a": ' * 100_000, 1, None, "nested too deeply"),
        (lines_of(OBJECTS) + "[1]\n", 4, None, "expected a JSON object"),
        ('{"sentence1": "a"}\n', 1, "sentence2", "expected a text, found none"),
        ('{"sentence1": 3, "sentence2": "b"}\n', 1, "sentence1", "expected a text, found 3"),
        (
            '{"sentence1": "a", "sentence2": "b", "gold_label": 1}\n',
            1,
            "gold_label",
            "expected a text, found 1",
        ),
        ("a\tb\t0\na\tb\t3\n", 2, "label", "expected 0, 1 or 2, found '3'"),
        ("a\tb\t0\na\tb\n", 2, None, "expected 3 tab-separated fields"),
        (HEADER + "1\ta\tb\t2\n", 2, None, "expected 5 tab-separated fields, found 4"),
        ("sentence_A\tother\n", 1, "header", "expected a column sentence_B"),
    ],
)
def test_damage_is_named(tmp_path, text, line, field, problem):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=problem) as caught:
        nli.read(path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (path, line, field)


def test_words():
    assert nli.tokenize("Don't  STOP—now…", lowercase=False) == ["Don't", "STOP", "—", "now", "…"]
    assert nli.tokenize("Ärger im Café") == ["ärger", "im", "café"]
    assert nli.tokenize(" \n") == []


def test_predictions_are_pairs_again(tmp_path):
    pairs = [Pair("it rains", "it’s wet", "entailment", "7"), Pair("a", "b")]
    shares = [{"entailment": 0.75, "neutral": 0.25}, {"entailment": 0.5, "neutral": 0.5}]
    path = tmp_path / "predictions.jsonl"
    nli.write_predictions(pairs, ["entailment", "neutral"], shares, path)
    assert nli.read(path) == pairs
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert first["prediction"] == "entailment"
    assert first["probabilities"] == shares[0]
    assert "gold_label" not in second
    assert list(tmp_path.iterdir()) == [path]
