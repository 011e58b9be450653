"""`didyma rerank compare`, `rerank fit --against`, and rerankers in `didyma compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import didyma
from didyma.data.texts import json_lines
from didyma.model import version_of
from didyma.text.text_reranker import TextReranker
from tests.cli.conftest import Run
from tests.text.texts import made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, queries of training, and others."""
    folder = tmp_path_factory.mktemp("comparing")
    lists = made(40, 0)
    for name, numbers in {"old": range(6), "new": range(6, 20)}.items():
        TextReranker(quick=True).fit(lists.select_lists(numbers)).save(
            folder / f"{name}.safetensors"
        )
    json_lines.write(lists, folder / "all.jsonl")
    json_lines.write(lists.select_lists(range(20, 40)), folder / "test.jsonl")
    return folder


def test_two_rerankers_are_compared_on_what_neither_has_seen(run: Run, folder: Path) -> None:
    models = folder / "old.safetensors", folder / "new.safetensors"
    found = run("rerank", "compare", *models, folder / "all.jsonl", "--json")
    document = json.loads(found.stdout)
    assert document["left_out"]["seen in training"] == 20
    assert document["measures"][0]["queries"] <= 20
    assert document["promote"] == (document["measures"][0]["low"] > 0)
    html = folder / "page.html"
    same = run("rerank", "compare", *models, folder / "test.jsonl", "--html", html)
    assert document["verdict"] in same.stdout
    assert html.exists()
    code = 0 if document["promote"] else 3
    run("rerank", "compare", *models, folder / "test.jsonl", "--if-better", code=code)
    refused = run("rerank", "compare", *models[::-1], folder / "none.jsonl", code=1)
    assert "none.jsonl" in refused.stderr


def test_a_new_model_is_held_against_the_live_one(run: Run, folder: Path, tmp_path: Path) -> None:
    live, new = folder / "old.safetensors", tmp_path / "m.safetensors"
    arguments = ("rerank", "fit", folder / "all.jsonl", "--quick", "-o", new, "--against", live)
    document = json.loads(run(*arguments, "--json").stdout)
    assert document["version"]["parent"] == version_of(live).id == version_of(new).parent
    compared = document["against"]
    trained = didyma.load(new).trained_on_
    queries = [own["query"] for own in compared["queries"]]
    assert queries
    assert not trained.seen(queries).any()
    assert not didyma.load(live).trained_on_.seen(queries).any()
    assert trained.n_queries + len(queries) + compared["left_out"]["passages of one kind"] <= 40
    again = run(*arguments, "--if-better", code=0 if compared["promote"] else 3)
    assert compared["verdict"] in again.stdout
    refused = run(*arguments, "--test", folder / "test.jsonl", code=1)
    assert "20 were seen in training" in refused.stderr
    run("rerank", "fit", folder / "all.jsonl", "--if-better", code=2)


def test_compare_takes_rerankers(run: Run, folder: Path) -> None:
    models = folder / "old.safetensors", folder / "new.safetensors"
    found = run("compare", "--data", folder / "all.jsonl", *models)
    assert "old.safetensors: 6 of 40 queries were in its training" in found.stderr
    assert found.stdout.split()[0] == "system"
    assert "AP" in found.stdout


def test_runs_that_lack_queries_are_called_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("a 0 d1 1\nb 0 d1 1\n")
    (tmp_path / "one.run").write_text("a Q0 d1 1 3.0 t\n")
    (tmp_path / "two.run").write_text("a Q0 d1 1 3.0 t\nb Q0 d1 1 3.0 t\n")
    runs = tmp_path / "one.run", tmp_path / "two.run"
    found = run("compare", "--qrels", tmp_path / "qrels", *runs)
    assert "one.run: lacks 1 judged queries, which count 0: b" in found.stderr
    assert "two.run" not in found.stderr


def test_eval_shows_queries_and_writes_a_page(run: Run, folder: Path, tmp_path: Path) -> None:
    model, data = folder / "new.safetensors", folder / "test.jsonl"
    found = run("rerank", "eval", model, data, "--per-query", "--html", tmp_path / "p.html")
    assert (tmp_path / "p.html").exists()
    document = json.loads(run("rerank", "eval", model, data, "--per-query", "--json").stdout)
    assert len(document["queries"]) == document["n_queries"]
    assert document["queries"][0]["query"] in found.stdout
    assert set(document["queries"][0]["reranker"]) == {"AP", "RR", "nDCG@10"}


def test_precision_says_whether_it_is_guaranteed(run: Run, folder: Path) -> None:
    model, data = folder / "new.safetensors", folder / "test.jsonl"
    found = run("rerank", "rank", model, data, "--precision", 0.5)
    assert "with 90% confidence 50% of a query's answers are relevant" in found.stderr
    found = run("rerank", "rank", model, data, "--precision", 0.9)
    assert "no guarantee: too few held-out queries to guarantee 0.9" in found.stderr
    assert "threshold" in found.stderr
