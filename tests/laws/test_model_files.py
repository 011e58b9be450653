"""Every kind of model file can be inspected, and ranks rows or says that it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from didyma.cli import app
from didyma.model import Model
from tests.model.test_codec import FITTED

ROWS = "1 qid:a 1:1 2:1 3:1\n0 qid:a 1:2\n"
RANKERS = {
    *("AdditiveSVMRanker", "SVMRanker", "ClassificationRanker", "PolynomialRanker", "RidgeRanker"),
    *("LatentPerceptronRanker", "LatentSVMRanker", "ScoreBinner", "Pipeline"),
    *("QueryMinMaxScaler", "QueryPercentileScaler", "QueryStandardScaler"),
    *("MaxAbsScaler", "MinMaxScaler", "StandardScaler"),
}  # those of scalers are pipelines that end in a ranker
OF_TEXTS = {"Cascade", "Reranker", "TextReranker"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "rows.letor").write_text(ROWS)
    return folder


@pytest.fixture(params=sorted(FITTED))
def path(request: pytest.FixtureRequest, folder: Path) -> Path:
    path = folder / f"{request.param}.safetensors"
    if not path.exists():
        Model.of(FITTED[request.param]()).write(path)
    return path


def ask(*words: object) -> tuple[int, str, str]:
    """Run a command, from which no exception may escape: its exit code and what it wrote."""
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(found.exception, SystemExit | None), found.exc_info
    return found.exit_code, found.stdout, found.stderr


def test_it_can_be_inspected(path: Path) -> None:
    code, shown, _ = ask("inspect", path)
    assert code == 0
    assert Model.read(path).name in shown
    code, shown, _ = ask("inspect", path, "--json")
    assert code == 0
    assert json.loads(shown)["bytes"] == path.stat().st_size


@pytest.mark.parametrize("command", ["predict", "rank", "eval", "compare"])
def test_it_ranks_rows_or_says_that_it_does_not(path: Path, folder: Path, command: str) -> None:
    data = folder / "rows.letor"
    if command == "compare":
        other = folder / "other.safetensors"
        other.write_bytes(path.read_bytes())
        words: list[object] = [path, other, "--data", data]
    else:
        words = [path, data, *(["-o", folder / "run"] if command == "rank" else [])]
    code, _, told = ask(command, *words)
    if path.stem in RANKERS:
        assert code == 0, told
    elif command != "compare" or path.stem not in OF_TEXTS:  # which compare on texts
        assert code == 1
        name = Model.read(path).name
        assert told == f"error: {path}: holds a {name}, which does not rank\n"
