"""Section 5.2 of SparseMAP: each alignment is trained once for each seed, and remembered."""

from __future__ import annotations

import argparse

import pytest
import torch

from reproductions import sparsemap_alignment

torch.set_num_threads(1)  # so small networks only lose by more


@pytest.fixture
def options(tmp_path, monkeypatch):
    folder = tmp_path / "sick"
    folder.mkdir()
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    rows = "1\tA dog runs\tA dog moves\t4\tENTAILMENT\n2\tA dog runs\tNo dog runs\t4\tNEUTRAL\n"
    for name in sparsemap_alignment.FILES.values():
        (folder / name).write_text(header + 2 * rows + "3\tA dog runs\tIt rains\t1\tNEUTRAL\n")
    size = sparsemap_alignment.Size(1, {"dimension": 4, "hidden": 4, "epochs": 1})
    monkeypatch.setattr(sparsemap_alignment, "QUICK", size)
    return argparse.Namespace(
        quick=True, full=False, sgd=False, seeds=2, data=tmp_path, cache=tmp_path / "cache"
    )


def test_a_run_that_was_interrupted_goes_on(options, monkeypatch):
    train, trained = sparsemap_alignment.train, []

    def interrupted(key, data):
        if len(trained) == 4:
            raise KeyboardInterrupt
        trained.append(key)
        return train(key, data)

    monkeypatch.setattr(sparsemap_alignment, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sparsemap_alignment.run(options)
    monkeypatch.setattr(
        sparsemap_alignment, "train", lambda key, data: trained.append(key) or train(key, data)
    )
    text = sparsemap_alignment.run(options)["sparsemap_alignment"]
    assert len(trained) == len(set(map(str, trained))) == 6
    assert "SICK, 5 / 5 / 5 pairs" in text
    assert "neutral always scores 60.00" in text
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")][2:]
    assert [row[1].strip() for row in rows] == ["softmax", "sequential", "matching"]
    assert rows[0][4].strip() == "100 %"
    assert [row[7].strip() for row in rows] == ["76.05 (100 %)", "75.54 (13 %)", "76.13 (8 %)"]
    assert sparsemap_alignment.run(options)["sparsemap_alignment"] == text
    assert len(trained) == 6


def test_the_learning_rate_is_chosen_on_development_data():
    records = [
        {"rate": 0.1, "seed": 0, "dev": 0.9},
        {"rate": 0.1, "seed": 1, "dev": 0.5},
        {"rate": 0.2, "seed": 0, "dev": 0.8},
        {"rate": 0.2, "seed": 1, "dev": 0.8},
    ]
    assert sparsemap_alignment.chosen(records) == records[2:]
