"""Lexical features and BM25 against slow, plain definitions."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.features.lexical import BM25, LexicalFeatures, terms

words = st.sampled_from(["a", "bee", "cat", "dog", "eel"])
texts = st.lists(words, max_size=12).map(" ".join)
collections = st.lists(texts, min_size=1, max_size=8).filter(lambda passages: any(passages))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The yield-statement!", ["the", "yield", "statement"]),
        ("classes, indexes; matches bushes", ["class", "index", "match", "bush"]),
        ("queries uses values", ["query", "use", "value"]),
        ("class is this bus gas", ["class", "is", "this", "bus", "gas"]),
        ("__class_getitem__ C3 3.14", ["class", "getitem", "c3", "3", "14"]),
        ("Straße ŁÓDŹ 東京", ["strasse", "łódź", "東京"]),
        ("— … *", []),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


def idf(term, passages):
    n_with = sum(term in passage.split() for passage in passages)
    return math.log(1 + (len(passages) - n_with + 0.5) / (n_with + 0.5))


def slow_bm25(query, passage, passages):
    mean = sum(len(other.split()) for other in passages) / len(passages)
    score = 0.0
    for term in query.split():
        tf = passage.split().count(term)
        length = len(passage.split())
        score += idf(term, passages) * tf / (tf + 1.2 * (0.25 + 0.75 * length / mean))
    return score


@given(collections, texts)
def test_bm25_scores_are_the_plain_sums(passages, query):
    expected = [slow_bm25(query, passage, passages) for passage in passages]
    np.testing.assert_allclose(BM25().fit(passages).scores(query), expected, atol=1e-12)


@given(collections, texts, st.integers(1, 10))
def test_bm25_top_is_a_sort_of_all_scores(passages, query, k):
    index = BM25().fit(passages)
    scores = index.scores(query)
    expected = sorted(np.flatnonzero(scores).tolist(), key=lambda place: (-scores[place], place))
    places, values = index.top(query, k)
    assert places.tolist() == expected[:k]
    assert values.tolist() == scores[places].tolist()


def test_bm25_does_not_depend_on_the_order_of_passages():
    passages = ["a bee", "cat cat dog", "dog eel a", "eel"]
    forward = BM25().fit(passages).scores("dog eel bee")
    backward = BM25().fit(passages[::-1]).scores("dog eel bee")
    np.testing.assert_allclose(forward, backward[::-1])


def test_bm25_ignores_terms_that_no_passage_has():
    index = BM25().fit(["a bee", "cat"])
    assert index.top("unheard of", 5)[0].tolist() == []
    assert index.scores("").tolist() == [0.0, 0.0]


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(term in rest for term in part)


def slow_features(query, passage, passages):
    """Every feature by its definition, in the order of its name."""
    q, d = query.split(), passage.split()
    Q, D = set(q), set(d)

    def tfidf(text, term):
        tf = text.count(term)
        return (1 + math.log(tf)) * idf(term, passages) if tf else 0.0

    def norm(text):
        return math.sqrt(sum(tfidf(text, term) ** 2 for term in set(text)))

    def trigrams(text):
        padded = f" {text} "
        return {padded[i : i + 3] for i in range(len(padded) - 2)}

    product = sum(tfidf(q, term) * tfidf(d, term) for term in Q)
    q3, d3 = trigrams(query), trigrams(passage)
    weight = {term: idf(term, passages) for term in Q}
    pairs, in_order = set(pairwise(q)), set(pairwise(d))
    longest = max(
        size
        for size in range(len(q) + 1)
        for part in combinations(q, size)
        if is_subsequence(part, d)
    )
    early = sum(weight[term] * (1 - d.index(term) / len(d)) for term in Q & D)
    windows = [
        stop - start
        for start in range(len(d))
        for stop in range(start + 1, len(d) + 1)
        if (Q & D).issubset(d[start:stop])
    ]
    return {
        "bm25": slow_bm25(query, passage, passages),
        "tfidf_cosine": product / (norm(q) * norm(d)) if q and d else 0,
        "trigram_cosine": len(q3 & d3) / math.sqrt(len(q3) * len(d3)) if q3 and d3 else 0,
        "coverage": len(Q & D) / len(Q) if Q else 0,
        "idf_coverage": sum(weight[t] for t in Q & D) / sum(weight.values()) if Q else 0,
        "jaccard": len(Q & D) / len(Q | D) if Q | D else 0,
        "bigram_coverage": len(pairs & in_order) / len(pairs) if pairs else 0,
        "common_subsequence": longest / len(q) if q else 0,
        "earliness": early / sum(weight.values()) if Q else 0,
        "proximity": len(Q & D) / min(windows) if Q & D else 0,
        "length": math.log(1 + len(d)),
    }


@given(collections, st.lists(words, max_size=6).map(" ".join), texts)
def test_features_are_their_definitions(passages, query, passage):
    features = LexicalFeatures().fit(passages)
    expected = slow_features(query, passage, passages)
    found = features.transform(query, [passage])[0]
    assert set(features.names) == set(expected)
    for name, value in zip(features.names, found):
        assert value == pytest.approx(expected[name], abs=1e-12), name


def test_features_rank_a_matching_passage_above_another():
    passages = ["The yield statement makes generators.", "Names refer to objects."]
    features = LexicalFeatures().fit(passages)
    match, other = features.transform("yield statements", passages)
    similar = [name != "length" for name in features.names]
    assert np.all(match[similar] > other[similar])


def test_features_of_no_passages_have_their_columns():
    features = LexicalFeatures().fit(["a bee"])
    assert features.transform("a", []).shape == (0, len(features.names))


@pytest.mark.parametrize("learner", [BM25, LexicalFeatures])
@pytest.mark.parametrize("passages", [[], ["", "— …"]])
def test_a_collection_without_words_is_refused(learner, passages):
    with pytest.raises(DataError, match="at least one passage that has words"):
        learner().fit(passages)
