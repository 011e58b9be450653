"""`didyma rerank` with an encoder: vectors that are kept, and a budget for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from didyma.data.texts import json_lines
from didyma.text import VectorStore
from didyma.text.encoders import packages
from tests.cli.conftest import Run
from tests.text.texts import Counting, yes_or_no

ENCODER = ("--encoder", "fastembed:yes")


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """What the name above stands for."""
    encoder = Counting()
    monkeypatch.setitem(packages.FETCHING, "fastembed", lambda name: encoder)
    return encoder


def test_vectors_are_kept_and_the_budget_is_told(
    run: Run, encoder: Counting, tmp_path: Path
) -> None:
    lists, model, store = yes_or_no(), tmp_path / "model.safetensors", tmp_path / "store"
    data = tmp_path / "train.jsonl"
    json_lines.write(lists, data)
    kept = (*ENCODER, "--store", store)
    fitted = run("rerank", "fit", data, "-o", model, "--quick", *kept)
    assert len(VectorStore(store)) == len(lists)
    assert "meaning" in fitted.stdout
    for command in ("rank", "eval"):
        encoder.asked.clear()
        told = run("rerank", command, model, data, *kept, "--embed-budget", 0).stderr
        assert not set(encoder.asked) & set(lists.items)
        assert "no vector" not in told
    without = (*ENCODER, "--embed-budget", 2)
    told = run("rerank", "rank", model, data, *without).stderr
    note = "no vector: 1 of 3 documents, counted as the median in training"
    assert f"query 0: {note} (and 11 such notes)" in told
    (tmp_path / "one.txt").write_text("no\nyes\nnay\n")
    told = run("rerank", "rank", model, tmp_path / "one.txt", "--query", "does it?", *without)
    assert note in told.stderr
    wrong = run("rerank", "fit", data, "--store", store, code=2).output
    assert "nothing is kept without --encoder" in wrong
