"""The reproduction of Jagarlamudi & Daumé (2012): its protocol, and a run of it in small."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.nbest.formats import of_outputs
from reproductions import low_rank
from tests.cases import cases

NOUNS = ["bak er", "teach er", "sad ness", "kind ness", "nation", "station", "walk", "fish"]
VERBS = ["cre ates", "rot ates", "walks", "fishes", "glows", "grows", "walk", "fish"]
ADJECTIVES = ["act ive", "mass ive", "quick", "slow"]


def sentence(random: np.random.Generator) -> list[tuple[str, str]]:
    """Noun phrases and verbs, not always in order; some words may be of either kind."""
    words = []
    for _ in range(random.integers(1, 3)):
        words.append((str(random.choice(["the", "a", "this"])), "DT"))
        if random.random() < 0.5:
            words.append((str(random.choice(ADJECTIVES)), "JJ"))
        pair = [(str(random.choice(NOUNS)), "NN"), (str(random.choice(VERBS)), "VBZ")]
        words += pair if random.random() < 0.7 else pair[::-1]
    return words


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All corpora, very small; words of the second treebank have spaces inside."""
    random = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("data")
    (folder / "hkcancor").mkdir()
    for k in range(10):
        lines = ["@UTF8\n"]
        for _ in range(15):
            pairs = [(word.replace(" ", ""), tag) for word, tag in sentence(random)]
            lines.append(f"*XXA:\t{' '.join(word for word, _ in pairs)} .\n")
            lines.append(f"%mor:\t{' '.join(f'{tag}|x' for _, tag in pairs)}\n\t.\n")
        (folder / "hkcancor" / f"{k}.cha").write_text("".join(lines))
    for name in low_rank.SECTIONS["low_rank"]:
        part = low_rank.PARTS[name]
        for size, which in ((80, "train"), (25, "dev"), (25, "test")):
            path = folder / f"{part.place}-{which}.conllu"
            path.parent.mkdir(parents=True, exist_ok=True)
            texts = []
            for _ in range(size):
                lines = []
                for i, (word, tag) in enumerate(sentence(random), 1):
                    form = word if name == "vi" else word.replace(" ", "")
                    lines.append(f"{i}\t{form}\t_\tX\t{tag}\t_\t{i - 1}\t_\t_\t_\n")
                texts.append("".join(lines) + "\n")
            path.write_text("".join(texts))
    return folder


def tagged() -> low_rank.Tagged:
    """Three sentences with two, one and three guesses."""
    lists = of_outputs(
        ["a b", "a", "a b c"],
        [["X X", "X Y"], ["Z"], ["Y Y Y", "X X Y", "Y Y X"]],
        scores=[[-1.0, -2.0], [-1.0], [-1.0, -1.5, -3.0]],
        losses=[[1, 0], [1], [3, 1, 2]],
        references=["X Y", "X", "X X X"],
    )
    return low_rank.Tagged(lists)


def test_accuracy_counts_words() -> None:
    part = tagged()
    baseline = part.wrong(part.guesses.scores)
    assert baseline.tolist() == [1, 1, 3]
    assert part.accuracy(baseline) == pytest.approx(100 / 6)
    oracle = part.wrong(-part.guesses.losses)
    assert oracle.tolist() == [0, 1, 1]


def test_rates_weigh_sentences_alike() -> None:
    part = tagged()
    rows = np.zeros((6, 4))
    assert part.described(rows).losses.tolist() == [1, 0, 1, 3, 1, 2]
    rates = part.described(rows, rates=True)
    np.testing.assert_allclose(rates.losses, [1, 0, 2, 2, 2 / 3, 4 / 3])
    assert rates.X is rows


def test_lists_come_from_taggers_that_have_not_seen_them(data: Path) -> None:
    sets, facts = low_rank.read(low_rank.PARTS["vi"], data, low_rank.QUICK, seed=0)
    assert facts["sentences"] == {"train": 80, "dev": 25, "test": 25}
    train = cases(sets["train"].guesses)
    assert all("bak_er" not in case.reference for case in train)
    assert any("bak_er" in case.input for case in train)
    for part in sets.values():
        for case in cases(part.guesses):
            assert 1 <= len(case.guesses) <= low_rank.N_BEST
            values = [guess.score for guess in case.guesses]
            assert values == sorted(values, reverse=True)
            length = len(case.reference.split())
            assert {len(guess.text.split()) for guess in case.guesses} == {length}
    other, _ = low_rank.read(low_rank.PARTS["vi"], data, low_rank.QUICK, seed=1)
    first, second = (s["train"].guesses.scores.tolist() for s in (sets, other))
    assert first != second
    same = (s["dev"].guesses.scores for s in (sets, other))
    np.testing.assert_array_equal(*same)


@pytest.fixture(scope="module")
def results(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A quick run of both parts, from the command line."""
    folder = tmp_path_factory.mktemp("run")
    options = ["--quick", "--data", str(data), "--json", str(folder / "all.json")]
    assert low_rank.main([*options, "--plot", str(folder / "figure.svg")]) == 0
    assert (folder / "figure.svg").read_text().count("<svg") == 1
    return json.loads((folder / "all.json").read_text())


@pytest.mark.parametrize("part", list(low_rank.PARTS))
def test_all_models_are_chosen_on_the_development_set(part: str, results: dict[str, Any]) -> None:
    models = results[part]["models"]
    assert list(models) == list(low_rank.PAPER_TABLE_2)
    words = results[part]["facts"]["words"]["test"]
    for name, model in models.items():
        # A weight of 0, or no round of boosting, is the decoder's own choice.
        assert models["Baseline"]["dev"] <= model["dev"] <= models["Oracle"]["dev"], name
        assert model["test"] <= models["Oracle"]["test"]
        assert model["test"] == pytest.approx(100 * (1 - sum(model["wrong"]) / words))
    assert set(results[part]["tests"]) == set(models) - {"Discriminative", "Oracle"}


@pytest.mark.parametrize("part", list(low_rank.PARTS))
def test_curves_pass_through_the_chosen_models(part: str, results: dict[str, Any]) -> None:
    curves, models = results[part]["curves"], results[part]["models"]
    assert set(curves["tau"]) == {"Generative", "Softened", "Discriminative"}
    assert set(curves["lam"]) == {"Softened", "Discriminative"}
    for parameter, found in curves.items():
        for name, curve in found.items():
            values = dict(map(tuple, curve))
            assert list(values) == list(getattr(low_rank.QUICK, f"{parameter}s"))
            chosen = models[name]["settings"][parameter]
            assert values[chosen] == pytest.approx(models[name]["dev"])


def test_other_readings_begin_with_ours(results: dict[str, Any]) -> None:
    for found in results.values():
        ours, *others = found["variants"]
        assert (ours["losses"], ours["scale"]) == ("rates", "mean")
        assert ours["Softened"]["dev"] == found["models"]["Softened"]["dev"]
        assert [(other["losses"], other["scale"]) for other in others] == [
            ("counts", "mean"),
            ("counts", "sum"),
        ]
        assert all(0 <= variant["unmet"] <= 1 for variant in found["variants"])


def test_tables_have_the_figures(results: dict[str, Any]) -> None:
    text = low_rank.section(results)
    assert "### English" in text
    assert "### Vietnamese" in text
    assert "less than 10 times (Vietnamese: 2)" in text.replace("\n", " ")
    for name, model in results["en"]["models"].items():
        assert f"| {name} " in text
        assert f"{model['test']:.2f}" in text
