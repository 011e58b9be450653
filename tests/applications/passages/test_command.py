"""`didyma passage`: from questions to a model, rankings and features."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Run

from didyma.applications.passages.ranker import PassageRanker
from didyma.data import formats
from didyma.data.trec import read_run

EXAMPLES = Path(__file__).parents[3] / "examples" / "data"
SMALL = ("--dimension", 8, "--filters", 12, "--hidden", 12, "--learning-rate", 0.01)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the shipped questions, and a TREC QA folder with the same ones."""
    folder = tmp_path_factory.mktemp("passage")
    for name, n_lines in (("train", 300), ("dev", 120), ("test", 120)):
        lines = (EXAMPLES / f"passages-{name}.tsv").read_text().splitlines()[:n_lines]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    trec = folder / "trec"
    trec.mkdir()
    columns = list(zip(*(line.split("\t") for line in lines)))
    numbers = {question: str(n) for n, question in enumerate(dict.fromkeys(columns[0]))}
    columns.append(tuple(numbers[question] for question in columns[0]))
    for name, column in zip(("a.toks", "b.toks", "sim.txt", "id.txt"), columns):
        (trec / name).write_text("\n".join(column) + "\n")
    return folder


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    from didyma.data.texts.qa import read_wikiqa

    train, dev = (read_wikiqa(data / f"{name}.tsv") for name in ("train", "dev"))
    path = data / "model.didyma.safetensors"
    settings = {"dimension": 8, "filters": 12, "hidden": 12, "epochs": 4, "learning_rate": 0.01}
    PassageRanker("ap", **settings).fit(train, dev).save(path)
    return path


@pytest.mark.parametrize("loss", ["cross-entropy", "ap"])
def test_fit_tells_what_came_out(run: Run, data: Path, tmp_path: Path, loss: str) -> None:
    path = tmp_path / "m.safetensors"
    found = run(
        *("passage", "fit", data / "train.tsv", "--dev", data / "dev.tsv", "--loss", loss),
        *("-o", path, "--epochs", 3, *SMALL, "--json"),
    )
    shown = json.loads(found.stdout)
    assert shown["loss"] == loss
    assert 0 < shown["dev"]["MAP"] <= 1
    assert 1 <= shown["best_epoch"] <= shown["epochs"] <= 3
    assert f"{data / 'train.tsv'}: " in found.stderr
    assert "dev MAP" in found.stderr
    judged = json.loads(run("passage", "eval", path, data / "dev.tsv", "--json").stdout)
    assert judged["MAP"] == pytest.approx(shown["dev"]["MAP"])


def test_vectors_and_plain_words(run: Run, data: Path, tmp_path: Path) -> None:
    vectors, path = tmp_path / "vectors.txt", tmp_path / "m.safetensors"
    vectors.write_text("castle 1 0 2\nbridge 0 1 2\n")
    options = ("--epochs", 1, "--filters", 4, "-o", path)
    train = ("passage", "fit", data / "train.tsv", *options)
    shown = run(*train, "--vectors", vectors, "--fixed-vectors").stdout
    assert "cross-entropy, epoch 1 of 1" in shown
    assert "dev MAP" not in shown
    ranker = PassageRanker.load(path)
    row = ranker.words_.index("castle") + 2
    np.testing.assert_array_equal(ranker.weights_["words.weight"][row], [1, 0, 2])
    assert "--vectors" in run(*train, "--fixed-vectors", code=2).stderr
    vectors.write_text("castle 1 0 2\nbridge 0 1\n")
    assert "line 2" in run(*train, "--vectors", vectors, code=1).stderr


def test_eval_counts_questions_that_tell_rankings_apart(run: Run, data: Path, model: Path) -> None:
    shown = json.loads(run("passage", "eval", model, data / "test.tsv", "--json").stdout)
    every = json.loads(run("passage", "eval", model, data / "test.tsv", "--all", "--json").stdout)
    assert every["left_out"] == 0
    assert every["questions"] == shown["questions"] + shown["left_out"]
    assert shown["left_out"] > 0
    assert every["MAP"] * every["questions"] == pytest.approx(shown["MAP"] * shown["questions"])
    folder = json.loads(run("passage", "eval", model, data / "trec", "--json").stdout)
    assert folder == shown
    text = run("passage", "eval", model, data / "test.tsv").stdout
    assert text.split()[:2] == ["MAP", f"{shown['MAP']:.4f}".removeprefix("0")]


def test_rankings_as_a_table_and_as_a_run(
    run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    table, trec = tmp_path / "ranked.tsv", tmp_path / "run.txt"
    run("passage", "rank", model, data / "test.tsv", "-o", table)
    run("passage", "rank", model, data / "test.tsv", "-o", trec)
    header, *rows = (line.split("\t") for line in table.read_text().splitlines())
    assert header == ["question", "rank", "score", "sentence"]
    lines = (data / "test.tsv").read_text().splitlines()
    given = [line.rsplit("\t", 1)[0].split("\t") for line in lines]
    assert sorted([question, sentence] for question, _, _, sentence in rows) == sorted(given)
    scores = {name: [] for name, *_ in rows}
    for question, rank, score, _ in rows:
        scores[question].append(float(score))
        assert int(rank) == len(scores[question])
    assert all(own == sorted(own, reverse=True) for own in scores.values())
    assert len(read_run(trec).qid) == len(given)
    first = trec.read_text().split("\n")[0].split()
    assert first[0] == "1"
    question, _, _, sentence = rows[0]
    own = [line for line in given if line[0] == question]
    assert first[2] == f"1-{own.index([question, sentence]) + 1}"


def test_embeddings_are_data_for_other_rankers(
    run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    for name in ("train", "test"):
        run("passage", "embed", model, data / f"{name}.tsv", "-o", tmp_path / f"{name}.npz")
    rows = formats.read(tmp_path / "train.npz")
    assert rows.X.shape == (300, 24)
    assert rows.qid[0] == "1"
    assert rows.docid is not None
    assert rows.docid[0] == "1-1"
    assert rows.feature_names is not None
    assert rows.feature_names[12] == "passage_0"
    labels = [line[-1] for line in (data / "train.tsv").read_text().splitlines()]
    assert rows.y.tolist() == list(map(float, labels))
    latent = tmp_path / "latent.safetensors"
    run("fit", tmp_path / "train.npz", "--model-type", "latent-perceptron", "-o", latent)
    shown = json.loads(run("eval", latent, tmp_path / "test.npz", "--json").stdout)
    assert shown["n_queries"] > 10


def test_users_mistakes(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("who ?\tAda .\t1\nwho ?\tAda .\tyes\n")
    assert "line 2, label" in run("passage", "fit", wrong, code=1).stderr
    wrong.write_text("who ?\tAda .\t0\n")
    assert (
        "nothing to learn from" in run("passage", "fit", wrong, "-o", tmp_path / "m", code=1).stderr
    )
    assert "no question" in run("passage", "eval", model, wrong, code=1).stderr
    assert (
        "unknown loss"
        in run(
            "passage", "fit", data / "train.tsv", "--loss", "accuracy", "-o", tmp_path / "m", code=1
        ).stderr
    )
    assert (
        "overwritten"
        in run("passage", "rank", model, data / "test.tsv", "-o", model, code=1).stderr
    )
    assert ".npz" in run("passage", "embed", model, data / "test.tsv", "-o", "x.csv", code=2).stderr
    assert "No such file" in run("passage", "eval", model, tmp_path / "none", code=1).stderr
    assert "not a model" in run("passage", "eval", data / "train.tsv", wrong, code=1).stderr
    assert not (tmp_path / "m").exists()
