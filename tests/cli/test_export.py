"""`didyma export`: every format by name, rows of one's own, one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from didyma.cli.export import Format
from didyma.exports.export import ENGINES
from tests.cli.conftest import Run

COLUMNS = ("bm25", "length", "age", "clicks")
WORD = "{}\t{}\t_\tX\tX\t_\t0\t_\t_\t_\n"


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    from typer.testing import CliRunner

    from didyma.cli import app

    path = tmp_path_factory.mktemp("export") / "linear.safetensors"
    options = ["--scale", "standard", "--C", "1", "-o", str(path)]
    assert CliRunner().invoke(app, ["fit", str(folder / "train.csv"), *options]).exit_code == 0
    return path


def test_formats_are_those_of_the_library() -> None:
    assert sorted(get_args(Format)) == sorted(ENGINES)


@pytest.mark.parametrize("to", ["elasticsearch", "json", "onnx", "solr", "vespa"])
def test_a_linear_model(run: Run, folder: Path, linear: Path, tmp_path: Path, to: str) -> None:
    if to == "onnx":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    output = tmp_path / "my-model.out"
    said = run("export", linear, "--to", to, "-o", output).stderr
    assert f"{output}: a model for {to}; 1024 rows scored both ways" in said
    assert b"my" in output.read_bytes() or to == "onnx"
    said = run("export", linear, "--to", to, "-o", output, "--data", folder / "test.csv").stderr
    assert "96 rows scored both ways, in the same order" in said
    assert b"bm25" in output.read_bytes()


def test_mistakes_are_one_line_and_write_nothing(
    run: Run, folder: Path, linear: Path, tmp_path: Path
) -> None:
    output = tmp_path / "model.txt"

    def refused(model: Path, *options: object, code: int = 1) -> str:
        said: str = run("export", model, *options, "-o", output, code=code).stderr
        assert not output.exists()
        return said

    assert f"{linear}: LightGBM holds trees" in refused(linear, "--to", "lightgbm")
    data = tmp_path / "other.csv"
    data.write_text("qid,bm25\n1,2.0\n")
    assert f"{data}: expected also the features" in refused(linear, "--to", "json", "--data", data)
    assert "--to" in refused(linear, code=2)
    assert "excel" in refused(linear, "--to", "excel", code=2)
    assert "not a model" in refused(folder / "train.csv", "--to", "json")
    in_query = tmp_path / "query.safetensors"
    run("fit", folder / "train.csv", "--scale", "query-minmax", "--C", 1, "-o", in_query)
    assert "within queries" in refused(in_query, "--to", "onnx")
    tagger = tmp_path / "tagger.safetensors"
    (tmp_path / "t.conllu").write_text("".join(map(WORD.format, (1, 2), ("It", "rains"))) + "\n")
    run("tag", "fit", tmp_path / "t.conllu", "-o", tagger)
    assert "a TrigramTagger cannot be exported" in refused(tagger, "--to", "json")


def test_what_one_must_know_is_said(run: Run, folder: Path, tmp_path: Path) -> None:
    model, output = tmp_path / "model.safetensors", tmp_path / "model.sd"
    run("fit", folder / "train.letor", "--C", 1, "-o", model)
    said = run("export", model, "--to", "vespa", "-o", output).stderr.splitlines()
    assert said[0] == "columns have no names, so they are called column_1 to column_4"
    run("export", model, "--to", "json", "-o", output)
    assert json.loads(output.read_text())["columns"] == [f"column_{k}" for k in range(1, 5)]
