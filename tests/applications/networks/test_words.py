from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from didyma.applications.networks.words import PADDING, UNKNOWN, Numbering, pad

SENTENCES = st.lists(st.lists(st.sampled_from("abcde"), max_size=5), min_size=1, max_size=5)


@given(SENTENCES, st.integers(1, 3))
def test_frequent_words_have_numbers_of_their_own(sentences, min_count):
    vocabulary = Numbering.build(sentences, min_count)
    words = [word for sentence in sentences for word in sentence]
    frequent = {word for word in words if words.count(word) >= min_count}
    assert set(vocabulary.words) == frequent
    numbers = {word: vocabulary.ids([word])[0] for word in "abcde"}
    assert len({numbers[word] for word in frequent} | {PADDING, UNKNOWN}) == len(vocabulary)
    assert all(numbers[word] == UNKNOWN for word in set("abcde") - frequent)
    assert all((word in vocabulary) == (word in frequent) for word in "abcde")


def test_a_vocabulary_is_its_words():
    vocabulary = Numbering.build([["b", "a"]])
    assert Numbering(vocabulary.words).ids("ab") == vocabulary.ids("ab")


@given(st.lists(st.lists(st.integers(1, 9), max_size=5), max_size=5))
def test_padding(rows):
    padded = pad(rows)
    assert padded.shape == (len(rows), max([1, *map(len, rows)]))
    for row, numbers in zip(padded, rows):
        assert row[: len(numbers)].tolist() == numbers
        assert not row[len(numbers) :].any()
    assert padded.dtype == torch.long
