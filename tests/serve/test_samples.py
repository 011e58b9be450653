"""Requests that are kept to be judged."""

from __future__ import annotations

import json
import stat
import threading

import pytest

from didyma.errors import DataError
from didyma.ranking import Ranked
from didyma.serve.samples import SampleFile, record_of, redaction


def hide(record: dict) -> dict | None:
    """Drop questions with numbers, hide names in others."""
    if any(sign.isdigit() for sign in record["query"]):
        return None
    return {**record, "query": record["query"].replace("Ida", "…")}


def test_a_record_has_what_was_answered():
    ranking = [Ranked(3, 0.9, id=7, text="a", probability=0.6), Ranked(1, 0.2, text="b")]
    record = record_of("words", "0123", "who?", ranking)
    assert record.pop("time").endswith("+00:00")
    assert record == {
        "model": "words",
        "version": "0123",
        "query": "who?",
        "documents": [
            {"id": "7", "text": "a", "score": 0.9, "probability": 0.6},
            {"text": "b", "score": 0.2, "probability": None},
        ],
    }


def test_redaction_comes_before_writing(tmp_path):
    samples = SampleFile(tmp_path / "s.jsonl", 1.0, redact=redaction(f"{__name__}:hide"))
    samples.write({"query": "where is Ida?"})
    samples.write({"query": "my number is 5"})
    with pytest.raises(KeyError):
        samples.write({})
    assert samples.path.read_text() == '{"query":"where is …?"}\n'
    assert samples.outcomes == {"written": 1, "left out": 1, "failed": 1}


def test_only_the_owner_reads_the_file_and_it_is_bounded(tmp_path):
    samples = SampleFile(tmp_path / "s.jsonl", 1.0, n_bytes=100)
    for _ in range(10):
        samples.write({"query": "x" * 20})
    assert stat.S_IMODE(samples.path.stat().st_mode) == 0o600
    assert samples.path.stat().st_size <= 100
    assert samples.outcomes == {"written": 3, "full": 7}


def test_several_writers_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "s.jsonl"
    files = [SampleFile(path, 1.0) for _ in range(4)]

    def write(samples: SampleFile, name: str) -> None:
        for _ in range(50):
            samples.write({"query": name * 1000})

    threads = [
        threading.Thread(target=write, args=(samples, "abcd"[n])) for n, samples in enumerate(files)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    queries = [json.loads(line)["query"] for line in path.read_text().splitlines()]
    assert len(queries) == 200
    assert {len(set(query)) for query in queries} == {1}


def test_the_share_is_that_of_the_draws(tmp_path):
    draws = iter([0.0, 0.005, 0.01, 0.5])
    samples = SampleFile(tmp_path / "s.jsonl", 0.01, draw=lambda: next(draws))
    assert [samples.chooses() for _ in range(4)] == [True, True, False, False]


def test_what_cannot_be_is_told_at_once(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        SampleFile(tmp_path / "none" / "s.jsonl", 0.1)
    with pytest.raises(DataError, match="share"):
        SampleFile(tmp_path / "s.jsonl", 2.0)
    for name, said in [("json", "MODULE:FUNCTION"), ("json:no", "imported"), ("x.y:z", "imported")]:
        with pytest.raises(DataError, match=said):
            redaction(name)
    with pytest.raises(DataError, match="function"):
        redaction("json:__name__")
