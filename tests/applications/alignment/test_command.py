"""`didyma nli`: from files to a model, predictions, alignments and accuracy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.cli.conftest import Run
from typer.testing import CliRunner

from didyma.applications.alignment import reader as nli
from didyma.applications.alignment.esim import EntailmentClassifier
from didyma.cli import app

torch.set_num_threads(1)  # so small networks only lose by more

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"
SMALL = ("--dimension", 6, "--hidden", 5, "--epochs", 1, "--device", "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some pairs of each part, and a model for each alignment."""
    folder = tmp_path_factory.mktemp("nli")
    for part, size in (("train", 45), ("dev", 12), ("test", 9)):
        lines = (EXAMPLES / f"nli-{part}.jsonl").read_text().splitlines(keepends=True)
        (folder / f"{part}.jsonl").write_text("".join(lines[:size]))
    for alignment in ("softmax", "sequential", "matching"):
        files = [folder / "train.jsonl", "--dev", folder / "dev.jsonl"]
        output = folder / f"{alignment}.safetensors"
        arguments = ["nli", "fit", *files, "--alignment", alignment, *SMALL, "-o", output]
        found = CliRunner().invoke(app, list(map(str, arguments)))
        assert found.exit_code == 0, found.output
    return folder


def test_a_model_is_trained(run: Run, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "m.safetensors"
    files = (folder / "train.jsonl", "--dev", folder / "dev.jsonl", "-o", output)
    found = json.loads(run("nli", "fit", *files, *SMALL, "--json").stdout)
    assert found["alignment"] == "matching"
    assert found["train"]["labels"] == ["contradiction", "entailment", "neutral"]
    assert found["train"]["pairs"] == 45
    assert 0.0 <= found["dev"]["accuracy"] <= 1.0
    again = run("nli", "fit", *files, *SMALL)
    assert "dev accuracy" in again.stdout
    assert "epoch 1" in again.stderr
    assert EntailmentClassifier.load(output).alignment == "matching"


@pytest.mark.parametrize("alignment", ["softmax", "sequential", "matching"])
def test_predictions_and_alignments(run: Run, folder: Path, tmp_path: Path, alignment: str) -> None:
    model, data = folder / f"{alignment}.safetensors", folder / "test.jsonl"
    output = tmp_path / "predictions.jsonl"
    run("nli", "predict", model, data, "-o", output, "--alignments", tmp_path / "a.jsonl")
    records = [json.loads(line) for line in output.read_text().splitlines()]
    classifier, pairs = EntailmentClassifier.load(model), nli.read(data)
    assert [record["prediction"] for record in records] == classifier.predict(pairs).tolist()
    assert records[0]["pairID"] == "test-1"
    assert all(abs(sum(record["probabilities"].values()) - 1) < 1e-6 for record in records)
    aligned = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert len(aligned) == len(pairs)
    assert aligned[0]["premise"] == nli.tokenize(pairs[0].premise)
    for record in aligned:
        for structures in record["selected"].values():
            assert sum(one["probability"] for one in structures) == pytest.approx(1.0)
            for one in structures:
                for i, j in one["cells"]:
                    assert record["to_premise"][i][j] + record["to_hypothesis"][i][j] > 0
    counts = {"softmax": 0, "sequential": 2, "matching": 1}
    assert len(aligned[0]["selected"]) == counts[alignment]


@pytest.mark.parametrize("kind", ["html", "svg"])
def test_alignments_are_drawn(run: Run, folder: Path, tmp_path: Path, kind: str) -> None:
    model, path = folder / "matching.safetensors", tmp_path / f"a.{kind}"
    shown = run(
        *("nli", "predict", model, folder / "test.jsonl", "--alignments", path, "--most", 2)
    )
    assert "alignments of 2 pairs" in shown.stderr
    assert "structure" in path.read_text()


def test_evaluation(run: Run, folder: Path, tmp_path: Path) -> None:
    model, data = folder / "sequential.safetensors", tmp_path / "test.jsonl"
    lines = (folder / "test.jsonl").read_text()
    unknown = {"sentence1": "it rains", "sentence2": "it is wet", "gold_label": "maybe"}
    undecided = {**unknown, "gold_label": "-"}
    data.write_text(lines + json.dumps(unknown) + "\n" + json.dumps(undecided) + "\n")
    shown = run("nli", "eval", model, data, "--json")
    assert "1 pairs without a label skipped" in shown.stderr
    found = json.loads(shown.stdout)
    assert found["n_pairs"] == 10
    assert sum(found["confusion"]["maybe"].values()) == 1
    assert found["confusion"]["maybe"]["maybe"] == 0
    right = sum(counts[name] for name, counts in found["confusion"].items())
    assert found["accuracy"] == right / 10
    assert 0.0 < found["nonzero_alignments"] <= 1.0
    text = run("nli", "eval", model, data).stdout
    assert "nonzero alignments" in text
    assert "gold \\ predicted" in text


def test_given_vectors(run: Run, folder: Path, tmp_path: Path) -> None:
    vectors, output = tmp_path / "vectors.txt", tmp_path / "m.safetensors"
    vectors.write_text("dog 1 2 3\ncrow 3 2 1\nunicorn 0 0 0\n")
    arguments = (folder / "train.jsonl", "--vectors", vectors, "--fixed-vectors", "-o", output)
    shown = run("nli", "fit", *arguments, *SMALL)
    assert "vectors of 2 of" in shown.stderr
    assert EntailmentClassifier.load(output).weights_["embedding.weight"].shape[1] == 3


def test_sick_is_read(run: Run, tmp_path: Path) -> None:
    data, output = tmp_path / "sick.txt", tmp_path / "m.safetensors"
    data.write_text("A dog runs\tA dog moves\t0\nA dog runs\tNo dog runs\t2\n" * 3)
    run("nli", "fit", data, *SMALL, "-o", output)
    assert EntailmentClassifier.load(output).classes_ == ["contradiction", "entailment"]


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("fit", "nothing.jsonl"), 1, "No such file"),
        (("fit", "broken.jsonl"), 1, "broken.jsonl, line 1, sentence2: expected a text"),
        (("fit", "unlabelled.jsonl"), 1, "expected pairs with labels, found none"),
        (("fit", "train.jsonl", "-o", "train.jsonl"), 1, "would be overwritten"),
        (("fit", "train.jsonl", "--fixed-vectors"), 2, "there are none without --vectors"),
        (("fit", "train.jsonl", "--alignment", "perfect"), 2, "perfect"),
        (("predict", "matching.safetensors", "test.jsonl"), 2, "expected a file to write to"),
        (
            ("predict", "matching.safetensors", "test.jsonl", "--alignments", "a.gif"),
            2,
            "ends in .html, .svg or .jsonl",
        ),
        (("eval", "test.jsonl", "test.jsonl"), 1, "damaged, or not a model file"),
        (("eval", "matching.safetensors", "unlabelled.jsonl"), 1, "expected pairs with labels"),
    ],
)
def test_mistakes(
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    problem: str,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "broken.jsonl").write_text('{"sentence1": "a"}\n')
    (folder / "unlabelled.jsonl").write_text('{"sentence1": "a", "sentence2": "b"}\n')
    before = sorted(folder.iterdir())
    assert problem in run("nli", *arguments, code=code).stderr
    assert sorted(folder.iterdir()) == before
