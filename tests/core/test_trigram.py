"""The best tags, and the n best, against the score of every sequence of tags."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma._core.applications import best_tags, n_best_tags
from didyma.applications.tagging.tagger import Runs, TrigramModel

N_TAGS = 4  # the last is the boundary's
N_ENTRIES = 6  # and so here


def make_model(random: np.random.Generator, *, coarse: bool) -> TrigramModel:
    """A model with log-probabilities at random; coarse ones are often equal."""

    def values(*shape: int) -> Any:
        drawn = -3.0 * random.random(shape)
        return np.round(drawn) if coarse else drawn

    n_rows = N_TAGS + 5
    rows = np.tile(np.arange(N_TAGS), (N_TAGS, 1))
    rows[random.random(rows.shape) < 0.5] = random.integers(N_TAGS, n_rows)
    tags = [np.flatnonzero(random.random(N_TAGS - 1) < 0.7) for _ in range(N_ENTRIES - 1)]
    tags = [own if len(own) else np.array([1]) for own in tags] + [np.array([N_TAGS - 1])]
    before = [np.flatnonzero(random.random(N_TAGS) < 0.5) for own in tags for _ in own]
    return TrigramModel(
        rows,
        values(n_rows, N_TAGS),
        Runs(*_runs(tags), values(sum(map(len, tags)))),
        Runs(*_runs(before), values(sum(map(len, before)))),
    )


def _runs(rows: list[Any]) -> tuple[Any, Any]:
    return np.cumsum([0, *map(len, rows)]), np.concatenate(rows)


def score(model: TrigramModel, entries: list[int], tags: tuple[int, ...]) -> float:
    """The sum, term by term, over the words and both closing boundaries."""
    boundary = N_TAGS - 1
    padded = [boundary, boundary, *tags, boundary, boundary]
    words = [*entries, N_ENTRIES - 1, N_ENTRIES - 1]
    total = 0.0
    for a, b, c, w in zip(padded, padded[1:], padded[2:], words):
        low, high = model.lexicon.starts[w : w + 2]
        place = low + model.lexicon.tags[low:high].tolist().index(c)
        seen = slice(*model.contexts.starts[place : place + 2])
        special = dict(zip(model.contexts.tags[seen].tolist(), model.contexts.values[seen]))
        total += model.steps[model.rows[a, b], c] + special.get(b, model.lexicon.values[place])
    return total


def enumerate_all(model: TrigramModel, entries: list[int]) -> dict[tuple[int, ...], float]:
    starts, tags = model.lexicon.starts, model.lexicon.tags
    possible = [tags[starts[w] : starts[w + 1]].tolist() for w in entries]
    return {way: score(model, entries, way) for way in product(*possible)}


def stream(sentences: list[list[int]]) -> tuple[Any, Any]:
    boundary = [N_ENTRIES - 1] * 2
    entries, starts = list(boundary), [2]
    for sentence in sentences:
        entries += [*sentence, *boundary]
        starts.append(len(entries))
    return np.array(entries), np.array(starts)


SENTENCES = st.lists(st.lists(st.integers(0, N_ENTRIES - 2), max_size=5), max_size=4)


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 2**32 - 1), SENTENCES, st.sampled_from([1, 2, 3, 10, 100, 400]), st.booleans()
)
def test_the_best_are_found_in_order(
    seed: int, sentences: list[list[int]], n: int, coarse: bool
) -> None:
    model = make_model(np.random.default_rng(seed), coarse=coarse)
    entries, starts = stream(sentences)
    one = np.zeros(len(entries), np.int64)
    best_tags(model, entries, starts, one)
    tags = np.zeros((n, len(entries)), np.int64)
    totals = np.empty((len(sentences), n))
    n_best_tags(model, entries, starts, tags, totals)
    for s, sentence in enumerate(sentences):
        own = slice(starts[s], starts[s + 1] - 2)
        scores = enumerate_all(model, sentence)
        expected = sorted(scores.values(), reverse=True)[:n]
        found = [tuple(row) for row in tags[: len(expected), own].tolist()]
        assert len(set(found)) == len(expected)
        np.testing.assert_allclose(totals[s, : len(expected)], expected, atol=1e-12)
        np.testing.assert_allclose([scores[way] for way in found], expected, atol=1e-12)
        assert np.all(np.diff(totals[s, : len(expected)]) <= 0)
        assert np.all(np.isneginf(totals[s, len(expected) :]))
        assert tuple(one[own].tolist()) == found[0]


@pytest.mark.parametrize("n_words", [0, 1, 2])
def test_short_sentences_and_lists_longer_than_there_are_ways(n_words: int) -> None:
    model = make_model(np.random.default_rng(n_words), coarse=False)
    scores = enumerate_all(model, [0] * n_words)
    entries, starts = stream([[0] * n_words])
    tags, totals = np.zeros((50, len(entries)), np.int64), np.empty((1, 50))
    n_best_tags(model, entries, starts, tags, totals)
    assert np.isfinite(totals).sum() == len(scores)
    ways = {tuple(row) for row in tags[: len(scores), 2 : 2 + n_words].tolist()}
    assert ways == set(scores)


def test_a_sentence_is_tagged_alike_in_any_company() -> None:
    random = np.random.default_rng(3)
    model = make_model(random, coarse=False)
    sentences = [random.integers(0, N_ENTRIES - 1, size=k).tolist() for k in (4, 9, 1, 30)]
    entries, starts = stream(sentences)
    together = np.zeros((5, len(entries)), np.int64)
    totals = np.empty((4, 5))
    n_best_tags(model, entries, starts, together, totals)
    for s, sentence in enumerate(sentences):
        entries, own_starts = stream([sentence])
        alone, own_totals = np.zeros((5, len(entries)), np.int64), np.empty((1, 5))
        n_best_tags(model, entries, own_starts, alone, own_totals)
        np.testing.assert_array_equal(totals[s], own_totals[0])
        found = together[:, starts[s] : starts[s + 1] - 2]
        np.testing.assert_array_equal(found, alone[:, 2:-2])
