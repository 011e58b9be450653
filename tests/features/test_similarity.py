"""Text similarities against slow, plain definitions, and the laws they obey."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from didyma.errors import DataError
from didyma.features.similarity import (
    BLOCK,
    QUESTION_KINDS,
    TextSimilarity,
    place_in_document,
    question_kind,
    stem,
)
from didyma.kernels.similarity import common_runs, gappy_kernels

sequences = st.lists(st.integers(0, 3), max_size=7)

TRAIN = [
    ("who wrote Emma ?", "Emma was written by Jane Austen in 1815 ."),
    ("who wrote Emma ?", "The clock has two hands ."),
    ("when did the war end ?", "The war ended on May 8 , 1945 ."),
    ("when did the war end ?", "Wars are fought by armies ."),
    ("how many moons has Mars ?", "Mars ( a planet ) has two moons , Phobos and Deimos ."),
    ("how many moons has Mars ?", "It is red ."),
]


def ragged(*texts):
    words = np.array([word for text in texts for word in text], np.int64)
    return words, np.cumsum([0, *map(len, texts)]).astype(np.int64)


def one_pair(a, b):
    return *ragged(a, b), np.array([0]), np.array([1])


def runs_of(a, length):
    return {tuple(a[i : i + length]) for i in range(len(a) - length + 1)}


def subsequences(a, length):
    """Places of each subsequence of some length."""
    return list(combinations(range(len(a)), length))


def slow_substring(a, b):
    return max(n for n in range(len(a) + 1) if n == 0 or runs_of(a, n) & runs_of(b, n))


def slow_subsequence(a, b):
    words = {tuple(b[j] for j in js) for n in range(len(b) + 1) for js in subsequences(b, n)}
    return max(
        n
        for n in range(len(a) + 1)
        if any(tuple(a[i] for i in s) in words for s in subsequences(a, n))
    )


def slow_tiles(a, b, shortest):
    a, b, covered = list(a), list(b), 0
    while True:
        tiles = [
            (-n, i, j)
            for i in range(len(a))
            for j in range(len(b))
            for n in range(shortest, min(len(a) - i, len(b) - j) + 1)
            if a[i : i + n] == b[j : j + n]
        ]
        if not tiles:
            return covered
        n, i, j = min(tiles)
        a[i : i - n], b[j : j - n] = [f"a{covered}"] * -n, [f"b{covered}"] * -n
        covered -= n


def slow_kernel(a, b, decay, m):
    return sum(
        decay ** (s[-1] - s[0] + t[-1] - t[0] + 2)
        for s in subsequences(a, m)
        for t in subsequences(b, m)
        if [a[i] for i in s] == [b[j] for j in t]
    )


@given(sequences, sequences, st.integers(1, 3))
@settings(deadline=None)
def test_common_runs_are_their_definitions(a, b, shortest):
    found = common_runs(*one_pair(a, b), shortest)[0]
    assert found.tolist() == [
        slow_substring(a, b),
        slow_subsequence(a, b),
        slow_tiles(a, b, shortest),
    ]


@given(sequences, sequences, st.sampled_from([0.3, 0.5, 1.0]))
@settings(deadline=None)
def test_gappy_kernels_are_sums_over_subsequences(a, b, decay):
    found = gappy_kernels(*one_pair(a, b), decay, 3)[0]
    expected = [slow_kernel(a, b, decay, m) for m in (1, 2, 3)]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def fitted(kind="extended", **options):
    questions, sentences = zip(*TRAIN)
    return TextSimilarity(kind, **options).fit(questions, sentences)


def features(pair, kind="extended", **options):
    similarity = fitted(kind, **options)
    return dict(zip(similarity.get_feature_names_out(), similarity.transform([pair])[0]))


def test_the_features_of_the_paper():
    assert fitted("paper").get_feature_names_out().tolist() == [
        *("tfidf_cosine", "jaccard_1", "jaccard_2", "jaccard_3"),
        *("containment_1", "containment_2", "containment_3"),
        *("common_substring", "common_subsequence", "string_tiling", "subsequence_kernel", "esa"),
    ]


def test_the_extended_features_begin_with_those_of_the_paper():
    paper, extended = fitted("paper"), fitted()
    n = len(paper.get_feature_names_out())
    assert extended.get_feature_names_out()[:n].tolist() == list(paper.get_feature_names_out())
    np.testing.assert_array_equal(extended.transform(TRAIN)[:, :n], paper.transform(TRAIN))


def test_overlaps_of_ngrams():
    found = features(("red fox ran away", "a red fox ran home"), "paper")
    assert found["jaccard_1"] == pytest.approx(3 / 6)
    assert found["containment_1"] == pytest.approx(3 / 4)
    assert found["jaccard_2"] == pytest.approx(2 / 5)
    assert found["containment_2"] == pytest.approx(2 / 3)
    assert found["jaccard_3"] == pytest.approx(1 / 4)
    assert found["containment_3"] == pytest.approx(1 / 2)
    assert found["common_substring"] == pytest.approx(3 / 4)
    assert found["string_tiling"] == pytest.approx(3 / 4)


@pytest.mark.parametrize("text", ["the war ended in Europe", "Mars"])
def test_a_text_is_most_similar_to_itself(text):
    found = features((text, text), "paper")
    whole = ["tfidf_cosine", "jaccard_1", "containment_1", "common_subsequence", "esa"]
    assert [found[name] for name in whole] == pytest.approx([1] * len(whole))
    assert max(found.values()) <= 1 + 1e-12


def test_esa_is_the_cosine_of_concept_vectors():
    documents = [["red", "fox", "fox"], ["red", "owl"], ["owl", "elm"]]
    questions = [f"question {n}" for n in range(3)]
    similarity = TextSimilarity("paper").fit(questions, [" ".join(d) for d in documents])

    def rarity(term):
        return math.log(1 + 3 / sum(term in d for d in documents))

    def weight(term, d):
        return (1 + math.log(d.count(term))) * rarity(term) if term in d else 0.0

    def vector(text):
        lengths = [math.hypot(*(weight(t, d) for t in set(d))) for d in documents]
        return np.array(
            [sum(rarity(t) * weight(t, d) for t in text) / n for d, n in zip(documents, lengths)]
        )

    a, b = vector(["fox", "elm"]), vector(["red", "elm", "elm"])
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    column = similarity.get_feature_names_out().tolist().index("esa")
    found = similarity.transform([("fox elm", "red elm elm unheard")])[0, column]
    assert found == pytest.approx(expected)


def test_esa_relates_texts_without_a_common_word():
    related = features(("Jane", "Emma"), "paper")
    unrelated = features(("Jane", "Mars"), "paper")
    assert related["containment_1"] == unrelated["containment_1"] == 0
    assert related["esa"] > unrelated["esa"] == 0


@given(st.permutations(range(len(TRAIN))))
@settings(deadline=None, max_examples=10)
def test_no_feature_depends_on_the_order_of_candidates(order):
    similarity = fitted()
    shuffled = similarity.transform([TRAIN[i] for i in order])
    np.testing.assert_allclose(shuffled, similarity.transform(TRAIN)[list(order)], atol=1e-12)
    questions, sentences = zip(*(TRAIN[i] for i in order))
    learned = TextSimilarity().fit(questions, sentences).transform(TRAIN)
    np.testing.assert_allclose(learned, similarity.transform(TRAIN), atol=1e-12)


def test_blocks_make_no_difference():
    pairs = [TRAIN[i % len(TRAIN)] for i in range(BLOCK + 5)]
    similarity = fitted("paper")
    once = similarity.transform(TRAIN)
    expected = once[np.arange(len(pairs)) % len(TRAIN)]
    np.testing.assert_allclose(similarity.transform(pairs), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("pair", "cue"),
    [
        (("when did it end", "It ended in 1945 ."), "time:cue_year"),
        (("when did it end", "In June it ended ."), "time:cue_month"),
        (("how many moons are there", "It has 2 ."), "quantity:cue_new_number"),
        (("how many moons are there", "It has two ."), "quantity:cue_number_word"),
        (("how much is it", "It costs $ 5 ."), "quantity:cue_money"),
        (("who wrote it", "It was by Jane Austen ."), "person:cue_name"),
        (("where is it", "It is located in Rome ."), "place:cue_place"),
        (("why is it red", "It is red because of rust ."), "reason:cue_cause"),
        (("what is an owl", "An owl is a bird ."), "definition:cue_definition"),
        (("which owl is white", "The owl -LRB- snowy -RRB- ."), "thing:cue_bracket"),
    ],
)
def test_cues_count_for_the_kind_of_the_question(pair, cue):
    found = features(pair)
    kind, name = cue.split(":")
    assert found[cue] == found[name] > 0
    assert all(found[f"{other}:{name}"] == 0 for other in QUESTION_KINDS if other != kind)
    assert features((pair[0], "Nothing of that kind"))[cue] == 0


def test_overlaps_of_stems():
    found = features(
        ("where were Apollo 11 astronauts trained", "Apollo 11 : training , astronaut")
    )
    assert found["stem_coverage"] == found["stem_idf_coverage"] == found["prefix_coverage"] == 1
    assert found["capitals_matched"] == 0  # the first word of a sentence is always capitalised
    assert found["numbers_matched"] == found["head_matched"] == found["last_matched"] == 1
    assert found["opening_matched"] == 1
    assert found["rarest_missing"] == 0 < found["rarest_matched"]
    found = features(("what is an owl", "A snowy owl , as it is called , is white ."))
    assert found["subject_coverage"] == 1
    assert found["new_stems"] == pytest.approx(math.log(1 + 3))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Who wrote Emma ?", "person"),
        ("to whom did it belong", "person"),
        ("what year did it start", "time"),
        ("in which city is it", "place"),
        ("what is the population of Rome", "quantity"),
        ("how long is it", "quantity"),
        ("how does it work", "manner"),
        ("how", "manner"),
        ("what are owls", "definition"),
        ("what bird is white", "thing"),
        ("tell me", "other"),
        ("", "other"),
    ],
)
def test_question_kinds(text, kind):
    assert question_kind(text) == kind


@pytest.mark.parametrize(
    "family",
    [
        ["form", "formed", "forming", "formation"],
        ["stop", "stopped", "stopping"],
        ["locate", "located", "location"],
        ["carry", "carried"],
    ],
)
def test_words_of_a_family_have_one_stem(family):
    assert len({stem(word) for word in family}) == 1


def test_short_words_keep_their_endings():
    assert [stem(word) for word in ("ring", "bed", "her", "ally")] == ["ring", "bed", "her", "ally"]


def test_given_embeddings_add_their_similarities():
    vectors = {"owl": [1.0, 0.0], "bird": [0.8, 0.6], "rock": [0.0, 1.0], "void": [0.0, 0.0]}
    near = features(("owl", "bird"), "paper", embeddings=vectors)
    assert near["embedding_cosine"] == pytest.approx(0.8)
    assert near["embedding_alignment"] == pytest.approx(0.8)
    best = features(("owl", "rock bird void"), "paper", embeddings=vectors)
    assert best["embedding_alignment"] == pytest.approx(0.8) != best["embedding_cosine"]
    far = features(("owl", "unheard of"), "paper", embeddings=vectors)
    assert far["embedding_cosine"] == far["embedding_alignment"] == 0


@given(st.text(max_size=30), st.text(max_size=30))
@settings(deadline=None)
def test_any_text_has_finite_features(question, sentence):
    assert np.isfinite(SIMILARITY.transform([(question, sentence)])).all()


SIMILARITY = fitted()


def test_no_pairs_have_the_columns():
    assert SIMILARITY.transform([]).shape == (0, len(SIMILARITY.get_feature_names_out()))


def test_names_differ_and_it_clones():
    names = SIMILARITY.get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    assert clone(TextSimilarity("paper")).get_params() == {"kind": "paper", "embeddings": None}
    with pytest.raises(NotFittedError):
        TextSimilarity().transform(TRAIN)


def test_place_is_a_feature_of_its_own():
    assert place_in_document(["a", "a", "b", "b", "b", "a"]).ravel().tolist() == [
        *(1, 1 / 2, 1, 1 / 2, 1 / 3, 1)
    ]
    assert place_in_document([]).shape == (0, 1)


def test_bad_input():
    with pytest.raises(DataError, match=r"kind: expected one of paper, extended, found 'best'"):
        TextSimilarity("best").fit(["a"], ["a"])
    with pytest.raises(DataError, match="2 questions for 1 sentences"):
        TextSimilarity().fit(["a", "b"], ["a"])
    with pytest.raises(DataError, match="at least one passage that has words"):
        TextSimilarity().fit(["a"], ["..."])
    with pytest.raises(DataError, match="pair 1: expected a question and a sentence"):
        SIMILARITY.transform([("a", "b"), ("a",)])
    with pytest.raises(DataError, match="pair 0: expected a question and a sentence"):
        SIMILARITY.transform(["ab"])
    with pytest.raises(DataError, match="embeddings: expected vectors of one length"):
        fitted("paper", embeddings={})
    with pytest.raises(DataError, match="embeddings: expected vectors of one length"):
        fitted("paper", embeddings={"a": [1.0], "b": [1.0, 2.0]})
