"""Versions that are served, and requests that change something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from didyma.judgements import JudgementStore
from didyma.model import version_of
from didyma.serve.access import BearerTokens
from didyma.serve.app import Service
from didyma.serve.responses import HTTPError
from didyma.serve.served import NamedSource, ServedModels
from didyma.text.text_reranker import TextReranker
from tests.serve.conftest import BODY, running, trained_service
from tests.text.texts import made

TOKEN = {"authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three models."""
    folder = tmp_path_factory.mktemp("versions")
    paths = [folder / f"{seed}.safetensors" for seed in range(3)]
    for seed, path in enumerate(paths):
        TextReranker(quick=True).fit(made(6, seed)).save(path)
    return paths


def load_all(models: ServedModels, files: list[Path], path: Path) -> list[str]:
    """Put models in place of each other, as a deployment does; their versions."""
    for file in files[1:]:
        path.write_bytes(file.read_bytes())
        models.reload("model")
    return [version_of(file).id for file in files]


@pytest.fixture
def service(files: list[Path], tmp_path: Path) -> Service:
    path = tmp_path / "model.safetensors"
    path.write_bytes(files[0].read_bytes())
    return trained_service(path, tokens=BearerTokens(["secret"]))


def test_an_answer_says_which_version_it_is_of(service: Service, files: list[Path], caplog: Any):
    (first, *_) = [version_of(file) for file in files]
    with running(service) as client, caplog.at_level("INFO", "didyma.serve"):
        found = client.post("/v2/rerank", json=BODY, headers=TOKEN)
        assert found.headers["x-model-version"] == first.id
        info = client.get("/info", headers=TOKEN).json()["models"]["model"]
        assert info["version"] == first.to_dict()
        metrics = client.get("/metrics", headers=TOKEN).text
        assert f'didyma_model_info{{created="{first.created}",model="model"' in metrics
        assert f'version="{first.id}"' in metrics
    (logged,) = [own.fields for own in caplog.records if own.getMessage() == "request"]
    assert logged["version"] == first.id


def test_a_rollback_is_one_call(service: Service, files: list[Path], tmp_path: Path):
    versions = load_all(service.models, files, tmp_path / "model.safetensors")
    with running(service) as client:

        def served() -> str:
            return client.post("/v2/rerank", json=BODY, headers=TOKEN).headers["x-model-version"]

        assert served() == versions[2]
        found = client.post("/v1/rollback", json={}, headers=TOKEN)
        assert found.json() == {"model": "model", "version": versions[1], "before": versions[2]}
        assert served() == versions[1]
        assert not service.models.changed()  # so that the file is not loaded again
        assert client.post("/v1/rollback", json={}, headers=TOKEN).json()["version"] == versions[0]
        again = client.post("/v1/rollback", json={}, headers=TOKEN)
        assert again.status_code == 404
        assert "there is none" in again.json()["message"]


def test_a_version_can_be_named_and_k_are_kept(files: list[Path], tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(files[0].read_bytes())
    models = ServedModels([NamedSource(path, None)], keep=1)
    versions = load_all(models, files, path)
    assert [own.version for own in models.versions("model")] == versions[1:]
    with pytest.raises(HTTPError, match=versions[1]):
        models.roll_back("model", versions[0])
    assert models.roll_back("model", versions[1]).version == versions[1]
    models.reload("model")  # the rolled-back one again: what was before it is kept
    assert [own.version for own in models.versions("model")] == versions[1:]
    models.reload("model")  # the same content is no further version
    assert [own.version for own in models.versions("model")] == versions[1:]


def test_nobody_changes_a_server_without_tokens(files: list[Path]):
    with running(trained_service(files[0])) as client:
        assert client.post("/v1/rollback", json={}).status_code == 403
        assert "/v1/rollback" not in client.get("/openapi.json").json()["paths"]
    with running(trained_service(files[0], tokens=BearerTokens(["secret"]))) as client:
        assert client.post("/v1/rollback", json={}).status_code == 401
        assert client.post("/v1/rollback", json=[], headers=TOKEN).status_code == 400


def test_judgements_are_kept_for_who_has_a_token(files: list[Path], tmp_path: Path):
    store = JudgementStore(tmp_path / "judgements")
    service = trained_service(files[0], tokens=BearerTokens(["secret"]), judgements=store)
    said = {"query": "who?", "document": "d1", "label": 1, "who": "page", "shown": ["d1", "d2"]}
    with running(service) as client:
        assert client.get("/info", headers=TOKEN).json()["judgements"] is True
        assert client.post("/v1/judgements", json={"judgements": [said]}).status_code == 401

        def send(*judgements: dict[str, Any]) -> Any:
            return client.post("/v1/judgements", json={"judgements": judgements}, headers=TOKEN)

        assert send(said, said | {"label": None}).json() == {"stored": 2}
        refused = send(said, said | {"document": " "})
        assert refused.status_code == 400
        assert "document: expected a text" in refused.json()["message"]
    assert [(own.document, own.label, own.shown) for own in store] == [
        ("d1", 1, ("d1", "d2")),
        ("d1", None, ("d1", "d2")),
    ]


def test_judgements_are_not_kept_unless_asked_for(service: Service):
    with running(service) as client:
        assert client.get("/info", headers=TOKEN).json()["judgements"] is False
        found = client.post("/v1/judgements", json={"judgements": []}, headers=TOKEN)
        assert found.status_code == 404
