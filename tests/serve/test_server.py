"""A trained model behind `didyma serve`, from its start to its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.model import version_of
from didyma.serve.dialects import dialect_of
from didyma.text.text_reranker import TextReranker
from tests.serve.conftest import running, trained_service
from tests.serve.process import ServerProcess
from tests.serve.test_dialects import NEARLY
from tests.text.texts import made

QUERY = "when does the ship of the storm sail?"
TEXTS = ["It is late.", "The ship of the storm sails in 1902.", "A ship ship ship."]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two different rerankers."""
    folder = tmp_path_factory.mktemp("models")
    paths = [folder / "first.safetensors", folder / "second.safetensors"]
    for seed, path in enumerate(paths):
        TextReranker(quick=True).fit(made(12, seed)).save(path)
    return paths


def scores(server: ServerProcess) -> list[float]:
    found = server.client.post("/v2/rerank", json={"query": QUERY, "documents": TEXTS})
    assert found.status_code == 200, found.text
    results = found.json()["results"]
    assert results[0]["index"] == 1
    return [one["relevance_score"] for one in results]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_from_start_to_end(models, tmp_path):
    path = tmp_path / "model.safetensors"
    shutil.copy(models[0], path)
    with ServerProcess(path) as server:
        first = scores(server)
        assert all(0 < score < 1 for score in first)
        ranked = TextReranker.load(path).rank(QUERY, TEXTS)
        assert first == [one.score for one in ranked]
        tei = server.client.post("/rerank", json={"query": QUERY, "texts": TEXTS}).json()
        assert [(one["index"], one["score"]) for one in tei] == [(r.index, r.score) for r in ranked]
        body = {"query": QUERY, "documents": TEXTS, "explain": True, "relevant_spans": {}}
        best, *_ = server.client.post("/v1/rerank", json=body).json()["results"]
        parts = best["explanation"]["contributions"]
        assert sum(part["amount"] for part in parts) + best["explanation"]["intercept"] == (
            pytest.approx(ranked[0].raw)
        )
        found = [TEXTS[1][span["start"] : span["end"]] for span in best["relevant_spans"]]
        assert "ship" in found
        os.replace(shutil.copy(models[1], tmp_path / "next"), path)
        server.process.send_signal(signal.SIGHUP)
        loaded = server.said("reload")
        assert (loaded["model"], loaded["version"]) == ("model", version_of(models[1]).id)
        assert scores(server) != first
        server.process.send_signal(signal.SIGTERM)
        assert server.said("ended")
        assert server.process.wait(60) == 0


@pytest.mark.skipif(os.name == "nt", reason="pipes have no names")
def test_a_pipe_in_the_place_of_a_model_is_refused(models, tmp_path):
    path = tmp_path / "model.safetensors"
    shutil.copy(models[0], path)
    with ServerProcess(path) as server:
        first = scores(server)
        os.mkfifo(tmp_path / "pipe")
        os.replace(tmp_path / "pipe", path)
        failed = server.said("reload failed")
        assert "expected a file, found a pipe or device" in failed["traceback"]
        assert scores(server) == first


@pytest.fixture(scope="module")
def client(models: list[Path]) -> Iterator[httpx.Client]:
    """A client of a trained model, served in this process."""
    with running(trained_service(models[0])) as found:
        yield found


@settings(max_examples=100)
@given(path=st.sampled_from(["/v2/rerank", "/rerank"]), body=NEARLY)
def test_no_text_is_a_fault_of_a_model(client, path, body):
    """As for the stand-in: any text is answered or refused."""
    text = json.dumps(body).encode()
    found = client.post(path, content=text)
    assert found.status_code in (200, dialect_of(path, text).invalid), found.text


def test_nothing_heavy_is_imported(models):
    """A server starts at once: neither SciPy nor scikit-learn nor pandas is waited for."""
    code = f"""
import sys
from collections.abc import Iterator
from pathlib import Path
from didyma.serve.app import Service
from didyma.serve.served import NamedSource, ServedModels
from didyma.serve.server import serve
Service(ServedModels([NamedSource(Path({str(models[0])!r}), None)]))
print(*{{"scipy.sparse", "sklearn", "pandas", "torch"}} & sys.modules.keys())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
