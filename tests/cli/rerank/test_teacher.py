"""`didyma rerank distil` and `didyma rerank cascade`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

import didyma
from didyma.data.texts import json_lines
from didyma.text import Cascade
from tests.cli.conftest import Run
from tests.text.teachers.standin import reranking, serving
from tests.text.texts import made

TEACHER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    words = set(asked["query"].lower().split())
    scores = [
        len(words & set(text.lower().replace(".", "").split())) - 0.01 * len(text)
        for text in asked["documents"]
    ]
    print(json.dumps({"scores": scores}), flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "teacher.py").write_text(TEACHER)
    lists = made(25)
    json_lines.write(lists, tmp_path / "judged.jsonl")
    with open(tmp_path / "queries.jsonl", "w") as file:
        for n, query in enumerate(lists.queries or ()):
            passages = [lists.items[row] for row in lists.groups.rows_of(n)]
            file.write(json.dumps({"query": query, "passages": passages}) + "\n")
    return tmp_path


def command_of(folder: Path) -> str:
    return shlex.join([sys.executable, "-S", str(folder / "teacher.py")])


def test_distil_by_a_command(run: Run, folder: Path) -> None:
    words = ["rerank", "distil", "queries.jsonl", "--teacher", command_of(folder), "--quick"]
    shown = run(*words, "-o", "small.safetensors")
    assert "the teacher's scores of 20 queries and judgements of 0" in shown.stdout
    assert "held-out queries, by the teacher's scores" in shown.stdout
    assert (folder / "small.safetensors.scores").is_dir()
    found = json.loads(run(*words, "-o", "small.safetensors", "--json").stdout)
    assert found["n_taught"] == 20
    assert found["kept"][0]["means"]["teacher"] == pytest.approx(1.0)
    ranked = didyma.TextReranker.load("small.safetensors").rank("ship", ["a tree", "a ship"])
    assert ranked[0].text == "a ship"


def test_distil_with_judgements_by_an_endpoint(run: Run, folder: Path) -> None:
    with serving(reranking) as server:
        words = ["--teacher", f"{server.address}/v1/rerank", "--judged", "judged.jsonl", "--quick"]
        shown = run("rerank", "distil", "queries.jsonl", *words, "--json")
    found = json.loads(shown.stdout)
    assert (found["n_taught"], found["n_judged"]) == (20, 20)
    assert [own["judged_by"] for own in found["kept"]] == ["judgements", "the teacher's scores"]


def test_a_teacher_that_fails_is_one_line(run: Run, folder: Path) -> None:
    words = ["rerank", "distil", "queries.jsonl", "--quick", "--teacher"]
    for teacher, problem in (
        ("/nowhere/teacher", "No such file"),
        ("http://127.0.0.1:9/other", "ends in one of"),
        (f"{shlex.quote(sys.executable)} -c 'input(); print([1])'", "expected"),
    ):
        shown = run(*words, teacher, code=1)
        assert problem in shown.stderr
        assert "Traceback" not in shown.stderr


def test_cascade_is_tuned_drawn_and_saved(run: Run, folder: Path) -> None:
    run("rerank", "fit", "judged.jsonl", "--quick", "-o", "model.safetensors")
    words = ["rerank", "cascade", "model.safetensors", "--teacher", command_of(folder)]
    shown = run(*words, "judged.jsonl", "--budget", "4", "--plot", "curve.svg")
    assert "threshold" in shown.stdout
    assert "<svg" in (folder / "curve.svg").read_text()
    loaded = didyma.load("cascade.didyma.safetensors")
    assert isinstance(loaded, Cascade)
    assert loaded.budget == 4
    assert loaded.teacher_name == command_of(folder)
    found = json.loads(run(*words, "queries.jsonl", "--json").stdout)
    assert found["curve"]["measure"] == "nDCG"
    assert len(found["curve"]["by_depth"]) == 10
    assert "ends in" in run(*words, "judged.jsonl", "--plot", "curve.gif", code=1).stderr
