"""Every column that a reranker may look at has words, and no two have the same."""

from __future__ import annotations

import numpy as np

from didyma.data.attributes import Attributes
from didyma.data.lists import Lists
from didyma.text import ExtendedFeatures, TextFeatures, WordVectors
from didyma.text.features import FieldOverlaps, FirstStage, Meaning, Signals
from didyma.text.features.descriptions import described


def letters(texts):
    return [[text.count(letter) + 0.1 for letter in "abc"] for text in texts]


def test_all_columns_are_told_in_different_words():
    values = {"a_b": np.array([1.0, np.nan] * 5), "kind": np.array(["x", "y"] * 5, object)}
    attributes = Attributes({"title": ["one", "two"] * 5}, values, ("a_b",))
    lists = Lists(
        ["It is late.", "Ida wrote it."] * 5,
        queries=["who wrote it?"],
        scores=np.arange(10.0),
        attributes=attributes,
    )
    parts = [
        *(ExtendedFeatures(), FirstStage(), Signals(), FieldOverlaps("title"), Meaning(letters)),
        WordVectors(letters),
    ]
    features = TextFeatures(parts, "english").fit(lists)
    names = [*features.names, *(f"{name} in list" for name in features.names if name[:3] != "sig")]
    words = {name: described(name) for name in names}
    for name, told in words.items():
        if "_" in told:
            assert "a_b" in told, name  # a signal is called what it is called
        assert told != name or name == "length", name
    assert len(set(words.values())) >= len(names) - 1  # place by a_b is both a rank and its RRF


def test_signals_are_called_by_their_names():
    assert described("signal.dense score") == "dense score"
    assert described("signal.kind=news in brief") == "kind is news in brief"
    assert described("my own") == "my own"
    assert described("signal.a rank × bm25") == "place by a × BM25 of the words"
