"""What is read off mentions, and the words by which it is."""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from didyma.applications.coreference import reader as coreference
from didyma.applications.coreference.mentions import FEATURES, pair_features
from didyma.applications.coreference.mentions.english import GENDER, PRONOUNS
from didyma.applications.coreference.reader import Document, Mention

DATA = files("didyma.applications.coreference.mentions").joinpath("english.json")


def test_every_word_has_one_meaning_and_is_found_as_it_is_written() -> None:
    data = json.loads(DATA.read_text("utf-8"))
    pronouns = [word for row in data["pronouns"] for word in row["words"].split()]
    gendered = [word for words in data["genders"].values() for word in words.split()]
    for words, table in ((pronouns, PRONOUNS), (gendered, GENDER)):
        assert [word for word, count in Counter(words).items() if count > 1] == []
        assert [word for word in words if word != word.casefold()] == []
        assert len(table) == len(words) > 40


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Mr. Knightley", "he", "same gender, name before pronoun"),
        ("Mr. Knightley", "she", "other gender, name before pronoun"),
        ("the ladies", "they", "same number, noun before pronoun"),
        ("the old house", "the new house", "same head, other modifiers, nouns"),
        ("a garden in London", "the garden", "same head, nouns"),
        ("I", "you", "I and you, no quotation"),
    ],
)
def test_what_two_mentions_share(first: str, second: str, expected: str) -> None:
    words = (*first.split(), "saw", *second.split())
    start = len(first.split()) + 1
    mentions = (Mention(0, start - 1, "0"), Mention(start, len(words), "1"))
    document = Document(
        "d", "0", words, np.zeros(len(words), np.int64), ("",) * len(words), mentions
    )
    (row,) = pair_features(document).features
    assert expected in {name for name, on in zip(FEATURES, row) if on}


def test_features_of_pairs_say_what_they_are_named(tmp_path: Path) -> None:
    path = tmp_path / "tale.conll"
    rows = [
        *(("Mrs.", "(0"), ("Weston", "0)"), ("saw", "-"), ("the", "(1"), ("old", "-")),
        *(("house", "1)"), ("of", "-"), ("her", "(2|(0)"), ("brother", "2)"), (".", "-")),
    ]
    lines = [f"t 0 {k} {word} {brackets}" for k, (word, brackets) in enumerate(rows)]
    path.write_text("\n".join(["#begin document (t); part 0", *lines, "", "#end document\n"]))
    (document,) = coreference.read(path)
    texts = [document.text(mention) for mention in document.mentions]
    assert texts == ["Mrs. Weston", "the old house", "her brother", "her"]
    pairs = pair_features(document)
    assert pairs.features.dtype == np.uint8
    on = {
        (texts[i], texts[j]): {FEATURES[k] for k in np.flatnonzero(row)}
        for row, i, j in zip(pairs.features, *np.triu_indices(4, 1))
    }
    assert {
        "any pair",
        "name before he",
        "same gender, name before pronoun",
        "nearest that agrees, name before pronoun",
    } <= on["Mrs. Weston", "her"]
    assert {"other gender, name and noun", "name before possessive"} <= on[
        "Mrs. Weston", "her brother"
    ]
    assert "nested" in on["her brother", "her"]
    assert {"other gender, noun before pronoun", "definite before he"} <= on["the old house", "her"]
    assert len(set(FEATURES)) == len(FEATURES)
