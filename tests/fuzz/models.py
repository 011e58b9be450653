"""Model files of every class, as targets: what is loaded is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import didyma
from didyma.applications.coreference.reader import Document, Mention
from didyma.data.conll import Field, Sentence
from didyma.data.lists import Lists
from didyma.model import CLASSES, Model
from didyma.nbest.formats import Output
from didyma.text.features import WordVectors
from tests.fuzz.mutators import Parts
from tests.fuzz.target import Target, parts_of
from tests.model.test_codec import FITTED, LISTS, TEXTS, VECTORS

__all__ = ["MODELS"]

FILE = "model.safetensors"


def seed(name: str) -> Callable[[Path], Parts]:
    def made(folder: Path) -> Parts:
        Model.of(FITTED[name]()).write(folder / FILE)
        return parts_of(folder)

    return made


def rows(model: Any) -> None:
    first = model.steps[0][1] if hasattr(model, "steps") else model
    width = first.n_features_in_
    X = np.random.default_rng(0).normal(size=(6, width))
    (model.predict if hasattr(model, "predict") else model.transform)(X)


def texts(model: Any) -> None:
    if isinstance(model, didyma.TextReranker):
        model.attach(VECTORS)
    asked = "who rings ?", ["They ring .", "It is late ."]
    scores = [2.0, 1.0] if model.uses_scores else None
    model.rank(*asked, scores=scores)
    model.explain(*asked, scores)


def tagged(model: Any) -> None:
    model.predict([["a", "dog", "sleeps"]])
    model.n_best([["a", "dog"]], 3)


def parsed(model: Any) -> None:
    model.predict([Sentence.from_words(["a", "tree"]).replaced({Field.UPOS: ["X"] * 2})])


def vectorised(model: Any) -> None:
    for part in model.parts:
        if isinstance(part, WordVectors):
            part.attach(VECTORS)
    model.transform(TEXTS)


def transformed(lists: Lists) -> Callable[[Any], object]:
    return lambda model: model.transform(lists)


DOCUMENT = Document(
    *("d", "0", ("Ada", "rang", "her", "bell"), np.zeros(4, np.int64), ("",) * 4),
    (Mention(0, 1, ""), Mention(2, 3, "")),
)
ASKED: dict[str, Callable[[Any], object]] = {
    "CoreferenceResolver": lambda model: model.predict([DOCUMENT]),
    "MotifFinder": lambda model: model.predict(["ACGTACGT", "AC"]),
    "TrigramTagger": tagged,
    "LowRankReranker": lambda model: model.score_candidates(
        np.ones((1, model.n_features_in_)), [np.ones((2, len(model.B_)))]
    ),
    "BoostingReranker": lambda model: model.rerank([np.ones((2, model.n_features_in_))]),
    "NBestReranker": lambda model: model.rerank(LISTS),
    "Bag": transformed(LISTS),
    "JointFeatures": transformed(LISTS),
    "GivenVectors": transformed(
        Lists([Output("NN", vector=np.arange(3.0)), Output("VB", vector=np.ones(3))])
    ),
    "DependencyParser": parsed,
    "EntailmentClassifier": lambda model: model.predict_proba([("a dog", "a bird")]),
    "PassageRanker": lambda model: model.rank("who is it", ["it is me", "a bird"]),
    "Reranker": texts,
    "TextReranker": texts,
    "TextFeatures": vectorised,
    "Cascade": texts,  # whose teacher is not attached
    **dict.fromkeys(("Joined", "PassageEmbedding"), transformed(TEXTS)),
    **dict.fromkeys(
        (
            *("LatentStructuredPerceptron", "LatentStructuredSVM"),
            *("StructuredPerceptron", "StructuredSVM"),
        ),
        lambda model: model.set_params(task=None),
    ),
}


def ask(model: Any, folder: Path) -> None:
    """What every user of a model would, whatever class it has become."""
    ASKED.get(type(model).__name__, rows)(model)
    didyma.save(model, folder / FILE)


MODELS = [
    Target(f"model-{name}", seed(name), lambda place: didyma.load(place / FILE), ask)
    for name in CLASSES
]
