"""Files that 0.2.0 has written, one of each class, are read, and answer as they did then.

They are the models of `tests.model.test_sizes.FITTED` and, in answers.json, what `answers` gave,
as the code of 0.2.0 wrote both.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma
from didyma.model import CLASSES, Model
from tests.model.test_sizes import LISTS, TEXTS, VECTORS

FOLDER = Path(__file__).parents[1] / "model_files"
QUERY, PASSAGES = "who rings ?", ["They ring .", "It is late .", "A bell ."]

NEW = {"Cascade", "RidgeRanker"}  # which 0.2 has not


def answers(model: Any) -> Any:
    """What a model says of some input that is the same for all models of its kind."""
    name = type(model).__name__
    if name in ("TextReranker", "Reranker", "PassageRanker"):
        if name == "TextReranker":
            model.attach(VECTORS)
        scores = {"scores": [2.0, 1.0, 3.0]} if getattr(model, "uses_scores", False) else {}
        return [getattr(own, "raw", own.score) for own in model.rank(QUERY, PASSAGES, **scores)]
    if name == "TextFeatures":
        for part in model.parts:
            part.attach(VECTORS)
    if name in ("TextFeatures", "Joined", "PassageEmbedding"):
        return model.transform(TEXTS).tolist()
    if name == "NBestReranker":
        return model.predict(LISTS).tolist()
    if name == "TrigramTagger":
        return [own for _, own in model.n_best([["a", "dog", "sleeps"]], 2)[0]]
    if name == "MotifFinder":
        return model.decision_function(["ACGTACGT", "TTTACG"]).tolist()
    if name == "EntailmentClassifier":
        return model.predict_proba([("a dog", "a bird")]).tolist()
    if hasattr(model, "n_features_in_") and hasattr(model, "predict"):
        n = model.n_features_in_
        if name == "CoreferenceResolver":
            return model.coef_.tolist()
        return model.predict(np.sin(np.arange(6.0 * n)).reshape(6, n)).tolist()
    return []


@pytest.mark.parametrize("name", sorted(set(CLASSES) - NEW))
def test_a_file_of_0_2_answers_as_it_did(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.safetensors"
    written = Model.read(path)
    assert (written.format_version, written.library_version) == (1, "0.2.0")
    model = didyma.load(path)
    expected = json.loads((FOLDER / "answers.json").read_text())[name]
    np.testing.assert_allclose(answers(model), expected, rtol=1e-6, atol=1e-9)
    again = Model.of(didyma.load(path))
    if name == "MotifFinder":  # the length of the background's words was meant, one more
        written.record["parameters"]["order"] -= 1
    assert without_new_parameters(again.record, written.record) == written.record
    assert again.tensors.keys() == written.tensors.keys()
    for key, array in written.tensors.items():
        np.testing.assert_array_equal(again.tensors[key], array)
    again.write(tmp_path / "again")
    assert Model.read(tmp_path / "again").record == again.record


def without_new_parameters(record: Any, old: Any) -> Any:
    """A record without the parameters that its classes had not yet when another was written."""
    if isinstance(record, list) and isinstance(old, list):
        return [without_new_parameters(*pair) for pair in zip(record, old, strict=True)]
    if not (isinstance(record, dict) and isinstance(old, dict)):
        return record
    return {
        key: {name: part[name] for name in part if name in old[key]}
        if key == "parameters" and key in old
        else without_new_parameters(part, old.get(key))
        for key, part in record.items()
    }
