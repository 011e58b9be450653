"""Bags against plain counting."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.bags import Bag, FeatureColumns, character_pieces, ngrams, suffixes
from didyma.nbest.formats import of_outputs
from didyma.ranking.featuriser import State

words = st.text("abé", min_size=1, max_size=6)
texts = st.lists(words, max_size=6).map(" ".join)


def slow_features(kind: str, text: str) -> list[str]:
    tokens = text.split()
    if kind == "suffixes":
        return [f"-{word[-n:]}" for word in tokens for n in (2, 3, 4) if n <= len(word)]
    if kind == "characters":
        return [*"".join(tokens)] + ["".join(pair) for word in tokens for pair in pairwise(word)]
    return tokens + [" ".join(pair) for pair in pairwise(tokens)]


@pytest.mark.parametrize("kind", ["suffixes", "n-grams", "characters"])
@given(
    train=st.lists(texts, max_size=6), test=st.lists(texts, max_size=6), min_count=st.integers(1, 3)
)
def test_a_bag_is_a_count(kind: str, train: list[str], test: list[str], min_count: int) -> None:
    bag = Bag(kind, min_count=min_count).learn(train)
    totals = Counter(feature for text in train for feature in slow_features(kind, text))
    names = bag.names
    assert set(names) == {name for name, count in totals.items() if count >= min_count}
    found = bag.count(test)
    assert found.shape == (len(test), len(names))
    assert found.has_canonical_format
    expected = [[slow_features(kind, text).count(name) for name in names] for text in test]
    np.testing.assert_array_equal(found.toarray(), np.array(expected).reshape(found.shape))


def test_lengths_can_be_chosen() -> None:
    assert suffixes("selling", (1, 9, 7)) == ["-g", "-selling"]
    assert character_pieces("abcd", (3,)) == ["abc", "bcd"]
    assert list(ngrams(["a", "b", "c"], (3,))) == ["a b c"]
    assert list(ngrams(["a"], (2,))) == []
    bag = Bag("n-grams", (3,)).learn(["a b c d"])
    assert bag.names == ("a b c", "b c d")


def test_tokens_may_be_given_as_lists() -> None:
    listed = Bag("n-grams").learn([["a", "b"], ("b", "a")])
    written = Bag("n-grams").learn(["a b", "b a"])
    assert listed.names == written.names
    np.testing.assert_array_equal(
        listed.count([["a", "b"]]).toarray(), written.count(["a b"]).toarray()
    )


def test_unseen_features_are_left_out() -> None:
    bag = Bag("n-grams").learn(["a b"])
    assert bag.count(["c d", ""]).nnz == 0
    assert Bag("suffixes").learn([]).count(["selling"]).shape == (1, 0)


def test_names_are_kept_in_an_array() -> None:
    bag = Bag("characters").learn(["né à", "東京"])
    again = clone(bag)
    again.names_ = bag.names_
    assert again.names == bag.names
    np.testing.assert_array_equal(
        again.count(["à né 東"]).toarray(), bag.count(["à né 東"]).toarray()
    )
    assert FeatureColumns.decode(FeatureColumns([]).encode()).names == ()
    with pytest.raises(DataError, match="several lines"):
        FeatureColumns(["a\nb"]).encode()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"kind": "stems"}, "kind: expected one of 'suffixes', 'n-grams', 'characters'"),
        ({"lengths": ()}, "lengths: expected lengths from 1 up"),
        ({"lengths": (0, 1)}, "lengths: expected lengths from 1 up"),
        ({"min_count": 0}, "min_count: expected a whole number from 1 on"),
    ],
)
def test_parameters_are_checked(parameters: dict, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        Bag(**parameters).learn(["a"])


def test_one_text_is_no_collection() -> None:
    with pytest.raises(DataError, match="expected texts, found one text"):
        Bag().learn("a b")


def test_items_of_lists_are_counted() -> None:
    passages = Lists.of_texts(["x"], [["a b", "b"]])
    outputs = of_outputs(["x"], [["a b", "b"]])
    bag = Bag("n-grams").fit(passages)
    assert bag.names == Bag("n-grams").fit(outputs).names == ("a", "b", "a b")
    for lists in (passages, outputs):
        np.testing.assert_array_equal(bag.transform(lists).toarray(), [[1, 1, 1], [0, 1, 0]])
    again = Bag.from_state(*json_round_trip(bag.state()))
    assert (again.get_params(), again.names) == (bag.get_params(), bag.names)
    arrays, record = bag.state()
    with pytest.raises(ValueError, match=r"Bag\.names_ is missing"):
        Bag.from_state({}, record)
    with pytest.raises(ValueError, match=r"Bag\.magic: there is no such parameter"):
        Bag.from_state(arrays, {**record, "parameters": {"magic": 1}})


def json_round_trip(state: State) -> State:
    arrays, record = state
    return arrays, json.loads(json.dumps(record))


def test_values_of_known_names() -> None:
    vocabulary = FeatureColumns(["lm", "tm"])
    found = vocabulary.values([{"tm": 2.0, "other": 1.0}, {}, {"lm": -1.0, "tm": 0.5}])
    np.testing.assert_array_equal(found.toarray(), [[0, 2], [0, 0], [-1, 0.5]])
