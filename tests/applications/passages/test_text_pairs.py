"""Questions and passages as numbers."""

from __future__ import annotations

import numpy as np
from tests.applications.passages.test_ranker import NOUNS, ask, lists_of

from didyma.applications.networks.words import Numbering
from didyma.applications.passages.text_pairs import TextPairs, shape, tokenize
from didyma.data.lists import Lists


def test_words_numbers_and_marks():
    assert tokenize("Who wrote “Emma_2”, in 1,815.5?") == [
        *("who", "wrote", "“", "emma", "2", "”", ",", "in", "1,815.5", "?")
    ]
    assert tokenize("  ") == []
    assert shape("mp3-1815") == "mp0-0000"


def test_overlaps_tell_stop_words_from_others_and_know_stems():
    asked = Lists.of_texts(["who formed the rivers ?"], [["The river forms in 1815 ?", ""]])
    pairs = TextPairs(asked, Numbering(["0000", "river", "the"]), max_length=50)
    batch = pairs.batch(np.array([0]))
    assert batch.labels is None
    assert batch.queries.words.tolist() == [[1, 1, 4, 1, 1]] * 2
    assert batch.queries.overlaps.tolist() == [[1, 3, 2, 3, 2], [1, 1, 1, 1, 1]]
    assert batch.passages.words.tolist() == [[4, 3, 1, 1, 2, 1], [0] * 6]
    assert batch.passages.overlaps.tolist() == [[2, 3, 3, 1, 1, 2], [0] * 6]
    short = TextPairs(asked, Numbering(["the"]), max_length=2).batch(np.array([0]))
    assert short.passages.words.tolist() == [[2, 1], [0, 0]]
    assert short.passages.overlaps.tolist() == [[1, 1], [0, 0]]  # the question is cut, too


def test_batches_hold_whole_questions_in_the_order_that_is_asked_for():
    rng = np.random.default_rng(0)
    asked = lists_of(*(ask(rng) for _ in range(3)))
    vocabulary = Numbering(NOUNS)
    pairs = TextPairs(asked, vocabulary, 50)
    assert len(pairs) == 3
    batch = pairs.batch(np.array([2, 0]))
    assert batch.sizes.tolist() == [4, 4]
    expected = asked.select_lists([2, 0])
    assert batch.labels.tolist() == expected.y.tolist()
    for row, sentence in enumerate(expected.texts):
        assert batch.passages.words[row, 4] == vocabulary.ids(tokenize(sentence))[4]
