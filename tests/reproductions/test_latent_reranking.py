"""The reproduction of Haponchyk & Moschitti (2019): its protocols, and a run of it in small."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from reproductions import latent_reranking as reranking

NOUNS = ["river", "castle", "engine", "poet", "planet", "bridge", "island", "metal", "garden"]
VERBS = ["crosses", "guards", "drives", "praises", "circles", "joins", "feeds", "bends", "fills"]


def ask(random: np.random.Generator, n_candidates: int) -> tuple[str, list[str], list[int]]:
    """A question whose answers, the first two candidates, repeat its words."""
    noun, verb = (words[random.integers(len(words))] for words in (NOUNS, VERBS))
    sentences = [f"The {noun} near Rome {verb} it .", f"It {verb} the old {noun} ."]
    while len(sentences) < n_candidates:
        other = " ".join(random.choice(NOUNS + VERBS, 3, replace=False))
        sentences.append(f"Some {other} {len(sentences)} .")
    question = f"what {noun} {verb} number {random.integers(10**6)} ?"
    return question, sentences, [1, 1] + [0] * (n_candidates - 2)


def rows(questions: list[tuple[str, list[str], list[int]]]) -> list[tuple[str, str, int]]:
    return [
        (text, s, y) for text, sentences, labels in questions for s, y in zip(sentences, labels)
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both collections in the formats they are distributed in, very small."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data")
    sizes = {"train": 16, "dev": 6, "test": 6}
    (folder / "wikiqa").mkdir()
    for name, count in sizes.items():
        lines = [f"{q}\t{s}\t{y}\n" for q, s, y in rows([ask(random, 5) for _ in range(count)])]
        unanswered = "who asks ?\tNobody knows .\t0\n"
        (folder / "wikiqa" / f"{name}.txt").write_text("".join(lines) + unanswered)
    (folder / "trecqa").mkdir()
    lines = [f"{q}\t{s}\t{y}\n" for q, s, y in rows([ask(random, 14) for _ in range(16)])]
    (folder / "trecqa" / "train-all.tsv").write_text("question\tsentence\tlabel\n" + "".join(lines))
    for name in ("clean-dev", "clean-test"):
        place = folder / "trecqa" / name
        place.mkdir()
        asked = rows([ask(random, 5) for _ in range(6)])
        (place / "a.toks").write_text("".join(f"{q}\n" for q, _, _ in asked))
        (place / "b.toks").write_text("".join(f"{s}\n" for _, s, _ in asked))
        (place / "sim.txt").write_text("".join(f"{y}\n" for _, _, y in asked))
        (place / "id.txt").write_text("".join(f"{k // 5}\n" for k in range(len(asked))))
    return folder


def judged(n_questions: int, seed: int) -> Lists:
    """Questions of different sizes; the first column is the number of the question."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 6, n_questions)
    X = np.column_stack(
        [np.repeat(np.arange(n_questions), sizes), random.normal(size=(sizes.sum(), 2))]
    )
    y = np.concatenate([np.arange(size) == 0 for size in sizes]).astype(float)
    return Lists(X, y, grouping=Groups.from_lists(sizes))


def asked(n_candidates: int, n_answers: int, n_questions: int = 1) -> Lists:
    sentences = [f"sentence {k}" for k in range(n_candidates)]
    labels = [1] * n_answers + [0] * (n_candidates - n_answers)
    return Lists.of_texts(
        ["who ?"] * n_questions, [sentences] * n_questions, [labels] * n_questions
    )


def test_a_sample_has_both_classes_and_knows_no_order() -> None:
    drawn = reranking.sample(asked(30, 5, 400), 10, np.random.default_rng(2))
    assert drawn.groups.sizes.tolist() == [10] * 400
    assert drawn.mixed.all()
    kept = np.array([int(sentence.split()[1]) for sentence in drawn.texts])
    assert all(len(set(own)) == 10 for own in kept.reshape(400, 10))
    np.testing.assert_array_equal(drawn.y, kept < 5)
    times = np.bincount(kept)
    for block in (times[:5], times[5:]):
        assert block.min() > 0.7 * block.mean()
    # Positives are kept about as often as chance has it: only an unlucky draw is mended.
    assert times[:5].mean() < 1.5 * times[5:].mean()


def test_folds_are_disjoint_and_hold_everything() -> None:
    split = reranking.Split(judged(23, 0), judged(11, 1), judged(7, 2))
    folds = list(split.folds(5, seed=3))
    for name in ("train", "dev", "test"):
        whole = getattr(split, name)
        questions = [np.unique(getattr(fold, name).X[:, 0]) for fold in folds]
        assert sorted(np.concatenate(questions)) == list(range(len(whole.groups)))
        assert sum(len(getattr(fold, name).y) for fold in folds) == len(whole.y)
    again = next(split.folds(5, seed=3))
    np.testing.assert_array_equal(again.train.X, folds[0].train.X)


def test_equal_scores_do_not_profit_from_the_order_of_candidates() -> None:
    part = judged(400, 5)  # the answer comes first in every question
    values = reranking.judge(part, np.zeros(len(part)))
    assert abs(values["P@1"].mean() - (1 / part.groups.sizes).mean()) < 0.1


def test_the_choice_is_made_on_the_development_set() -> None:
    split = reranking.Split(judged(10, 0), judged(8, 1), judged(8, 2))

    class Fixed:
        def __init__(self, C: float, column: int) -> None:
            self.C, self.column = C, column

        def predict(self, lists: Lists) -> Any:
            return lists.X[:, self.column]

    dev = [reranking.judge(split.dev, split.dev.X[:, k])["MAP"].mean() for k in (1, 2)]
    best = int(np.argmax(dev)) + 1
    chosen = reranking.choose(lambda *_: [Fixed(1.0, 1), Fixed(10.0, 2)], split, (1.0, 10.0), 1, 0)
    assert (1.0, 10.0)[best - 1] == chosen.C
    expected = reranking.judge(split.test, split.test.X[:, best])["MAP"]
    np.testing.assert_array_equal(chosen.test["MAP"], expected)


def test_every_model_learns_what_the_words_say(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Cuts of a greedy search need not close the gap: on data this easy it takes minutes.
    monkeypatch.delitem(reranking.MODELS, "LSSVM-AP")
    table = {word: np.eye(18)[k] for k, word in enumerate(NOUNS + VERBS)}
    monkeypatch.setattr(reranking, "VECTORS", table)
    target, figure = tmp_path / "all.json", tmp_path / "figure.svg"
    options = ["--quick", "--data", str(data)]
    assert reranking.main([*options, "--json", str(target), "--plot", str(figure)]) == 0
    text = capsys.readouterr().out
    assert "### WikiQA" in text
    assert "### TREC QA" in text
    assert figure.read_text().count("<svg") == 1
    results = json.loads(target.read_text())
    assert results["wikiqa"]["questions"] == {"train": 16, "dev": 6, "test": 6}
    kinds = {"paper": 12, "paper + vectors": 14}
    columns = {name: judged["columns"] for name, judged in results["trecqa"]["features"].items()}
    assert columns == kinds
    with_place = {f"{kind} + position" for kind in kinds}
    assert set(results["wikiqa"]["features"]) == {*kinds, *with_place}
    for found, kind in product(results.values(), kinds):
        rows = found["features"][kind]["official"]
        assert list(rows) == list(reranking.MODELS)
        for name, row in rows.items():
            assert row["test"]["MAP"] > 0.8, name
            assert np.isclose(np.mean(row["AP"]), row["test"]["MAP"])
        for name in reranking.CURVES:
            row = rows[name]
            assert len(row["curve"]) == 5
            assert row["curve"][row["epoch"][0] - 1] == max(row["curve"]) == row["dev"]["MAP"]


def test_means_are_over_seeds_where_a_model_depends_on_them() -> None:
    split = reranking.Split(judged(10, 0), judged(8, 1), judged(8, 2))

    class Column:
        C = 1.0

        def __init__(self, column: int) -> None:
            self.column = column

        def predict(self, lists: Lists) -> Any:
            return lists.X[:, self.column]

    models = {
        "SVMmap": lambda split, Cs, epochs, seed: [Column(1)],
        "LSP": lambda split, Cs, epochs, seed: [Column(1 + seed)],
    }
    rows = reranking.official(models, split, (1.0,), 1, (0, 1), lambda what: None)
    first, second = (
        reranking.judge(split.scaled().test, split.scaled().test.X[:, k])["MAP"].mean()
        for k in (1, 2)
    )
    assert rows["SVMmap"]["sd"] is None
    assert rows["SVMmap"]["test"]["MAP"] == pytest.approx(first)
    assert rows["LSP"]["test"]["MAP"] == pytest.approx((first + second) / 2)
    assert rows["LSP"]["sd"] == pytest.approx(abs(first - second) / np.sqrt(2))
