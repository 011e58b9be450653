"""`didyma rerank eval` and `compare`, and rerankers in `didyma compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import didyma
from didyma.data.texts import reader as texts
from tests.cli.conftest import Run
from tests.text.texts import made


def test_eval_compares_with_the_order_before(run: Run, data: Path, model: Path) -> None:
    shown = json.loads(run("rerank", "eval", model, data / "test.tsv", "--json").stdout)
    before, after = shown["systems"]
    assert before["name"] == shown["baseline"]
    assert shown["measure"] == "AP"
    assert shown["n_queries"] + shown["left_out"] == len(texts.read(data / "test.tsv").groups)
    assert shown["drift"]["verdict"]
    every = json.loads(run("rerank", "eval", model, data / "test.tsv", "--all", "--json").stdout)
    assert every["left_out"] == 0
    text = run("rerank", "eval", model, data / "test.tsv", "--measures", "RR").stdout
    assert after["name"] in text
    assert "of RR against" in text
    assert "left out" in text


def test_drift_is_said(run: Run, model: Path, tmp_path: Path) -> None:
    path, learned = tmp_path / "far.tsv", tmp_path / "learned"
    lines, random = ["query\tpassage\tlabel"], np.random.default_rng(0)
    for n in range(60):
        asked = " ".join(f"word{k}" for k in random.integers(20, size=9))
        for k in range(6):
            long = " ".join(f"word{k}" for k in random.integers(40, size=random.integers(5, 300)))
            lines.append(f"{n} {asked}\t{long}\t{int(k == 0)}")
    path.write_text("\n".join(lines) + "\n")
    reranker = didyma.TextReranker(quick=True).fit(made())
    assert reranker.gate_.passed
    reranker.save(learned)
    warning = "warning: these queries are not like those of training"
    for command in ("eval", "rank"):
        assert warning in run("rerank", command, learned, path).stderr
    # This one has kept the order of BM25, which it can do no harm to; probabilities may be off.
    assert not didyma.load(model).gate_.passed
    found = run("rerank", "eval", model, path, "--json")
    assert f"{warning}: uncalibrated: the order rests little on" in found.stderr
    assert json.loads(found.stdout)["drift"]["level"] == "uncalibrated"


def test_two_rerankers_are_compared_on_what_neither_has_seen(run: Run, pair: Path) -> None:
    models = pair / "old.safetensors", pair / "new.safetensors"
    found = run("rerank", "compare", *models, pair / "all.jsonl", "--json")
    document = json.loads(found.stdout)
    assert document["left_out"]["seen in training"] == 20
    assert document["measures"][0]["queries"] <= 20
    assert document["promote"] == (document["measures"][0]["low"] > 0)
    html = pair / "page.html"
    same = run("rerank", "compare", *models, pair / "test.jsonl", "--html", html)
    assert document["verdict"] in same.stdout
    assert html.exists()
    code = 0 if document["promote"] else 3
    run("rerank", "compare", *models, pair / "test.jsonl", "--if-better", code=code)
    refused = run("rerank", "compare", *models[::-1], pair / "none.jsonl", code=1)
    assert "none.jsonl" in refused.stderr


def test_compare_takes_rerankers(run: Run, pair: Path) -> None:
    models = pair / "old.safetensors", pair / "new.safetensors"
    found = run("compare", "--data", pair / "all.jsonl", *models)
    assert "old.safetensors: 6 of 40 queries were in its training" in found.stderr
    assert found.stdout.split()[0] == "system"
    assert "AP" in found.stdout


def test_eval_shows_queries_and_writes_a_page(run: Run, pair: Path, tmp_path: Path) -> None:
    model, data = pair / "new.safetensors", pair / "test.jsonl"
    found = run("rerank", "eval", model, data, "--per-query", "--html", tmp_path / "p.html")
    assert (tmp_path / "p.html").exists()
    document = json.loads(run("rerank", "eval", model, data, "--per-query", "--json").stdout)
    assert len(document["queries"]) == document["n_queries"]
    assert document["queries"][0]["query"] in found.stdout
    assert set(document["queries"][0]["reranker"]) == {"AP", "RR", "nDCG@10"}
