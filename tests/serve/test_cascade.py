"""A reranker that asks a teacher, behind the server."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path

import pytest

from didyma import DataError, TextReranker
from didyma.cli.rerankers import AskedTeacher, Embedding
from didyma.serve.app import Service
from didyma.serve.served import NamedSource, ServedModels
from didyma.text import Cascade
from tests.serve.conftest import running
from tests.text.texts import made

TEACHER = """
import json, sys
for line in sys.stdin:
    texts = json.loads(line)["documents"]
    print(json.dumps({"scores": [float("gold" in text) for text in texts]}), flush=True)
"""
DOCUMENTS = ["who wrote the book", "gold", "nothing at all"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cascade")
    (folder / "teacher.py").write_text(TEACHER)
    reranker = TextReranker(quick=True).fit(made(20))
    reranker.save(folder / "plain.safetensors")
    Cascade(reranker, "http://127.0.0.1:9/rerank", 3, threshold=1e9).save(
        folder / "cascade.safetensors"
    )
    return folder


@pytest.mark.parametrize("name", ["plain", "cascade"])
def test_the_teacher_decides_what_is_unsure(folder: Path, name: str) -> None:
    teacher = shlex.join([sys.executable, "-S", str(folder / "teacher.py")])
    asked = AskedTeacher(teacher, teacher_timeout=30.0)
    load = partial(asked.load, embedding=Embedding())
    models = ServedModels([NamedSource.of(str(folder / f"{name}.safetensors"))], load)
    with running(Service(models)) as client:
        body = {"query": "who wrote the book", "documents": DOCUMENTS}
        answer = client.post("/v1/rerank", json=body).json()
        assert next(one["index"] for one in answer["results"]) == 1
        scores = [one["relevance_score"] for one in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        assert any("teacher: asked about 3 of 3" in note for note in answer["notes"])
        assert client.get("/info").status_code == 200


def test_a_dead_teacher_costs_no_answer(folder: Path) -> None:
    load = partial(AskedTeacher("http://127.0.0.1:9/rerank").load, embedding=Embedding())
    models = ServedModels([NamedSource.of(str(folder / "plain.safetensors"))], load)
    expected = TextReranker.load(folder / "plain.safetensors").rank("who wrote the book", DOCUMENTS)
    with running(Service(models)) as client:
        body = {"query": "who wrote the book", "documents": DOCUMENTS}
        answer = client.post("/v1/rerank", json=body).json()
    assert [one["index"] for one in answer["results"]] == [one.index for one in expected]
    assert any("the order is the reranker's" in note for note in answer["notes"])


def test_a_file_does_not_decide_who_is_asked(folder: Path) -> None:
    with pytest.raises(DataError, match="expected one that you name"):
        AskedTeacher().load(folder / "cascade.safetensors", embedding=Embedding())
