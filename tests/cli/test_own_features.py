"""Models with featurisers of a user's own on the command line and behind the server."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from didyma import Reranker, SVMRanker
from didyma.data.texts import json_lines
from didyma.errors import ModelFileError
from didyma.serve.app import Service
from didyma.serve.served import NamedSource, ServedModels
from didyma.text.reranker import load_reranker
from tests.cli.conftest import Run
from tests.serve.conftest import running
from tests.text.own_features import Shared
from tests.text.texts import made

PATH = "tests.text.own_features:Shared"
TRUST = ("--trust", PATH)


@pytest.fixture(scope="module", params=[None, "length"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "model.didyma.safetensors"
    Reranker(Shared(), SVMRanker(C=1.0), gate=request.param).fit(made(20)).save(path)
    return path


def is_gated(model: Path) -> bool:
    return load_reranker(model, [PATH]).gate_ is not None


def test_commands_take_it_with_consent(model: Path, run: Run, tmp_path: Path) -> None:
    json_lines.write(made(10, seed=1), data := tmp_path / "test.jsonl")
    (passages := tmp_path / "passages.txt").write_text(
        "It is late.\nThe ship of the storm sails.\n"
    )
    asked = ("--query", "which ship sails?", passages, "--json")
    for command, *arguments in (("rank", data), ("eval", data), ("explain", *asked)):
        refused = run("rerank", command, model, *arguments, code=1)
        assert f"--trust {PATH}" in refused.output
    ranked = json.loads(run("rerank", "rank", model, *asked, *TRUST).stdout)["queries"][0]
    assert ranked["passages"][0]["text"] == "The ship of the storm sails."
    compared = json.loads(run("rerank", "eval", model, data, "--json", *TRUST).stdout)
    names = [system["name"] for system in compared["systems"]]
    assert names == (["length", "reranker"] if is_gated(model) else ["reranker"])
    assert compared["drift"] is None
    why = json.loads(run("rerank", "explain", model, *asked, *TRUST).stdout)["passages"][0]
    assert {part["name"] for part in why["contributions"]} == {"shared", "length"}
    if not is_gated(model):
        precise = run("rerank", "rank", model, data, "--precision", ".5", *TRUST, code=1)
        assert "precision: the scores of this model are not calibrated" in precise.output
    refused = run("rerank", "rank", model, data, "--vectors", "wordllama", *TRUST, code=1)
    assert "its features are its own: leave out --vectors" in refused.output


def test_it_is_served_with_consent(model: Path) -> None:
    sources = [NamedSource(model, None)]
    with pytest.raises(ModelFileError, match=f"--trust {PATH}"):
        ServedModels(sources)
    served = ServedModels(sources, partial(load_reranker, trust=[PATH]))
    with running(Service(served)) as client:
        documents = ["It is late.", {"text": "The ship of the storm sails.", "id": "s"}]
        body = {"query": "which ship sails?", "documents": documents, "explain": True}
        found = client.post("/v2/rerank", json=body)
        assert found.status_code == 200, found.text
        assert [one["index"] for one in found.json()["results"]] == [1, 0]
        (info,) = client.get("/info").json()["models"].values()
        assert ("length" in info["verdict"]) == is_gated(model)
        assert bool(info["thresholds"]) == is_gated(model)
