"""Joint features against plain counting; what they leave out changes no order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from didyma.errors import DataError
from didyma.features.joint import JointFeatures, ngram_features, suffix_features
from didyma.formats.nbest import Candidate, NBest

words = st.lists(st.sampled_from(["a", "the", "selling", "ring"]), min_size=1, max_size=5)


@st.composite
def aligned_lists(draw: st.DrawFn) -> NBest:
    sentence = draw(words)
    tags = st.lists(
        st.sampled_from(["DT", "NN", "VB"]), min_size=len(sentence), max_size=len(sentence)
    )
    outputs = draw(st.lists(tags, min_size=0, max_size=4))
    candidates = [Candidate(" ".join(output), -float(k)) for k, output in enumerate(outputs)]
    return NBest("1", " ".join(sentence), None, candidates)


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
def test_differences_are_those_of_all_features(kind: str, train: list[NBest], test: NBest) -> None:
    joint = JointFeatures(kind, decoder=False).fit(train)
    names = joint.get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    found = joint.transform([test]).toarray()
    everything = [
        slow_features(kind, (test.input or "").split(), candidate.text.split())
        for candidate in test.candidates
    ]
    expected = np.array([[row.count(name) for name in names] for row in everything])
    expected = expected.reshape(found.shape)
    np.testing.assert_array_equal(found - found[:1], expected - expected[:1])
    # What differs is there as it is, so that boosting may ask whether it is there.
    differs = (expected != expected[:1]).any(axis=0) if len(expected) else []
    np.testing.assert_array_equal(found[:, differs], expected[:, differs])
    varying = set()
    for nbest in train:
        rows = [
            slow_features(kind, (nbest.input or "").split(), c.text.split())
            for c in nbest.candidates
        ]
        for name in {name for row in rows for name in row}:
            if len({row.count(name) for row in rows}) > 1:
                varying.add(name)
    assert varying <= set(names)


def test_the_suffix_set_is_that_of_the_paper() -> None:
    found = suffix_features(("DT", "NN", "selling"))
    assert found == [
        *("-ng/NN", "-ng/DT NN", "-ing/NN", "-ing/DT NN", "-ling/NN", "-ling/DT NN"),
    ]
    assert suffix_features(("DT", "NN", "a")) == []


def test_the_n_gram_set_sees_neighbours() -> None:
    assert ngram_features(("<s>", "DT", "NN", "the", "ring", "is")) == [
        *("NN", "DT NN", "<s> DT NN", "w=ring/NN", "w=ring/DT NN"),
        *("w-1=the/NN", "w+1=is/NN", "w-1w=the ring/NN", "ww+1=ring is/NN"),
    ]


TEXTS = [
    NBest("1", "x", None, [Candidate("he goes", -3.0), Candidate("him goes home", -5.0)]),
    NBest("2", "x", None, [Candidate("yes", -1.0)]),
]


def test_texts_have_words_pairs_and_lengths() -> None:
    joint = JointFeatures().fit(TEXTS)
    assert joint.features_ == "text"
    names = joint.get_feature_names_out().tolist()
    assert set(names) == {
        *("he", "he goes", "him", "home", "him goes", "goes home"),
        *("length", "decoder score"),
    }
    found = joint.transform(TEXTS).toarray()
    row = dict(zip(names, found[1]))
    assert (row["him"], row["he"], row["length"], row["decoder score"]) == (1, 0, 1, -1)
    assert not found[2].any()


def numbered(*rows: dict[str, float], scored: bool = False) -> NBest:
    candidates = [
        Candidate("a", -k if scored else None, features=row) for k, row in enumerate(rows)
    ]
    return NBest("1", "x", None, candidates)


def test_numbers_are_centred_and_scaled() -> None:
    lists = [numbered({"lm": -300.0, "c": 0.1}, {"lm": -304.0, "c": 0.1}, {"lm": -302.0, "c": 0.1})]
    joint = JointFeatures("text").fit(lists)
    names = joint.get_feature_names_out().tolist()
    assert names == ["lm", "c", "length"]
    deviation = np.sqrt(8 / 3)
    found = joint.transform(lists).toarray()
    np.testing.assert_allclose(found[:, 0], np.array([2, -2, 0]) / deviation)
    assert not found[:, 1:].any()
    unseen = [numbered({"lm": 1.0, "new": 7.0}, {"c": 3.0}, {}), numbered({"lm": 5.0})]
    found = joint.transform(unseen).toarray()
    np.testing.assert_allclose(found[:, 0], np.array([2 / 3, -1 / 3, -1 / 3, 0]) / deviation)
    assert not found[:, 1:].any()


def test_boosting_gets_indicators() -> None:
    lists = [numbered({"lm": 1.0}, {"lm": 0.0}, {"lm": -1.0})]
    joint = JointFeatures("text", binary=True).fit(lists)
    names = joint.get_feature_names_out().tolist()
    found = joint.transform(lists).toarray()
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
    candidates = [Candidate("a", vector=np.array([1.0, 2.0])), Candidate("a", vector=np.ones(2))]
    lists = [NBest("1", None, None, candidates), NBest("2", None, None, [])]
    joint = JointFeatures("text").fit(lists)
    assert joint.get_feature_names_out().tolist() == ["length", "vector[0]", "vector[1]"]
    np.testing.assert_allclose(joint.transform(lists).toarray(), [[0, 0, 1], [0, 0, -1]])
    with pytest.raises(DataError, match=r"vector: expected 2 numbers .*, found 0"):
        joint.transform(TEXTS)
    wrong = [NBest("1", None, None, [Candidate("a", vector=np.ones(3))])]
    with pytest.raises(DataError, match=r"vector: expected 2 numbers .*, found 3"):
        joint.transform(wrong)


def test_rare_differences_are_left_out() -> None:
    lists = [
        NBest("1", "ring", None, [Candidate("NN"), Candidate("VB")]),
        NBest("2", "ring", None, [Candidate("NN"), Candidate("JJ")]),
    ]
    joint = JointFeatures("n-gram", min_count=2).fit(lists)
    names = joint.get_feature_names_out().tolist()
    assert "w=ring/NN" in names
    assert not any("VB" in name or "JJ" in name for name in names)


def test_alignment_is_found_or_asked_for() -> None:
    aligned = NBest("1", "the ring", None, [Candidate("DT NN"), Candidate("DT VB")])
    assert JointFeatures().fit([aligned]).features_ == "suffix"
    assert JointFeatures().fit([aligned, *TEXTS]).features_ == "text"
    joint = JointFeatures("n-gram").fit([aligned])
    for wrong in (TEXTS[:1], [NBest("1", None, None, [Candidate("DT")])]):
        with pytest.raises(DataError, match="list '1': n-gram features need an input and cand"):
            joint.transform(wrong)
    with pytest.raises(DataError, match="features: expected one of 'auto', 'suffix'"):
        JointFeatures("stems").fit([aligned])


def test_names_do_not_depend_on_hashes_and_are_kept() -> None:
    joint = JointFeatures().fit(TEXTS)
    expected = ["he", "he goes", "him", "home", "him goes", "goes home", "length", "decoder score"]
    assert joint.get_feature_names_out().tolist() == expected
    again = clone(joint)
    for name in joint._state:
        setattr(again, name, getattr(joint, name))
    np.testing.assert_array_equal(
        again.transform(TEXTS).toarray(), joint.transform(TEXTS).toarray()
    )


def test_no_lists_and_empty_lists_have_no_rows() -> None:
    joint = JointFeatures().fit(TEXTS)
    assert joint.transform([]).shape == (0, 8)
    assert joint.transform([NBest("1", "x", None, [])]).shape == (0, 8)
    assert JointFeatures("text").fit([]).transform(TEXTS).shape[0] == 3
