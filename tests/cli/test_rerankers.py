"""Rerankers that commands are given: encoders, vectors that are kept, features of a user's own."""

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
from didyma.text import VectorStore
from didyma.text.encoders import resolution
from didyma.text.reranker import load_reranker
from tests.cli.conftest import Run
from tests.serve.conftest import running
from tests.text.own_features import Shared
from tests.text.texts import Counting, made, yes_or_no

ENCODER = ("--encoder", "fastembed:yes")
PATH = "tests.text.own_features:Shared"
TRUST = ("--trust", PATH)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """What the name above stands for."""
    encoder = Counting()
    monkeypatch.setitem(resolution.FETCHING, "fastembed", lambda name: encoder)
    return encoder


def test_vectors_are_kept_and_the_budget_is_told(
    run: Run, encoder: Counting, tmp_path: Path
) -> None:
    lists, model, store = yes_or_no(), tmp_path / "model.safetensors", tmp_path / "store"
    data = tmp_path / "train.jsonl"
    json_lines.write(lists, data)
    kept = (*ENCODER, "--store", store)
    fitted = run("rerank", "fit", data, "-o", model, "--quick", *kept)
    assert len(VectorStore(store)) == len(lists)
    assert "meaning" in fitted.stdout
    for command in ("rank", "eval"):
        encoder.asked.clear()
        told = run("rerank", command, model, data, *kept, "--embed-budget", 0).stderr
        assert not set(encoder.asked) & set(lists.items)
        assert "no vector" not in told
    without = (*ENCODER, "--embed-budget", 2)
    told = run("rerank", "rank", model, data, *without).stderr
    note = "no vector: 1 of 3 documents, counted as the median in training"
    assert f"query 0: {note} (and 11 such notes)" in told
    (tmp_path / "one.txt").write_text("no\nyes\nnay\n")
    told = run("rerank", "rank", model, tmp_path / "one.txt", "--query", "does it?", *without)
    assert note in told.stderr
    wrong = run("rerank", "fit", data, "--store", store, code=2).output
    assert "nothing is kept without --encoder" in wrong


def test_a_folder_is_asked_by_meaning(
    run: Run, encoder: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("didyma.text.index.cache_home", lambda: tmp_path / "caches")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("yes, they float")
    (tmp_path / "notes" / "b.txt").write_text("no, never")
    found = run("ask", tmp_path / "notes", "does it?", "-k", 1, *ENCODER)
    assert "yes, they float" in found.stdout
    assert "in the order of BM25 and meaning" in found.stderr
    run("index", tmp_path / "notes", "-o", tmp_path / "plain")
    refused = run("ask", tmp_path / "plain", "does it?", *ENCODER, code=1)
    assert "has no vectors of its passages" in refused.stderr
    lists, model = yes_or_no(), tmp_path / "model.safetensors"
    json_lines.write(lists, tmp_path / "train.jsonl")
    run("rerank", "fit", tmp_path / "train.jsonl", "-o", model, "--quick", *ENCODER)
    found = run("ask", tmp_path / "plain", "is it never?", "--model", model, *ENCODER)
    assert "no, [never]" in found.stdout


def test_an_index_with_vectors_is_two_first_stages(
    run: Run, encoder: Counting, tmp_path: Path
) -> None:
    lists, model = yes_or_no(), tmp_path / "model.safetensors"
    rows = zip(lists.groups.codes.tolist(), lists.items, lists.y.tolist())
    passages, judged = [], []
    for n, (query, text, label) in enumerate(rows):
        passages.append(f"d{n}\t{text}\n")
        judged.append(f"q{query} 0 d{n} {label:.0f}\n")
    (tmp_path / "texts.tsv").write_text("".join(passages))
    (tmp_path / "qrels.txt").write_text("".join(judged))
    assert lists.queries is not None
    queries = [f"q{n}\t{query}\n" for n, query in enumerate(lists.queries)]
    (tmp_path / "queries.tsv").write_text("".join(queries))
    run("index", tmp_path / "texts.tsv", "-o", tmp_path / "index", *ENCODER, "--store", tmp_path)
    given = ("--queries", tmp_path / "queries.tsv", "--first-stage", tmp_path / "index")
    judged_by = ("--qrels", tmp_path / "qrels.txt")
    refused = run("rerank", "fit", *given, *judged_by, "--quick", "-o", model, code=1).stderr
    assert "fastembed:yes, which has to be attached" in refused
    fitted = run("rerank", "fit", *given, *judged_by, "--quick", "-o", model, *ENCODER).stdout
    assert "signal.dense" in fitted
    assert "signal.bm25" in fitted
    shown = run("ask", tmp_path / "index", lists.queries[0], "--model", model, *ENCODER).stdout
    assert shown.startswith("1. score 0.")


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
