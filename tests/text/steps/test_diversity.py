"""Diversity by its definition: everything is computed anew for each pick."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.execution import interruptible
from didyma.ranking import Ranked, Ranking
from didyma.text import Diversity, take_steps
from didyma.text.steps.diversity import word_vectors

WORDS = ["abc", "castle", "rain", "storm", "ship", "tree", "river", "novel", "play", "ode"]


def word_cosine(texts: list[str], a: int, b: int) -> float:
    bags = [Counter(text.split()) for text in texts]

    def weights(bag: Counter[str]) -> dict[str, float]:
        return {
            word: (1 + math.log(count))
            * math.log(1 + len(texts) / sum(word in other for other in bags))
            for word, count in bag.items()
        }

    first, second = weights(bags[a]), weights(bags[b])
    product = sum(first[word] * second.get(word, 0.0) for word in first)
    lengths = [math.sqrt(sum(x * x for x in one.values())) for one in (first, second)]
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0


def cosine(a: list[float], b: list[float]) -> float:
    lengths = math.hypot(*a) * math.hypot(*b)
    return max(0.0, sum(x * y for x, y in zip(a, b)) / lengths) if lengths else 0.0


def marginal_order(values: list[float], similarity: list[list[float]], weight: float) -> list[int]:
    """Maximal marginal relevance, as its definition has it."""
    picked: list[int] = []
    while len(picked) < len(values):
        left = [n for n in range(len(values)) if n not in picked]

        def marginal(n: int) -> float:
            nearest = max((similarity[n][other] for other in picked), default=0.0)
            return (1 - weight) * values[n] - weight * nearest

        picked.append(max(left, key=lambda n: (marginal(n), -n)))
    return picked


def made(rng: np.random.Generator, n: int, **fields: list) -> Ranking:
    scores = -np.sort(-rng.random(n).round(2))
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 6))) for _ in range(n)]
    return Ranking(
        Ranked(
            index=n - 1 - row,
            score=float(score),
            raw=10 * float(score) - 3,
            text=texts[row],
            metadata={name: values[row] for name, values in fields.items()},
        )
        for row, score in enumerate(scores)
    )


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("by", ["words", "vector", "kind"])
def test_order_is_that_of_the_definition(weight, by):
    rng = np.random.default_rng(int(10 * weight))
    for _ in range(20):
        n = int(rng.integers(1, 12))
        vectors = rng.normal(size=(n, 3)).round(1).tolist()
        kinds = [[None, "news", "law", 7][k] for k in rng.integers(0, 4, n)]
        ranking = made(rng, n, vector=vectors, kind=kinds)
        texts = [one.text for one in ranking]
        alike = {
            "words": lambda a, b, texts=texts: word_cosine(texts, a, b),
            "vector": lambda a, b, vectors=vectors: cosine(vectors[a], vectors[b]),
            "kind": lambda a, b, kinds=kinds: float(kinds[a] == kinds[b] and kinds[a] is not None),
        }[by]
        similarity = [[round(alike(a, b), 12) for b in range(n)] for a in range(n)]
        expected = marginal_order([one.score for one in ranking], similarity, weight)
        found = take_steps(ranking, [Diversity(weight, by)])
        picked = [ranking[row].index for row in expected]
        values = [one.value for one in found]
        assert values == sorted(values, reverse=True)
        ties = len(np.unique(np.round(values, 9))) < n
        assert [one.index for one in found] == picked or ties


def test_only_the_best_are_picked_and_are_the_same():
    ranking = made(np.random.default_rng(1), 30)
    whole = take_steps(ranking, [Diversity(0.4)])
    assert take_steps(ranking, [Diversity(0.4)], 7) == whole[:7]
    assert take_steps(ranking, [Diversity(0.4)], 0) == []


def test_each_result_says_what_it_is_like():
    ranking = Ranking(
        [
            Ranked(0, 0.9, id="a", text="ida roth built it"),
            Ranked(1, 0.8, id="b", text="ida roth built it"),
            Ranked(2, 0.5, text="rain"),
        ]
    )
    found = take_steps(ranking, [Diversity(0.5)])
    assert [one.id for one in found] == ["a", None, "b"]
    assert [one.steps[0].reason for one in found] == [
        "like none before",
        "like none before",
        "like a by 1.00",
    ]
    assert [one.score for one in found] == [0.9, 0.5, 0.8]
    assert found[2].value == pytest.approx(0.5 * 0.8 - 0.5)


def test_vectors_count_where_all_documents_have_one():
    documents = [
        Ranked(0, 0.9, text="a", metadata={"vector": [1.0, 0.0]}),
        Ranked(1, 0.8, text="b", metadata={"vector": [2.0, 0.0]}),
        Ranked(2, 0.7, text="a", metadata={"vector": [0.0, 1.0]}),
    ]
    assert [one.index for one in take_steps(Ranking(documents), [Diversity(0.5)])] == [0, 2, 1]
    documents[1] = Ranked(1, 0.8, text="b")
    assert [one.index for one in take_steps(Ranking(documents), [Diversity(0.5)])] == [0, 1, 2]


@pytest.mark.parametrize("value", [{"a": 1}, [1.0, 2.0, 3.0], ["x", "y"], [float("nan"), 1.0], []])
def test_what_is_no_vector_is_told_with_its_document(value):
    ranking = Ranking(
        [Ranked(4, 0.9, metadata={"v": [1.0, 0.0]}), Ranked(9, 0.8, metadata={"v": value})]
    )
    with pytest.raises(DataError, match="document 9, v"):
        take_steps(ranking, [Diversity(0.5, "v")])


@pytest.mark.parametrize("weight", [0.0, -0.1, 1.1, float("nan")])
def test_weights_are_checked(weight):
    with pytest.raises(DataError, match="weight"):
        Diversity(weight)


def test_rows_of_words_are_of_unit_length():
    rows = word_vectors(["a b b", "", "b c"])
    assert np.asarray(rows.multiply(rows).sum(axis=1)).ravel().round(12).tolist() == [1, 0, 1]
    assert word_vectors([]).shape == (0, 0)


def test_a_long_list_can_be_interrupted():
    calls = []
    with interruptible(lambda: calls.append(1)):
        take_steps(made(np.random.default_rng(0), 20), [Diversity(0.5)])
    assert len(calls) >= 20
