"""Programs as teachers."""

from __future__ import annotations

import pickle
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.text.teachers import CommandTeacher

QUERY, DOCUMENTS = "who ünd what", ["no", "she wrote it"]

LENGTHS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    with open("count.txt", "a") as file:
        file.write(asked["query"] + "\\n")
    print(json.dumps({"scores": [len(text) for text in asked["documents"]]}), flush=True)
"""


def program(folder: Path, code: str) -> CommandTeacher:
    path = folder / "teacher.py"
    path.write_text(code)
    return CommandTeacher(shlex.join([sys.executable, "-S", str(path)]))


def test_one_process_answers_all_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    teacher = program(tmp_path, LENGTHS)
    np.testing.assert_array_equal(teacher.score(QUERY, DOCUMENTS), [2.0, 12.0])
    process = teacher._process
    np.testing.assert_array_equal(teacher.score("b", ["x" * 100_000]), [100_000.0])
    assert teacher._process is process
    copied = pickle.loads(pickle.dumps(teacher))
    np.testing.assert_array_equal(copied.score("c", DOCUMENTS), [2.0, 12.0])
    copied.close()
    teacher.close()
    assert process is not None
    assert process.poll() is not None
    assert (tmp_path / "count.txt").read_text(encoding="utf-8").split("\n")[0] == QUERY


def test_a_list_is_an_answer_too(tmp_path: Path) -> None:
    teacher = program(tmp_path, "for _ in open(0): print('[1, 2]', flush=True)")
    np.testing.assert_array_equal(teacher.score(QUERY, DOCUMENTS), [1.0, 2.0])
    teacher.close()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import sys; sys.exit(3)", "ended with code 3"),
        ("input(); print('hello', flush=True); input()", "expected a line of JSON"),
        ("input(); print('[1]', flush=True); input()", "expected 2 scores"),
        ("input(); print('{}', flush=True); input()", "expected 2"),
        ("input(); print('[1, NaN]', flush=True); input()", "finite"),
    ],
)
def test_a_program_that_fails_says_how(tmp_path: Path, code: str, problem: str) -> None:
    teacher = program(tmp_path, code)
    with pytest.raises(DataError, match=problem):
        teacher.score(QUERY, DOCUMENTS)
    teacher.close()


def test_a_slow_program_is_ended_and_started_again(tmp_path: Path) -> None:
    teacher = program(
        tmp_path,
        "import sys, time\nfor line in sys.stdin:\n    time.sleep(600 if 'slow' in line else 0)\n"
        "    print('[1, 2]', flush=True)",
    )
    with pytest.raises(DataError, match="no answer after"):
        teacher.score("slow", DOCUMENTS, timeout=0.2)
    assert teacher._process is None
    np.testing.assert_array_equal(teacher.score("quick", DOCUMENTS), [1.0, 2.0])
    teacher.close()


def test_what_cannot_be_started() -> None:
    with pytest.raises(DataError, match="No such file"):
        CommandTeacher("/nowhere/teacher").score(QUERY, DOCUMENTS)
    for command in ("", "python 'unclosed"):
        with pytest.raises(DataError, match="teacher"):
            CommandTeacher(command)
