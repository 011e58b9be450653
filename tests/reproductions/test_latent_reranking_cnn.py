"""Table 2 of Haponchyk & Moschitti (2019): a run of it in small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from didyma.data.lists import Lists
from reproductions import latent_reranking as reranking
from reproductions import latent_reranking_cnn as cnn
from tests.reproductions.test_latent_reranking import ask, data

__all__ = ["data"]  # a fixture


def test_cross_entropy_learns_from_all_questions_and_the_hinge_from_mixed_ones() -> None:
    random = np.random.default_rng(0)
    unanswered = ("what ?", ["Nobody knew .", "Nobody knew ."], [0, 0])
    every = Lists.of_texts(*zip(*[ask(random, 4) for _ in range(6)], unanswered))
    parts = {"train": range(6), "dev": range(2), "test": range(2, 6)}
    asked = {"all": every} | {name: every.select_lists(part) for name, part in parts.items()}
    found = {
        loss: cnn.encode(asked, loss, 0, {**cnn.QUICK, "epochs": 1})
        for loss in cnn.NETWORKS.values()
    }
    for own in found.values():
        split = cnn.split_of(asked, own)
        assert split.train.X.shape == (24, 40)
        assert len(own["test scores"]) == len(split.test.y) == 16
        row = cnn.judged(split, own)
        expected = reranking.judge(split.dev, own["dev scores"])["MAP"]
        np.testing.assert_array_equal(row["dev MAP"], expected)


def test_deviations_are_over_networks_and_wins_over_questions() -> None:
    def run(*values: float) -> dict[str, object]:
        each = {f"{p} {m}": np.array(values) for p in cnn.SETS[1:] for m in reranking.MEASURES}
        return {**each, "C": 1.0, "epoch": 3}

    rows = cnn.summary({"CNN": [run(0.5, 0.5), run(0.5, 0.5)], "LSP": [run(1, 0.4), run(0.6, 0.4)]})
    assert rows["LSP"]["test"]["MAP"] == pytest.approx((0.6, 0.2 / np.sqrt(2)))
    assert rows["CNN"]["test"]["MAP"] == (0.5, 0.0)
    assert (rows["LSP"]["wins"], rows["LSP"]["losses"]) == (1, 1)


def test_all_models_on_learned_embeddings(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LSSVM-AP", "LSSVM-AP*"):  # on data this easy they take minutes
        monkeypatch.delitem(reranking.MODELS, name)
    monkeypatch.setattr(cnn, "QUICK", {**cnn.QUICK, "epochs": 12, "learning_rate": 0.01})
    target, cache = tmp_path / "all.json", tmp_path / "cache"
    options = ["--features", "cnn", "--quick", "--data", str(data), "--cache", str(cache)]
    assert reranking.main([*options, "--json", str(target)]) == 0
    text = capsys.readouterr().out
    assert "### WikiQA" in text
    assert "### TREC QA" in text
    assert "68.7 70.3 56.1" in text  # the paper's
    results = json.loads(target.read_text())
    assert set(results) == {"wikiqa", "trecqa"}
    for found in results.values():
        assert list(found["models"]) == [*cnn.NETWORKS, *reranking.MODELS]
        assert found["networks"] == 1
        for name, row in found["models"].items():
            assert row["test"]["MAP"][0] > 0.7, name
    for name in ("encode", "fitted"):
        monkeypatch.setattr(cnn, name, lambda *_: pytest.fail("made again"))
    assert reranking.main(options) == 0
    assert capsys.readouterr().out == text
