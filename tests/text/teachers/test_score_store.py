"""Scores that are kept by content."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma import Lists
from didyma.errors import DataError
from didyma.text.teachers import ObjectTeacher, ScoreStore
from didyma.text.teachers.teacher import PROBES, score_rows

LISTS = Lists.of_texts(["a b", "b c", "a b"], [["x", "y y", "x"], ["x"], ["z", "x"]])
ROOT = Path(__file__).parents[3]


class Pi:
    """Scores with all digits, and a count of what was asked."""

    def __init__(self, factor: float = 1.0) -> None:
        self.asked: list[tuple[str, str]] = []
        self.factor = factor

    def __call__(self, query: str, documents: list[str]) -> list[float]:
        if query != PROBES[0]:
            self.asked += [(query, document) for document in documents]
        return [self.factor * np.pi * (1 + len(query + 3 * document)) for document in documents]


def test_a_pair_is_asked_for_once_and_kept_to_the_last_bit(tmp_path: Path) -> None:
    pi = Pi()
    teacher, everything = ObjectTeacher(pi, "pi"), np.ones(6, bool)
    expected = score_rows(teacher, LISTS, everything)
    pi.asked.clear()
    done: list[tuple[int, int]] = []
    store = ScoreStore(tmp_path / "scores")
    found = score_rows(teacher, LISTS, everything, store, lambda *own: done.append(own))
    np.testing.assert_array_equal(found, expected)
    assert pi.asked == [("a b", "x"), ("a b", "y y"), ("b c", "x"), ("a b", "z")]
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert len(store) == 4
    pi.asked.clear()
    for again in (store, ScoreStore(tmp_path / "scores"), pickle.loads(pickle.dumps(store))):
        np.testing.assert_array_equal(score_rows(teacher, LISTS, everything, again), expected)
    assert not pi.asked


def test_where_a_query_ends_counts(tmp_path: Path) -> None:
    store, teacher = ScoreStore(tmp_path), ObjectTeacher(Pi(), "pi")
    a, b = store.score(teacher, "ab", ["c"]), store.score(teacher, "a", ["bc"])
    assert a != b


def test_another_teacher_of_the_same_name_is_refused(tmp_path: Path) -> None:
    ScoreStore(tmp_path).score(ObjectTeacher(Pi(), "pi"), "a", ["b"])
    with pytest.raises(DataError, match="scores of another teacher"):
        ScoreStore(tmp_path).score(ObjectTeacher(Pi(1.5), "pi"), "a", ["b"])
    other = Pi(1.5)
    ScoreStore(tmp_path).score(ObjectTeacher(other, "tau"), "a", ["b"])
    assert other.asked == [("a", "b")]


def test_damage_is_named(tmp_path: Path) -> None:
    ScoreStore(tmp_path).score(ObjectTeacher(Pi(), "pi"), "a", ["b"])
    (path,) = tmp_path.glob("*/teacher.json")
    described = json.loads(path.read_text())
    for wrong in ("[", "{}", json.dumps({**described, "fingerprint": [1]})):
        path.write_text(wrong)
        with pytest.raises(DataError, match=r"teacher\.json"):
            ScoreStore(tmp_path).score(ObjectTeacher(Pi(), "pi"), "a", ["b"])
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="found a file"):
        ScoreStore(tmp_path / "file")


KILLED = """
import os, signal, sys
import numpy as np
from didyma.text.teachers import ObjectTeacher, ScoreStore
from didyma.text.teachers.teacher import score_rows
from tests.text.teachers.test_score_store import LISTS, Pi

class Dying(Pi):
    def __call__(self, query, documents):
        if query == "b c":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(query, documents)

score_rows(ObjectTeacher(Dying(), "pi"), LISTS, np.ones(6, bool), ScoreStore(sys.argv[1]))
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    environment: Any = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    ended = subprocess.run(command, env=environment, cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    pi = Pi()
    score_rows(ObjectTeacher(pi, "pi"), LISTS, np.ones(6, bool), ScoreStore(tmp_path))
    assert pi.asked == [("b c", "x"), ("a b", "z")]
