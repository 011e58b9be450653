"""`didyma clicks`: from a log to judgements that other commands train on."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from tests.applications.clicks.click_logs import simulate
from tests.cli.conftest import Run
from tests.text.texts import made

import didyma
from didyma.data.lists import Lists
from didyma.data.texts import reader as texts
from didyma.data.trec import read_qrels

CURVE = 1.0 / np.arange(1, 7)


def logged_orders(random: np.random.Generator, lists: Lists) -> np.ndarray:
    """An order of the six passages of each query that knows a little."""
    return np.argsort(-lists.y.reshape(-1, 6) + random.normal(size=(len(lists.groups), 6)), axis=1)


def write_log(folder: Path) -> None:
    """A log of texts, one of ids, and the texts of these."""
    random = np.random.default_rng(0)
    lists = made(60)
    relevance = np.where(lists.y > 0, 0.6, 0.1).reshape(-1, 6)
    orders = logged_orders(random, lists)
    events = simulate(random, relevance, CURVE, orders=orders, n_pages=60)
    assert lists.queries is not None
    with open(folder / "log.jsonl", "w") as log, open(folder / "ids.csv", "w") as ids:
        ids.write("query,document,position,clicked\n")
        for q, d, k, c in zip(*(column.tolist() for column in events)):
            text = lists.items[6 * q + d]
            record = {"query": lists.queries[q], "document": text, "position": k, "clicked": c}
            log.write(json.dumps(record) + "\n")
            ids.write(f"q{q},q{q}d{d},{k},{int(c)}\n")
    passages = [f"q{n // 6}d{n % 6}\t{text}\n" for n, text in enumerate(lists.items)]
    (folder / "passages.tsv").write_text("".join(passages))
    queries = [f"q{n}\t{text}\n" for n, text in enumerate(lists.queries)]
    (folder / "queries.tsv").write_text("".join(queries))
    with open(folder / "rows.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "qid", "docid", "good", "noise"])
        for n, label in enumerate(lists.y.tolist()):
            values = [label + random.normal() / 4, random.normal()]
            writer.writerow([0, f"q{n // 6}", f"q{n // 6}d{n % 6}", *values])
        writer.writerow([0, "q0", "unknown", 0.0, 0.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `write_log` writes; not to be changed by a test."""
    folder = tmp_path_factory.mktemp("clicks")
    write_log(folder)
    return folder


def test_a_model_of_clicks_ranks_above_the_order_that_was_logged(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    judged, model = tmp_path / "judged.jsonl", tmp_path / "model.safetensors"
    shown = run("clicks", folder / "log.jsonl", "-o", judged)
    assert "examination" in shown.stdout
    assert "converged" in shown.stdout
    assert "NOT" not in shown.stdout
    assert "360 judgements of 60 queries" in shown.stdout
    assert "60 queries, 360 documents of them, 21600 impressions" in shown.stderr
    run("rerank", "fit", judged, "-o", model, "--quick")
    test = made(80, seed=1)
    values = didyma.load(model).predict(test)
    logged = -np.argsort(logged_orders(np.random.default_rng(5), test), axis=1).ravel()
    ours, theirs = (
        didyma.evaluate(scores, test.y, qid=test.qid, measures="AP").mean("AP")
        for scores in (values, logged.astype(float))
    )
    assert ours > theirs + 0.1


def test_the_curve_is_that_of_the_users(run: Run, folder: Path, tmp_path: Path) -> None:
    for method in ("swaps", "em"):
        out = ("-o", tmp_path / "judged.jsonl", "--json", "--bootstrap", 20)
        found = json.loads(run("clicks", folder / "log.jsonl", "--method", method, *out).stdout)
        assert found["converged"]
        assert found["judgements"] == 360
        for place, own in enumerate(found["positions"]):
            assert own["position"] == place + 1
            assert own["impressions"] == 3600
            assert abs(own["examination"] - CURVE[place]) < 0.08
            assert own["low"] <= own["examination"] <= own["high"]


def test_a_page(run: Run, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = tmp_path / "clicks.html"
    out = ("-o", tmp_path / "judged.jsonl", "--html", page, "--clip", 0.4)
    shown = run("clicks", folder / "log.jsonl", *out).stdout
    text = page.read_text()
    assert text.count("<svg") == 1
    assert "Position 6 is looked at" in text
    assert "clipped: positions 3, 4, 5, 6" in text
    assert "clipped      positions 3, 4, 5, 6" in shown
    assert "<script" not in text
    run("clicks", folder / "log.jsonl", *out, "--bootstrap", 0)
    assert "95 % interval" in page.read_text()


def test_ids_become_texts(run: Run, folder: Path, tmp_path: Path) -> None:
    by_id, by_text = tmp_path / "by_id.jsonl", tmp_path / "by_text.jsonl"
    files = ("--queries", folder / "queries.tsv", "--passages", folder / "passages.tsv")
    run("clicks", folder / "ids.csv", *files, "-o", by_id)
    run("clicks", folder / "log.jsonl", "-o", by_text)
    ours, theirs = texts.read(by_id), texts.read(by_text)
    assert ours.queries == theirs.queries
    assert list(ours.items) == list(theirs.items)
    np.testing.assert_allclose(ours.y, theirs.y)
    assert ours.docid is not None
    assert ours.docid[0].startswith("q0d")
    first = json.loads(by_id.read_text().splitlines()[0])
    assert first["qid"] == "q0"
    assert {"id", "text", "label", "judged"} == first["passages"][0].keys()
    assert {"impressions", "clicks", "weight"} == first["passages"][0]["judged"].keys()
    assert ours.attributes is not None
    assert not ours.attributes.signals  # clicks make the label: nothing may learn from them


def test_grades_for_those_who_have_only_ids(run: Run, folder: Path, tmp_path: Path) -> None:
    qrels = tmp_path / "clicks.qrels"
    run("clicks", folder / "ids.csv", "-o", qrels)
    found = read_qrels(qrels)
    assert len(found) == 360
    assert set(found.relevance.tolist()) <= {0, 1, 2, 3, 4}
    model = tmp_path / "model.safetensors"
    files = ("--queries", folder / "queries.tsv", "--passages", folder / "passages.tsv")
    run("rerank", "fit", *files, "--qrels", qrels, "-o", model, "--quick")


def test_rows_of_features_are_judged(run: Run, folder: Path, tmp_path: Path) -> None:
    train, model = tmp_path / "train.csv", tmp_path / "model.safetensors"
    shown = run("clicks", folder / "ids.csv", "--rows", folder / "rows.csv", "-o", train)
    assert "left out 1 of 361 rows" in shown.stderr
    data = didyma.read(train)
    assert len(data) == 360
    assert data.y.max() == 4
    run("fit", train, "-o", model, "--loss", "ndcg")
    weights = didyma.load(model).coef_
    assert weights[0] > 3 * abs(weights[1])


def test_logs_that_cannot_tell(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("query,document,position,clicked\nq,a,1,1\nq,b,2,1\n")
    found = run("clicks", log, "-o", tmp_path / "judged.jsonl", code=1).stderr
    assert f"error: {log}: no document of a query was shown at two positions" in found
    assert not (tmp_path / "judged.jsonl").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "judged.jsonl", "--names", "docid=document"), "texts need those of the passages"),
        (("-o", "LOG"), "is an input, and would be overwritten"),
        (("-o", "none/judged.jsonl"), "there is no folder"),
        (("-o", "judged.jsonl", "--names", "position=rank"), "rank: no such name among"),
        (("-o", "x.csv", "--rows", "queries.tsv"), "error: "),
        (
            ("-o", "j.jsonl", "--min-impressions", "100000"),
            "360 with fewer than 100000 impressions",
        ),
    ],
)
def test_mistakes(
    run: Run, folder: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    names = {"LOG": folder / "ids.csv", "queries.tsv": folder / "queries.tsv"}
    given = [
        names.get(word, tmp_path / word if "." in word or "/" in word else word) for word in options
    ]
    assert said in run("clicks", folder / "ids.csv", *given, code=1).stderr


def test_roles_that_are_none(run: Run, folder: Path, tmp_path: Path) -> None:
    found = run("clicks", folder / "ids.csv", "-o", tmp_path / "x", "--names", "label=x", code=2)
    assert "expected query, qid, passage, docid, position, clicked, impression" in found.stderr
