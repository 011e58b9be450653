"""A folder that several processes add to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from didyma.errors import DataError
from didyma.judgements import Judgement, JudgementStore

WRITER = """
import sys
from didyma.judgements import Judgement, JudgementStore
store, who = JudgementStore(sys.argv[1]), sys.argv[2]
for n in range(20):
    store.add([Judgement("q" * 300, f"d{n}-{k}", k, who=who) for k in range(3)])
"""


def test_several_processes_add_at_once(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "s"), who]) for who in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    said = list(JudgementStore(tmp_path / "s"))
    assert len(said) == 180
    for who in "abc":
        order = [own.document for own in said if own.who == who]
        assert order == [f"d{n}-{k}" for n in range(20) for k in range(3)]
    batches = [said[n : n + 3] for n in range(0, 180, 3)]
    assert all(len({own.who for own in batch}) == 1 for batch in batches)  # none is torn apart


def test_a_line_that_was_only_begun_does_not_count(tmp_path: Path) -> None:
    store = JudgementStore(tmp_path)
    store.add([Judgement("q", "d", 1)])
    with open(tmp_path / "judgements.jsonl", "a") as file:
        file.write('{"query": "q", "docum')
    assert len(store) == 1
    store.add([Judgement("q", "e", 0)])
    assert [own.document for own in store] == ["d", "e"]


def test_damage_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "judgements.jsonl").write_text(
        '{"query": "q", "document": "d", "label": 1}\n{"query": "q", "document": "d"}\n'
    )
    with pytest.raises(DataError, match=r"judgements\.jsonl, line 2, label: expected it"):
        list(JudgementStore(tmp_path))
    (tmp_path / "judgements.jsonl").write_text("[]\n")
    with pytest.raises(DataError, match=r"line 1: expected a JSON object"):
        list(JudgementStore(tmp_path))
    with pytest.raises(DataError, match="expected a folder with"):
        JudgementStore.open(tmp_path / "none")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"label": "good"}, "label"),
        ({"label": float("nan")}, "label"),
        ({"query": " "}, "query: expected a text"),
        ({"when": "yesterday"}, "when: expected a time"),
        ({"shown": "all"}, "shown: expected a list"),
        ({"colour": 1}, "found 'colour'"),
    ],
)
def test_nonsense_is_refused(changed: dict, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        Judgement.of({"query": "q", "document": "d", "label": 1} | changed)
