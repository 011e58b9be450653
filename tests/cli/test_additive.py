"""Additive models on the command line: fit, apply, look at, export."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from didyma import model
from didyma.data import formats
from didyma.metrics import evaluate
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.values import decimal
from tests.cli.conftest import Run


@pytest.fixture(scope="module")
def holes(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """The training file with some values missing."""
    path = tmp_path_factory.mktemp("additive") / "holes.letor"
    lines = (folder / "train.letor").read_text().splitlines()
    for k in range(0, len(lines), 5):
        words = lines[k].split(" ")
        words[3] = "2:NULL" if k % 2 else "2:NaN"
        lines[k] = " ".join(words)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_fit_apply_look_and_export(run: Run, folder: Path, holes: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    options = ("--bins", 8, "--categorical", 4, "--increasing", "1", "--interactions", 1)
    fitted = run("fit", holes, "--missing", *options, "--dev", folder / "dev.letor", "-o", output)
    data = formats.read(holes, missing=True)
    assert np.isnan(data.X[:, 1]).sum() == 20
    ranker = AdditiveSVMRanker(bins=8, categorical=[3], increasing=[0], interactions=1)
    expected = ranker.fit(data.X, data.y, qid=data.qid)
    np.testing.assert_array_equal(model.load(output).coef_, expected.coef_)
    dev = formats.read(folder / "dev.letor")
    value = evaluate(expected.predict(dev.X), dev.y, dev.groups, "AP", docid=dev.docid).mean("AP")
    assert f"dev AP {decimal(value)} " in fitted.stderr  # while it was learning
    scores = run("predict", output, holes).stdout.split()
    np.testing.assert_allclose(np.array(scores, float), expected.predict(data.X), rtol=1e-6)

    found = json.loads(run("inspect", output, "--json", "--top", 3).stdout)
    values = [each["importance"] for each in found["importances"]]
    assert values == sorted(values, reverse=True)
    assert any("×" in each["feature"] for each in found["importances"])
    assert "most important" in run("inspect", output).stdout
    run("inspect", output, "--plot", tmp_path / "f.svg", "--data", holes)
    assert "% of queries" in (tmp_path / "f.svg").read_text()
    for name, start in (("lightgbm", "tree"), ("xgboost", "{")):
        said = run("export", output, "--to", name, "-o", tmp_path / name, "--data", holes).stderr
        assert "96 rows scored both ways, in the same order" in said
        assert (tmp_path / name).read_text().startswith(start)


def test_a_missing_value_must_be_announced(run: Run, holes: Path, tmp_path: Path) -> None:
    found = run("fit", holes, "--bins", 8, "-o", tmp_path / "m.safetensors", code=1)
    assert "line 1, feature 2: expected a finite number" in found.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strategy", "even"], "needs --bins"),
        (["--missing"], "needs --bins"),
        (["--bins", "8", "--interactions", "some"], "a number or auto"),
        (["--bins", "8", "--model-type", "classification"], "--bins is for --model-type svm only"),
    ],
)
def test_wrong_calls(
    run: Run, folder: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    output = tmp_path / "m.safetensors"
    found = run("fit", folder / "train.letor", *options, "-o", output, code=2)
    assert message in found.stderr
    assert not output.exists()


def test_mistakes_are_one_line(run: Run, folder: Path, tmp_path: Path) -> None:
    linear = tmp_path / "linear.safetensors"
    run("fit", folder / "train.letor", "-o", linear)
    plot = ("--plot", tmp_path / "f.png")
    assert "fitted with --bins" in run("inspect", linear, *plot, code=1).stderr
    assert "expected a model" in run("inspect", folder / "train.letor", *plot, code=1).stderr
    found = run("fit", folder / "train.letor", "--bins", 8, "--increasing", "7", code=1)
    assert "--increasing: there is no feature '7'" in found.stderr
