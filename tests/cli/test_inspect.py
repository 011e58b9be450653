"""`didyma inspect`: what a model has learned, and what a data file holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from didyma import model
from tests.cli.conftest import NAMED, Run


def test_inspect_a_model(run: Run, folder: Path) -> None:
    shown = run("inspect", folder / NAMED, "--top", "2").stdout
    for text in ("SVMRanker", "loss", "ap", "converged", "train.csv", "largest weights"):
        assert text in shown
    first, second = shown.splitlines()[-2:]
    assert (first.split()[0], second.split()[0]) == ("bm25", "length")
    assert float(first.split()[1]) > 0 > float(second.split()[1])
    found = json.loads(run("inspect", folder / NAMED, "--json").stdout)
    coef = model.load(folder / NAMED).coef_
    assert [weight["weight"] for weight in found["weights"]] == sorted(coef, key=abs, reverse=True)
    assert found["feature_names"] == ["bm25", "length", "age", "clicks"]
    assert found["summary"]["train"]["rows"] == 96


def test_inspect_data(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.letor"
    path.write_text(
        "2 qid:a 1:1 2:0 # x\n0 qid:a 1:1 2:2 # x\n0 qid:b 1:1\n1 qid:c 1:1 # y\n1 qid:c 2:3 # z\n"
        "0 qid:d 1:4 # x\n0 qid:d 2:4\n"
    )
    found = json.loads(run("inspect", path, "--json").stdout)
    assert found == {
        "file": str(path),
        "rows": 7,
        "queries": 4,
        "features": 2,
        "feature_names": None,
        "categories": None,
        "storage": "dense",
        "density": round(8 / 14, 6),
        "missing_values": 0,
        "labels": {"0": 4, "1": 2, "2": 1},
        "rows_per_query": {"min": 1, "median": 2.0, "max": 2},
        "queries_without_relevant": 2,
        "queries_without_other": 1,
        "document_ids": True,
        "duplicate_document_ids": 1,
    }
    shown = run("inspect", path).stdout
    assert "queries without relevant  2" in shown
    assert "0: 4, 1: 2, 2: 1" in shown


def test_inspect_sparse_data_and_tables(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.letor"
    path.write_text("1 qid:a 1:1 100:1\n0 qid:a 2:1\n")
    found = json.loads(run("inspect", path, "--json").stdout)
    assert (found["storage"], found["density"], found["document_ids"]) == ("sparse", 0.015, False)
    assert "bm25, length, age, clicks" in run("inspect", folder / "train.csv").stdout
    found = run("inspect", folder / "train.csv", "--qid", "query", code=1)
    assert "query: no such column" in found.stderr


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "expected lines 'label qid:TEXT index:value ...', found none"),
        (b"1 qid:a 1:2\n1 qid:a 1:nan\n", "line 2, feature 1: expected a finite number"),
        (b"\x1f\x8b\x08\x00", "damaged or truncated gzip data"),
        (b"\xff\xfe\x00", "line 1"),
    ],
)
def test_inspect_bad_data(run: Run, tmp_path: Path, contents: bytes, message: str) -> None:
    path = tmp_path / "bad.letor"
    path.write_bytes(contents)
    assert message in run("inspect", path, code=1).stderr
