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


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_missing_values_of_tables(run: Run, holes: Path, tmp_path: Path, suffix: str) -> None:
    """The same models, whatever file the values are missing from."""
    output, path = tmp_path / "m.safetensors", tmp_path / f"holes{suffix}"
    data = formats.read(holes, missing=True)
    formats.write(data, path)
    assert "expected a" in run("fit", path, "--bins", 8, "-o", output, code=1).stderr
    assert json.loads(run("inspect", path, "--json").stdout)["missing_values"] == 20
    run("convert", path, tmp_path / "a.lists", "--missing")
    run("convert", tmp_path / "a.lists", tmp_path / "b.csv", "--missing")
    np.testing.assert_array_equal(formats.read(tmp_path / "b.csv", missing=True).X, data.X)
    found = run("convert", path, tmp_path / "b.txt", "--missing", code=2)
    assert "for a lists folder or a table" in found.stderr
    run("fit", path, "--bins", 8, "--missing", "--dev", path, "-o", output)
    learned = model.load(output)
    scores = learned.predict(formats.read(path, like=learned))
    np.testing.assert_array_equal(scores, AdditiveSVMRanker(bins=8).fit(data).predict(data))
    said = run("predict", output, path).stdout.split()
    np.testing.assert_allclose(np.array(said, float), scores, rtol=1e-6)


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


@pytest.fixture(scope="module")
def branded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables with a column of texts, some of them missing, and with the same by hand."""
    folder, random = tmp_path_factory.mktemp("branded"), np.random.default_rng(0)
    for name, n_queries in (("train", 20), ("test", 8)):
        lines, numbers = ["label,qid,x,brand"], ["label,qid,x,brand"]
        for row in range(6 * n_queries):
            brand, x = int(random.integers(3)), float(random.normal())
            start = f"{int(brand == 1 or x > 1)},q{row // 6},{x!r}"
            lines.append(f"{start},{('acme', 'beta', 'zoo')[brand]}")
            numbers.append(f"{start},{brand}")
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        (folder / f"{name}-numbers.csv").write_text("\n".join(numbers) + "\n")
    (folder / "rows.letor").write_text("1 qid:1 1:0.5\n0 qid:1 1:2\n")
    (folder / "new.csv").write_text("qid,x,brand\nq,0.5,other\nq,0.5,\nq,0.5,beta\n")
    return folder


def test_texts_are_categories(run: Run, branded: Path, tmp_path: Path) -> None:
    options, scores = ("--bins", 8, "--C", "1,4", "--categorical", "brand"), {}
    for kind in ("", "-numbers"):
        test, output = branded / f"test{kind}.csv", tmp_path / f"m{kind}.safetensors"
        run("fit", branded / f"train{kind}.csv", *options, "--dev", test, "-o", output)
        scores[kind] = run("predict", output, test).stdout
        assert "AP " in run("eval", output, test).stdout
    assert scores[""] == scores["-numbers"]
    output = tmp_path / "m.safetensors"
    document = json.loads(run("inspect", output, "--json").stdout)
    assert document["categories"] == [None, ["acme", "beta", "zoo"]]
    train = ("inspect", branded / "train.csv", "--json", "--categorical")
    assert json.loads(run(*train, "brand").stdout)["categories"] == {"brand": 3}
    assert "categorical: there is no feature 'nope'" in run(*train, "brand,nope", code=1).stderr
    letters = ("inspect", branded / "rows.letor", "--categorical", "7")
    assert "--categorical: there is no feature '7'" in run(*letters, code=1).stderr
    run("inspect", output, "--plot", tmp_path / "f.svg", "--data", branded / "test.csv")
    assert "acme" in (tmp_path / "f.svg").read_text()
    other, missing, beta = map(float, run("predict", output, branded / "new.csv").stdout.split())
    assert other == missing < beta  # as training has seen neither

    refused = {
        "train.csv, line 2, brand: expected a finite number, found": ("fit", branded / "train.csv"),
        "--categorical brand": ("fit", branded / "train.csv", "--bins", 8),
        "train.csv, categorical: there is no feature 'brnd'": (
            *("fit", branded / "train.csv", "--bins", 8, "--categorical", "brnd"),
        ),
        "brand: held texts in training, not numbers": (
            *("predict", output, branded / "test-numbers.csv"),
        ),
        "line 2, brand: expected a finite number, found '": (
            *("predict", tmp_path / "m-numbers.safetensors", branded / "test.csv"),
        ),
        "column 'brand': a model with categories that are texts cannot be exported": (
            *("export", output, "--to", "lightgbm", "-o", tmp_path / "trees"),
        ),
    }
    for message, arguments in refused.items():
        assert message in " ".join(run(*arguments, code=1).stderr.split())
    fitting = ("fit", branded / "train.csv", "--bins", 8, "--categorical", "brand")
    assert "bins need no scaling" in run(*fitting, "--scale", "standard", code=2).stderr
