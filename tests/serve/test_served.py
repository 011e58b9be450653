"""Models by name, their files, and what happens when these change."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from didyma.errors import DataError
from didyma.serve.app import Service
from didyma.serve.served import NamedSource, ServedModels
from didyma.text.text_reranker import TextReranker
from tests.serve.conftest import BODY, IN_TEI, best_score, eventually, make_service, running
from tests.serve.process import ServerProcess
from tests.serve.standin import load
from tests.text.texts import made


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.safetensors" for name in ("one", "two")}
    for bonus, path in enumerate(paths.values()):
        path.write_text(str(bonus))
    return paths


def test_a_model_without_a_name_answers_to_all_others(files):
    with running(make_service(files["one"], f"second={files['two']}")) as client:
        assert best_score(client) == 1.0
        assert best_score(client, model="rerank-v3.5") == 1.0
        assert best_score(client, model="one") == 1.0
        assert best_score(client, model="second") == 2.0


def test_names_alone_are_all_there_is(files):
    with running(make_service(f"first={files['one']}", f"second={files['two']}")) as client:
        assert best_score(client) == 1.0
        assert best_score(client, model="second") == 2.0
        found = client.post("/v2/rerank", json=BODY | {"model": "third"})
        assert found.status_code == 404
        assert found.json()["message"] == "expected one of the models first, second"
        assert client.post("/rerank", json=IN_TEI | {"model": "third"}).status_code == 404


def test_names_must_tell_models_apart(files):
    with pytest.raises(DataError, match="names"):
        ServedModels([NamedSource.of(str(path)) for path in files.values()], load)
    with pytest.raises(DataError, match="different names"):
        ServedModels([NamedSource.of(f"a={path}") for path in files.values()], load)
    for text in ("=file", "name="):
        with pytest.raises(DataError, match="NAME=FILE"):
            NamedSource.of(text)


def test_a_file_with_an_equals_sign_is_a_file(tmp_path):
    path = tmp_path / "a=b.safetensors"
    path.write_text("0")
    assert NamedSource.of(str(path)) == (path, None, None)


def replace_file(path: Path, text: str) -> None:
    """Put a whole file in the place of another, so that a look at it finds the one or the other."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_a_changed_file_is_loaded_anew(model, monkeypatch):
    monkeypatch.setattr("didyma.serve.app.EVERY", 0.02)
    service = make_service(model)
    with running(service) as client:
        assert best_score(client) == 1.0
        replace_file(model, "0.5")
        eventually(lambda: best_score(client) == 1.5)
        replace_file(model, "unknown")  # a KeyError, as any fault might be
        failed = 'didyma_reloads_total{model="words",outcome="failed"} 1.0'
        eventually(lambda: failed in client.get("/metrics").text)
        model.unlink()
        time.sleep(0.1)
        assert failed in client.get("/metrics").text  # once, not at every look
        assert best_score(client) == 1.5
        replace_file(model, "0.25")
        eventually(lambda: best_score(client) == 1.25)


def test_a_file_that_is_read_for_ever_keeps_nobody_waiting(files, monkeypatch):
    monkeypatch.setattr("didyma.serve.app.EVERY", 0.02)
    gate, begun = threading.Event(), threading.Event()

    def load_or_hang(path: Path) -> Any:
        if path.read_text() == "hang":
            begun.set()
            gate.wait()
        return load(path)

    sources = [NamedSource.of(f"{name}={path}") for name, path in files.items()]
    service = Service(ServedModels(sources, load_or_hang))
    try:
        with running(service) as client:
            replace_file(files["one"], "hang")
            assert begun.wait(20)
            replace_file(files["two"], "0.5")
            eventually(lambda: best_score(client, model="two") == 1.5)
            assert best_score(client, model="one") == 1.0
    finally:  # the server has ended by now
        gate.set()


def test_a_request_keeps_the_model_that_it_began_with(model):
    service = make_service(model)
    old = service.models.by_name["words"].reranker
    with running(service) as client:
        found: list[httpx.Response] = []
        body = {"query": "wait", "documents": ["wait"]}
        url = f"{client.base_url}/v2/rerank"
        asker = threading.Thread(target=lambda: found.append(httpx.post(url, json=body)))
        asker.start()
        assert old.entered.acquire(timeout=20)
        model.write_text("0.5")
        service.models.reload("words")
        assert best_score(client) == 1.5
        old.gate.set()
        asker.join()
        assert found[0].json()["results"][0]["relevance_score"] == 1.0


def test_a_model_that_needs_scores_says_so_when_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "first.safetensors"
    TextReranker(quick=True).fit(made(12, scores=True)).save(path)
    with ServerProcess(path) as server:
        (said,) = [own for own in server.before if own["event"] == "needs scores"]
        assert said["level"] == "WARNING"
        assert said["model"] == "first"
        assert "trained with the first stage's scores" in said["reason"]
        body = {"query": "when?", "documents": ["Here."]}
        assert server.client.post("/v2/rerank", json=body).status_code == 400
