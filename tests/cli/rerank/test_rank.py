"""`didyma rerank rank` and `explain`: rankings and reasons."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from didyma.cli import app
from didyma.data.texts import reader as texts
from didyma.data.trec import read_run
from tests.cli.conftest import Run

PASSAGES = "It rains today .\nThe castle of Belaford was built by Ada Falk .\nA clock has hands .\n"
QUERY = "who built the castle of Belaford ?"


def test_rankings_in_three_formats(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    lists = texts.read(data / "test.tsv")
    for name in ("ranked.jsonl", "ranked.tsv.gz", "ranked.run"):
        found = run("rerank", "rank", model, data / "test.tsv", "-o", tmp_path / name)
        assert f"{len(lists)} passages for {len(lists.groups)} queries" in found.stderr
    by_objects, by_table = (
        texts.read(tmp_path / name) for name in ("ranked.jsonl", "ranked.tsv.gz")
    )
    assert list(by_objects.items) == list(by_table.items)
    assert by_objects.queries == by_table.queries == lists.queries
    assert sorted(by_objects.items) == sorted(lists.items)
    assert by_objects.scores is not None
    assert by_objects.docid is not None
    for n in range(len(by_objects.groups)):
        own = by_objects.scores[by_objects.groups.starts[n] : by_objects.groups.starts[n + 1]]
        assert (np.diff(own) <= 0).all()
        assert ((own > 0) & (own < 1)).all()
    order = read_run(tmp_path / "ranked.run")
    pairs = set(zip(order.qid.tolist(), order.docid.tolist()))
    assert pairs == set(zip(by_objects.qid.tolist(), by_objects.docid.tolist()))
    short = run("rerank", "rank", model, data / "test.tsv", "--top-k", 1).stdout.splitlines()
    assert short[0].split("\t") == [
        "qid",
        "rank",
        "score",
        "probability",
        "docid",
        "query",
        "passage",
    ]
    assert len(short) == 1 + len(lists.groups)


def test_one_query(run: Run, data: Path, model: Path) -> None:
    arguments = ["rerank", "rank", str(model), "--query", QUERY]
    table = run(*arguments, data / "passages.txt").stdout.splitlines()
    assert table[0] == "rank\tscore\tprobability\tdocid\tpassage"
    assert table[1].endswith("1-2\tThe castle of Belaford was built by Ada Falk .")
    piped = CliRunner().invoke(app, arguments, input=PASSAGES)
    assert piped.stdout.splitlines() == table
    lines = [{"id": f"p{n}", "text": line} for n, line in enumerate(PASSAGES.splitlines())]
    lines[1]["year"] = "1375"
    given = "\n".join(map(json.dumps, lines))
    (first,) = json.loads(CliRunner().invoke(app, [*arguments, "--json"], input=given).stdout)[
        "queries"
    ]
    best, *_ = first["passages"]
    assert (best["id"], best["rank"], best["year"]) == ("p1", 1, "1375")
    titled = '{"_id": 3, "title": "Belaford", "passage": "A castle ."}'
    found = CliRunner().invoke(app, [*arguments, "--json"], input=titled)
    (only,) = json.loads(found.stdout)["queries"][0]["passages"]
    assert (only["id"], only["text"]) == ("3", "Belaford A castle .")


def test_thresholds(run: Run, data: Path, model: Path) -> None:
    arguments = ("rerank", "rank", model, data / "passages.txt", "--query", QUERY)
    every = run(*arguments).stdout.splitlines()[1:]
    scores = [float(line.split("\t")[1]) for line in every]
    cut = run(*arguments, "--threshold", (scores[0] + scores[1]) / 2).stdout.splitlines()[1:]
    assert cut == every[:1]
    found = run(*arguments, "--threshold", 1)
    assert found.stdout.splitlines()[1:] == []
    assert "1 of 1 queries have no passage that reaches the threshold" in found.stderr
    found = run(*arguments, "--precision", 0.2)
    assert re.search(r"threshold 0\.\d+: with 90% confidence 20% of a query's", found.stderr)


def test_explanations(run: Run, data: Path, model: Path) -> None:
    arguments = ("rerank", "explain", model, data / "passages.txt", "--query", QUERY)
    text = run(*arguments, "--top-k", 2).stdout
    assert "1. score 0." in text
    assert "2. score 0." in text
    assert "raw score" in text
    assert "[castle" in text
    (best,) = json.loads(run(*arguments, "--json").stdout)["passages"]
    total = best["intercept"] + sum(part["amount"] for part in best["contributions"])
    assert total == pytest.approx(best["raw"])
    assert best["text"][best["spans"][0]["start"] : best["spans"][0]["stop"]].split()[0] in QUERY


def test_a_first_stage_is_asked_for_again(run: Run, data: Path, tmp_path: Path) -> None:
    lists = texts.read(data / "train.tsv")
    assert lists.queries is not None
    noise = np.random.default_rng(0).normal(size=len(lists)).round(3)
    rows = zip(lists.groups.codes.tolist(), lists.items, lists.y.tolist(), noise.tolist())
    lines = [f"{lists.queries[q]}\t{text}\t{y}\t{y + score}" for q, text, y, score in rows]
    scored, model = tmp_path / "scored.tsv", tmp_path / "model.safetensors"
    scored.write_text("\n".join(["query\tpassage\tlabel\tscore", *lines]) + "\n")
    shown = run("rerank", "fit", scored, "-o", model, "--quick").stdout
    assert "of z-sum, the best of 5 orders that need no training" in shown
    assert run("rerank", "rank", model, scored, "--top-k", 1).stdout
    for command in ("rank", "eval"):
        said = run("rerank", command, model, data / "test.tsv", code=1).stderr
        assert "test.tsv, scores: expected the first stage's scores, found none" in said
    given = '{"text": "It rains .", "score": 2}\n{"text": "No .", "score": 1}\n'
    arguments = ["rerank", "rank", str(model), "--query", "does it rain ?"]
    assert CliRunner().invoke(app, arguments, input=given).exit_code == 0


def test_scores_beside_passages_may_be_of_no_use(
    run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    objects = [{"text": text, "score": 1.0} for text in PASSAGES.splitlines()]
    scored = tmp_path / "scored.jsonl"
    scored.write_text("".join(json.dumps(own) + "\n" for own in objects))
    for command in ("rank", "explain"):
        found, expected = (
            run("rerank", command, model, passages, "--query", QUERY, "--json").stdout
            for passages in (scored, data / "passages.txt")
        )
        assert found == expected
    (tmp_path / "plain.tsv").write_text("query\tpassage\nwho is it ?\tit is me\n")
    (tmp_path / "scored.tsv").write_text("query\tpassage\tscore\nwho is it ?\tit is me\t3\n")
    found, expected = (
        run("rerank", "rank", model, tmp_path / name).stdout for name in ("scored.tsv", "plain.tsv")
    )
    assert found == expected


def test_precision_says_whether_it_is_guaranteed(run: Run, pair: Path) -> None:
    model, data = pair / "new.safetensors", pair / "test.jsonl"
    found = run("rerank", "rank", model, data, "--precision", 0.5)
    assert "with 90% confidence 50% of a query's answers are relevant" in found.stderr
    found = run("rerank", "rank", model, data, "--precision", 0.9)
    assert "no guarantee: too few held-out queries to guarantee 0.9" in found.stderr
    assert "threshold" in found.stderr
