"""Sentences as numbers: words, tags, letters and relations of a parser, and batches of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma.applications.networks.words import PADDING, UNKNOWN, Numbering, pad
from didyma.applications.parsing.arc_factored import Batch
from didyma.data.conll import Field, Sentence

DIGIT = re.compile(r"\d")
MOST_ARCS = 40_000  # of a batch, so that a hidden layer over all of them fits into a cache

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberedSentence:
    """One sentence."""

    words: Ints
    tags: list[int]
    characters: list[list[int]]
    heads: Ints  # −1 where there is no tree
    labels: Ints

    def __len__(self) -> int:
        return len(self.words)

    def forget(
        self, probability: NDArray[np.float64], random: np.random.Generator
    ) -> NumberedSentence:
        """The same sentence with some words unknown; each word has its own probability."""
        dropped = random.random(len(self)) < probability[self.words]
        return replace(self, words=np.where(dropped, UNKNOWN, self.words))


class ParserLexicon:
    """What a parser knows: texts and their numbers. Words are compared in lower case, digits as 0.

    >>> sentence = Sentence.from_words(["In", "1999"])
    >>> lexicon = ParserLexicon.learn([sentence], tags=None, characters=False)
    >>> lexicon.words.words, lexicon.encode(Sentence.from_words(["in", "spring"])).words
    (['0000', 'in'], array([3, 1]))
    """

    def __init__(
        self,
        words: Sequence[str],
        tags: Sequence[str],
        characters: Sequence[str],
        labels: Sequence[str],
        tag_field: Field | None,
    ) -> None:
        self.words = Numbering(words)
        self.tags = Numbering(tags)
        self.characters = Numbering(characters)
        self.labels = list(labels)
        self._tag_field = tag_field
        self._label_numbers = {label: number for number, label in enumerate(self.labels)}

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], tags: Field | None, characters: bool) -> Self:
        """Everything that occurs in the sentences."""
        return cls(
            Numbering.build(map(_normal_words, sentences)).words,
            [] if tags is None else Numbering.build(s.column(tags) for s in sentences).words,
            Numbering.build(w for s in sentences for w in s.words).words if characters else [],
            sorted({label for s in sentences for label in s.column(Field.DEPREL)}),
            tags,
        )

    def encode(self, sentence: Sentence, heads: Ints | None = None) -> NumberedSentence:
        """The numbers of a sentence, with a tree if heads are given."""
        n, relations = len(sentence), sentence.column(Field.DEPREL)
        return NumberedSentence(
            np.array(self.words.ids(_normal_words(sentence)), np.int64),
            [] if self._tag_field is None else self.tags.ids(sentence.column(self._tag_field)),
            [self.characters.ids(word) for word in sentence.words] if self.characters.words else [],
            np.full(n, -1) if heads is None else heads,
            np.array([self._label_numbers.get(label, -1) for label in relations], np.int64),
        )


def _normal_words(sentence: Sentence) -> list[str]:
    return [DIGIT.sub("0", word.lower()) for word in sentence.words]


def buckets(order: Ints, lengths: Ints, size: int) -> Iterator[Ints]:
    """Rows in batches of similar length; those of the same length stay in the order given."""
    order = order[np.argsort(lengths[order], kind="stable")]
    begin = 0
    for end in range(1, len(order) + 1):
        full = end - begin == size
        if end < len(order):
            full |= (end + 1 - begin) * (lengths[order[end]] + 1) ** 2 > MOST_ARCS
        if full or end == len(order):
            yield order[begin:end]
            begin = end


def collate(examples: Sequence[NumberedSentence]) -> Batch:
    """Examples as one batch."""
    n = max(map(len, examples))
    return Batch(
        torch.tensor([len(example) for example in examples]),
        _padded([example.words for example in examples], n, PADDING),
        _padded([example.tags for example in examples], n, PADDING),
        _letters([example.characters for example in examples], n),
        _padded([np.append(-1, example.heads) for example in examples], n + 1, -1),
        _padded([example.labels for example in examples], n, -1),
    )


def _padded(rows: Sequence[Ints | list[int]], n: int, padding: int) -> Tensor:
    filled = np.full((len(rows), n), padding)
    for place, row in zip(filled, rows):
        place[: len(row)] = row
    return torch.from_numpy(filled)


def _letters(sentences: Sequence[list[list[int]]], n: int) -> Tensor:
    if not any(sentences):  # nobody reads them
        return torch.full((len(sentences), n, 1), PADDING)
    words = [word for one in sentences for word in one + [[]] * (n - len(one))]
    return pad(words).unflatten(0, (len(sentences), n))
