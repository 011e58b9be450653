"""What a model remembers of its training data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import didyma
from didyma.data.lists import Lists
from didyma.text.text_reranker import TextReranker
from didyma.text.training_data import TrainingData
from tests.text.texts import made


def test_a_loaded_model_knows_the_queries_of_its_training(tmp_path: Path) -> None:
    lists = made(12, 0)
    TextReranker(quick=True).fit(lists).save(tmp_path / "model")
    loaded = didyma.load(tmp_path / "model")
    assert loaded.trained_on_.seen(lists.queries).all()
    assert loaded.trained_on_.seen([f"  {query.upper()} " for query in lists.queries]).all()
    assert not loaded.trained_on_.seen(["who has never asked?"]).any()
    assert loaded.version_.data == TrainingData.of(lists).fingerprint


def test_the_fingerprint_changes_with_labels_and_texts() -> None:
    def fingerprint(passage: str, label: int) -> str:
        return TrainingData.of(Lists.of_texts(["a"], [[passage]], [[label]])).fingerprint

    assert fingerprint("b", 1) == fingerprint("b", 1)
    assert len({fingerprint("b", 1), fingerprint("b", 0), fingerprint("c", 1)}) == 3


def test_lists_without_texts_have_none() -> None:
    assert TrainingData.of(Lists(np.eye(2), np.array([1.0, 0.0]))) is None
