"""predict, rank, eval and compare read a block at a time, and answer as if they had read all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.cli.inputs import InputColumns, scored
from didyma.data import delimited, formats, frame, letor, lists_folder
from didyma.data.lists import Lists
from didyma.data.text_columns import TextBlock
from didyma.data.trec import write_run
from didyma.learning import scoring
from didyma.metrics import evaluate
from didyma.model import Model, predictor
from tests.cli.conftest import Run, make

MODELS = ("map", "roc")  # of which the second scales within queries


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, whose ends are not those of queries."""
    monkeypatch.setattr(letor, "_sources", lambda path: lambda: TextBlock.blocks(path, 300))
    monkeypatch.setattr(delimited, "BLOCK", 5)
    monkeypatch.setattr(frame, "BLOCK", 300)
    monkeypatch.setattr(lists_folder, "BLOCK", 300)
    for module in (predictor, scoring):
        monkeypatch.setattr(module, "BLOCK", 7)


@pytest.fixture(params=["letor", "csv", "tsv.gz", "parquet", "jsonl", "npz", "lists"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"test.{request.param}"
    given = make(2)
    if request.param not in ("letor", "npz", "lists"):
        given = Lists(given.X, given.y, given.qid, given.docid, tuple("1234"))
    formats.write(given, path)
    return path


def whole(folder: Path, name: str, path: Path) -> tuple[Lists, Any]:
    model = Model.read(folder / f"{name}.didyma.safetensors")
    rows = formats.read(path, like=model)
    return rows, model.predict(rows)


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", MODELS)
def test_blocks_give_what_all_rows_give(
    run: Run, folder: Path, tmp_path: Path, data: Path, name: str
) -> None:
    model, scores, runs = folder / f"{name}.didyma.safetensors", tmp_path / "s", tmp_path / "r"
    rows, expected = whole(folder, name, data)
    lines = [f"{score!r}" for score in expected.tolist()]
    run("predict", model, data, "-o", scores)
    assert scores.read_text().splitlines() == lines
    for output in ((), ("-o", "-")):
        assert run("predict", model, data, *output).stdout.splitlines() == lines
    assert "96 documents for 12 queries" in run("rank", model, data, "-o", runs).stderr
    write_run(rows.qid, rows.docid, expected, tmp_path / "expected")
    assert runs.read_text() == (tmp_path / "expected").read_text()
    assert run("rank", model, data, "-o", "-").stdout == runs.read_text()
    run("rank", model, data, "-o", runs, "--depth", 3)
    kept = (tmp_path / "expected").read_text().splitlines(True)
    assert runs.read_text() == "".join(line for line in kept if int(line.split()[3]) <= 3)
    found = json.loads(run("eval", model, data, "--json", "--per-query").stdout)
    del found["n_queries"]
    measures = "AP, RR, P@1, nDCG@10"
    means = evaluate(expected, rows.y, rows.groups, measures, docid=rows.docid)
    assert found == means.to_dict()
    other = folder / f"{MODELS[MODELS[0] == name]}.didyma.safetensors"
    compared = run("compare", model, other, "--data", data, "--json").stdout
    assert repr(means.mean("AP")) in compared


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", MODELS)
def test_queries_in_pieces_are_put_together(
    run: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    path, model = tmp_path / "a.letor", folder / f"{name}.didyma.safetensors"
    given = make(2)
    order = np.random.default_rng(0).permutation(len(given))
    formats.write(given.select(order), path)
    rows, expected = whole(folder, name, path)
    run("predict", model, path, "-o", tmp_path / "s")
    assert (tmp_path / "s").read_text() == "".join(f"{score!r}\n" for score in expected.tolist())
    run("rank", model, path, "-o", tmp_path / "r")
    write_run(rows.qid, rows.docid, expected, tmp_path / "expected")
    assert (tmp_path / "r").read_text() == (tmp_path / "expected").read_text()
    means = evaluate(expected, rows.y, rows.groups, "AP", docid=rows.docid)
    found = json.loads(run("eval", model, path, "--measures", "AP", "--json").stdout)
    assert found["mean"]["AP"] == means.mean("AP")
    refused = run("rank", model, path, "-o", "-", code=1)  # it may have begun to flow
    assert "a.letor, qid: expected the rows of each query together" in refused.stderr


@pytest.mark.usefixtures("_small")
def test_a_fault_in_a_later_block_leaves_no_output(run: Run, folder: Path, tmp_path: Path) -> None:
    path, model = tmp_path / "a.letor", folder / "map.didyma.safetensors"
    formats.write(make(2), path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:90], lines[90].replace("2:", "2:x"), *lines[91:]]) + "\n")
    for command in ("predict", "rank"):
        found = run(command, model, path, "-o", tmp_path / "out", code=1)
        assert "a.letor, line 91, feature 2: expected a finite number" in found.stderr
    assert [*tmp_path.iterdir()] == [path]
    path.write_text("\n".join([*lines, lines[0], lines[0]]) + "\n")
    found = run("rank", model, path, "-o", tmp_path / "out", code=1)
    assert "expected each document once a query, found 'd0' again" in found.stderr
    assert "in row 97" in found.stderr


def test_only_a_block_is_held(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are scored before those after them are read."""
    path = tmp_path / "a.letor"
    formats.write(make(2, 400), path)
    for module in (predictor, scoring):
        monkeypatch.setattr(module, "BLOCK", 64)
    read = 0

    def sources(path: Path) -> Any:
        def blocks() -> Any:
            nonlocal read
            read = 0
            for source in TextBlock.blocks(path, 10_000):
                read += 1
                yield source

        return blocks

    monkeypatch.setattr(letor, "_sources", sources)
    model = Model.read(folder / "map.didyma.safetensors")
    places = scored(model, path, InputColumns(), lambda parts: [read for _ in parts])
    assert len(places) > 5
    assert places == sorted(places)
    assert places[0] < places[-1]
