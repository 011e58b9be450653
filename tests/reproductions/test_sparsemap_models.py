"""The reproduction of Niculae et al. (2018): its driver, and parsing in small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from didyma.applications.parsing.parser import DependencyParser
from reproductions import sparsemap_models
from reproductions import sparsemap_parsing as parsing

TREEBANK = Path(__file__).parents[2] / "examples" / "data"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example treebank under the names of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    for name in parsing.FILES.values():
        for part in ("train", "dev", "test"):
            path = folder / name.format(part)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((TREEBANK / f"treebank-{part}.conllu").read_text())
    return folder


def record(loss: str, rate: float, seed: int, uas: float) -> dict[str, Any]:
    sparsity = [{"one_tree": 0.25, "trees": 2.0, "heads": 1.5, "gold": 0.5}] * (seed + 1)
    scores = {"uas": uas, "las": uas, "trees": 0.0}
    found = {"language": "vi", "loss": loss, "rate": rate, "seed": seed, "sparsity": sparsity}
    ended = {"best_epoch": 1, "epochs": 1, "seconds": 0.0}
    return {**found, **ended, "dev": scores, "test": scores}


def test_parsing_runs_and_remembers(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--part", "parsing", "--quick", "--seeds", "1"]
    arguments += ["--data", str(data), "--cache", str(tmp_path)]
    assert sparsemap_models.main(arguments) == 0
    first = capsys.readouterr().out
    for name in (*parsing.LOSSES.values(), "70.87", "86.90", "trees a sentence"):
        assert name in first
    monkeypatch.setattr(parsing, "train", None)  # nothing is left to train
    assert sparsemap_models.main(arguments) == 0
    assert capsys.readouterr().out == first


def test_the_learning_rate_is_chosen_on_development_data() -> None:
    records = [record("svm", rate, seed, 0.5 + rate) for rate in (0.1, 0.2) for seed in (0, 1)]
    assert [r["rate"] for r in parsing.chosen(records)] == [0.2, 0.2]


def test_epochs_that_every_seed_reached_are_averaged() -> None:
    records = [record(loss, 0.1, seed, 0.5) for loss in parsing.SPARSE for seed in (0, 1)]
    (table,) = parsing.sparsity(records)
    lines = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    found = [line[1:-1] for line in lines if line[1:2] == ["SparseMAP"]]
    assert found == [["SparseMAP", "1", "25 %", "2.00", "1.50", "50 %"]]


def test_trees_are_counted(data: Path) -> None:
    trees = parsing.read(data, "vi", (20, 20, 20))["train"]
    sizes = {"word_size": 8, "hidden": 8, "mlp": 8, "learning_rate": 0.03, "dropout": 0.0}
    parser = DependencyParser(epochs=60, word_dropout=0.0, **sizes).fit(trees)
    assert parsing.judge(trees, parser.predict(trees)).uas == parser.score(trees)
    counts = parsing.count_trees(parser, trees)
    posteriors = parser.alternatives(trees)
    assert counts["trees"] == pytest.approx(
        sum(len(posterior.structures) for posterior in posteriors) / len(trees)
    )
    assert 1.0 <= counts["heads"] <= counts["trees"]
    gold = [(p.structures[:, 1:] == s.heads).all(axis=1).any() for p, s in zip(posteriors, trees)]
    assert counts["gold"] == pytest.approx(sum(gold) / len(trees)) != 0.0
