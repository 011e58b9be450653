"""Joint features against plain counting; what they leave out changes no order."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.nbest.joint import JointFeatures, ngram_features, suffix_features
from tests.cases import Case, Guess, stack

words = st.lists(st.sampled_from(["a", "the", "selling", "ring"]), min_size=1, max_size=5)


@st.composite
def aligned_lists(draw: st.DrawFn) -> Case:
    sentence = draw(words)
    tags = st.lists(
        st.sampled_from(["DT", "NN", "VB"]), min_size=len(sentence), max_size=len(sentence)
    )
    outputs = draw(st.lists(tags, min_size=0, max_size=4))
    guesses = [Guess(" ".join(output), -float(k)) for k, output in enumerate(outputs)]
    return Case("1", " ".join(sentence), None, guesses)


def slow_features(kind: str, sentence: list[str], tags: list[str]) -> list[str]:
    found = []
    for i, (word, tag) in enumerate(zip(sentence, tags)):
        before = tags[i - 1] if i > 0 else "<s>"
        second = tags[i - 2] if i > 1 else "<s>"
        left = sentence[i - 1] if i > 0 else "<s>"
        right = sentence[i + 1] if i + 1 < len(sentence) else "</s>"
        if kind == "suffix":
            found += suffix_features((before, tag, word))
        else:
            found += ngram_features((second, before, tag, left, word, right))
    return found


@pytest.mark.parametrize("kind", ["suffix", "n-gram"])
@given(train=st.lists(aligned_lists(), min_size=1, max_size=3), test=aligned_lists())
def test_differences_are_those_of_all_features(kind: str, train: list[Case], test: Case) -> None:
    joint = JointFeatures(kind, decoder=False).fit(stack(train))
    names = list(joint.names)
    assert len(set(names)) == len(names)
    found = joint.transform(stack([test])).toarray()
    everything = [
        slow_features(kind, (test.input or "").split(), candidate.text.split())
        for candidate in test.guesses
    ]
    expected = np.array([[row.count(name) for name in names] for row in everything])
    expected = expected.reshape(found.shape)
    np.testing.assert_array_equal(found - found[:1], expected - expected[:1])
    # What differs is there as it is, so that boosting may ask whether it is there.
    differs = (expected != expected[:1]).any(axis=0) if len(expected) else []
    np.testing.assert_array_equal(found[:, differs], expected[:, differs])
    varying = set()
    for case in train:
        rows = [
            slow_features(kind, (case.input or "").split(), guess.text.split())
            for guess in case.guesses
        ]
        for name in {name for row in rows for name in row}:
            if len({row.count(name) for row in rows}) > 1:
                varying.add(name)
    assert varying <= set(names)


def test_the_suffix_set_is_that_of_the_paper() -> None:
    found = suffix_features(("DT", "NN", "selling"))
    assert found == [*("-ng/NN", "-ng/DT NN", "-ing/NN", "-ing/DT NN", "-ling/NN", "-ling/DT NN")]
    assert suffix_features(("DT", "NN", "a")) == []


def test_the_n_gram_set_sees_neighbours() -> None:
    assert ngram_features(("<s>", "DT", "NN", "the", "ring", "is")) == [
        *("NN", "DT NN", "<s> DT NN", "w=ring/NN", "w=ring/DT NN"),
        *("w-1=the/NN", "w+1=is/NN", "w-1w=the ring/NN", "ww+1=ring is/NN"),
    ]


TEXTS = [
    Case("1", "x", None, [Guess("he goes", -3.0), Guess("him goes home", -5.0)]),
    Case("2", "x", None, [Guess("yes", -1.0)]),
]


UNSCORED = [
    case._replace(id=f"{case.id}x", guesses=[Guess(guess.text) for guess in case.guesses])
    for case in TEXTS
]


def test_texts_have_words_pairs_and_lengths() -> None:
    joint = JointFeatures().fit(stack(TEXTS))
    assert joint.features_ == "text"
    names = list(joint.names)
    assert set(names) == {
        *("he", "he goes", "him", "home", "him goes", "goes home"),
        *("length", "decoder score"),
    }
    found = joint.transform(stack(TEXTS)).toarray()
    row = dict(zip(names, found[1]))
    assert (row["him"], row["he"], row["length"], row["decoder score"]) == (1, 0, 1, -1)
    assert not found[2].any()


def numbered(*rows: dict[str, float], scored: bool = False) -> Case:
    guesses = [Guess("a", -k if scored else None, features=row) for k, row in enumerate(rows)]
    return Case("1", "x", None, guesses)


def test_numbers_are_centred_and_scaled() -> None:
    lists = [numbered({"lm": -300.0, "c": 0.1}, {"lm": -304.0, "c": 0.1}, {"lm": -302.0, "c": 0.1})]
    joint = JointFeatures("text").fit(stack(lists))
    names = list(joint.names)
    assert names == ["lm", "c", "length"]
    deviation = np.sqrt(8 / 3)
    found = joint.transform(stack(lists)).toarray()
    np.testing.assert_allclose(found[:, 0], np.array([2, -2, 0]) / deviation)
    assert not found[:, 1:].any()
    unseen = [numbered({"lm": 1.0, "new": 7.0}, {"c": 3.0}, {}), numbered({"lm": 5.0})]
    found = joint.transform(stack(unseen)).toarray()
    np.testing.assert_allclose(found[:, 0], np.array([2 / 3, -1 / 3, -1 / 3, 0]) / deviation)
    assert not found[:, 1:].any()


def test_boosting_gets_indicators() -> None:
    lists = [numbered({"lm": 1.0}, {"lm": 0.0}, {"lm": -1.0})]
    joint = JointFeatures("text", binary=True).fit(stack(lists))
    names = list(joint.names)
    found = joint.transform(stack(lists)).toarray()
    for name, test in (
        ("lm > 0", lambda z: z > 0),
        ("lm > 1", lambda z: z > 1),
        ("lm > 1.5", lambda z: z > 1.5),
        ("lm < 0", lambda z: z < 0),
        ("lm < -0.5", lambda z: z < -0.5),
    ):
        z = np.array([1, 0, -1]) / np.sqrt(2 / 3)
        np.testing.assert_array_equal(found[:, names.index(name)], test(z))
    assert not found[:, names.index("length > 0")].any()


def test_vectors_are_numbers() -> None:
    guesses = [Guess("a", vector=np.array([1.0, 2.0])), Guess("a", vector=np.ones(2))]
    lists = [Case("1", None, None, guesses), Case("2", None, None, [])]
    joint = JointFeatures("text").fit(stack(lists))
    assert list(joint.names) == ["length", "vector[0]", "vector[1]"]
    np.testing.assert_allclose(joint.transform(stack(lists)).toarray(), [[0, 0, 1], [0, 0, -1]])
    with pytest.raises(DataError, match=r"vector: expected 2 numbers .*, found 0"):
        joint.transform(stack(TEXTS))
    wrong = [Case("1", None, None, [Guess("a", vector=np.ones(3))])]
    with pytest.raises(DataError, match=r"vector: expected 2 numbers .*, found 3"):
        joint.transform(stack(wrong))


def test_rare_differences_are_left_out() -> None:
    lists = [
        Case("1", "ring", None, [Guess("NN"), Guess("VB")]),
        Case("2", "ring", None, [Guess("NN"), Guess("JJ")]),
    ]
    joint = JointFeatures("n-gram", min_count=2).fit(stack(lists))
    names = list(joint.names)
    assert "w=ring/NN" in names
    assert not any("VB" in name or "JJ" in name for name in names)


def test_alignment_is_found_or_asked_for() -> None:
    aligned = Case("1", "the ring", None, [Guess("DT NN"), Guess("DT VB")])
    assert JointFeatures().fit(stack([aligned])).features_ == "suffix"
    assert JointFeatures().fit(stack([aligned, *UNSCORED])).features_ == "text"
    joint = JointFeatures("n-gram").fit(stack([aligned]))
    for wrong in (TEXTS[:1], [Case("1", None, None, [Guess("DT")])]):
        with pytest.raises(DataError, match="list '1': n-gram features need an input and cand"):
            joint.transform(stack(wrong))
    with pytest.raises(DataError, match="features: expected one of 'auto', 'suffix'"):
        JointFeatures("stems").fit(stack([aligned]))


def test_names_do_not_depend_on_hashes_and_are_kept() -> None:
    joint = JointFeatures().fit(stack(TEXTS))
    expected = ["he", "he goes", "him", "home", "him goes", "goes home", "length", "decoder score"]
    assert list(joint.names) == expected
    arrays, record = joint.state()
    again = JointFeatures.from_state(arrays, json.loads(json.dumps(record)))
    with pytest.raises(ValueError, match=r"deviations_ should be 2, but is 3"):
        JointFeatures.from_state({**arrays, "deviations_": np.ones(3)}, record)
    np.testing.assert_array_equal(
        again.transform(stack(TEXTS)).toarray(), joint.transform(stack(TEXTS)).toarray()
    )


def test_no_lists_and_empty_lists_have_no_rows() -> None:
    joint = JointFeatures().fit(stack(TEXTS))
    assert joint.transform(stack([])).shape == (0, 8)
    assert joint.transform(stack([Case("1", "x", None, [])])).shape == (0, 8)
    assert JointFeatures("text").fit(stack([])).transform(stack(TEXTS)).shape[0] == 3


def test_rows_stand_where_they_did() -> None:
    lists = stack(TEXTS)
    joint = JointFeatures().fit(lists)
    order = [2, 1, 0]
    mixed_up = Lists(
        [lists.items[row] for row in order],
        qid=lists.qid[order],
        scores=lists.scores[order],
        queries=lists.queries[::-1],
    )
    expected = joint.transform(lists).toarray()[order]
    np.testing.assert_array_equal(joint.transform(mixed_up).toarray(), expected)
    scattered = Lists(
        [lists.items[row] for row in (0, 2, 1)],
        qid=lists.qid[[0, 2, 1]],
        scores=lists.scores[[0, 2, 1]],
        queries=lists.queries,
    )
    expected = joint.transform(lists).toarray()[[0, 2, 1]]
    np.testing.assert_array_equal(joint.transform(scattered).toarray(), expected)
