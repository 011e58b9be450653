"""Commands on data alone: convert, inspect, demo."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from didyma.data import formats
from didyma.metrics import evaluate
from didyma.report.html import Example, RankedPassage
from didyma.report.table import comparison
from tests.cli.conftest import Run, make


@pytest.mark.parametrize("name", ["b.csv", "b.tsv.gz", "b.parquet", "b.npz", "b.letor.gz", "b.txt"])
def test_convert_there_and_back(run: Run, folder: Path, tmp_path: Path, name: str) -> None:
    run("convert", folder / "train.letor", tmp_path / name)
    run("convert", tmp_path / name, tmp_path / "back.letor")
    original, back = formats.read(folder / "train.letor"), formats.read(tmp_path / "back.letor")
    np.testing.assert_array_equal(original.X, back.X)
    for column in ("y", "qid", "docid"):
        np.testing.assert_array_equal(getattr(original, column), getattr(back, column))


def test_convert_says_what_is_lost(run: Run, folder: Path, tmp_path: Path) -> None:
    found = run("convert", folder / "train.csv", tmp_path / "train.letor")
    assert "warning: a LETOR file has no place for the names of features" in found.stderr
    assert "LETOR, 96 rows, 12 queries" in found.stderr


def test_convert_refuses(run: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("label,qid,f\n1,a,2\n0,a,two\n")
    found = run("convert", path, tmp_path / "b.letor", code=1)
    assert "a.csv, line 3, f: expected a finite number, found 'two'" in found.stderr
    assert "would be overwritten" in run("convert", path, path, code=1).stderr
    assert "there is no folder" in run("convert", path, tmp_path / "x" / "b.csv", code=1).stderr
    assert "ends in .npz" in run("convert", path, tmp_path / "b.npz.gz", code=1).stderr
    assert "No such file" in run("convert", tmp_path / "none", tmp_path / "b.csv", code=1).stderr
    damaged = tmp_path / "a.parquet"
    damaged.write_bytes(b"PAR1")
    found = run("convert", damaged, tmp_path / "b.csv", code=1)
    assert "not a readable Parquet file" in found.stderr
    found = run("convert", folder / "map.didyma.safetensors", tmp_path / "b.csv", code=1)
    assert "found a model" in found.stderr
    assert sorted(tmp_path.iterdir()) == [path, damaged]


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
        "storage": "dense",
        "density": round(8 / 14, 6),
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


def test_demo_shows_the_table_and_where_the_report_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make(0)
    evaluations = {
        name: evaluate(data.X[:, k], data.y, data.groups, "AP") for k, name in enumerate("ab")
    }
    asked: dict[str, Any] = {}

    def pretend(folder: Path, *, random_state: int, report: Any) -> SimpleNamespace:
        asked.update(folder=folder, random_state=random_state)
        report("a step")
        return SimpleNamespace(
            table=comparison(evaluations),
            answers=(
                Example("who?", "", {"TextReranker": [RankedPassage(1, 3, "Ada did.", True)]}),
            ),
            files={"report": folder / "report.html"},
            next_steps=("didyma inspect x",),
        )

    monkeypatch.setattr("didyma.applications.demo.run", pretend)
    found = run("demo", "-o", tmp_path, "--seed", "3")
    assert asked == {"folder": tmp_path, "random_state": 3}
    assert found.stderr == "a step\n"
    assert found.stdout.startswith("system")
    assert f"report: {tmp_path / 'report.html'}" in found.stdout
    assert "  didyma inspect x" in found.stdout
    assert "who?\n+ 1 (was 3)   Ada did.\n" in found.stdout
    document = json.loads(run("demo", "-o", tmp_path, "--json").stdout)
    assert document["files"] == {"report": str(tmp_path / "report.html")}
