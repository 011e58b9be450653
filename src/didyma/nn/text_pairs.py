"""Questions and their passages as numbers: of words, and of whether the other text has them too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma.data import Groups
from didyma.features.lexical import terms
from didyma.features.similarity import STOP_WORDS, stem
from didyma.formats.qa import Question
from didyma.nn.numbering import Numbering

__all__ = ["N_OVERLAPS", "PairBatch", "TextPairs", "Texts", "shape", "tokenize"]

Integers: TypeAlias = NDArray[np.int64]

# Does the other text have the word? 0 pads.
ALONE, STOP_WORD, SHARED = 1, 2, 3
N_OVERLAPS = 4

_WORD = re.compile(r"[^\W_]+(?:[.,'][^\W_]+)*|[^\w\s]")
_DIGIT = re.compile(r"\d")


def tokenize(text: str) -> list[str]:
    """Words in lower case, numbers, and marks.

    >>> tokenize("Ada's mill cost 1,200.50 crowns (in 1843).")
    ["ada's", 'mill', 'cost', '1,200.50', 'crowns', '(', 'in', '1843', ')', '.']
    """
    return _WORD.findall(text.lower())


def shape(word: str) -> str:
    """A word as the vocabulary has it: all digits are 0, so that one year is like another."""
    return _DIGIT.sub("0", word)


class Texts(NamedTuple):
    """A batch of texts, padded with 0: numbers of words and of overlaps, both (B, longest)."""

    words: Tensor
    overlaps: Tensor

    def to(self, device: torch.device) -> Texts:
        """The same on another device."""
        return Texts(self.words.to(device), self.overlaps.to(device))


class PairBatch(NamedTuple):
    """Pairs of some questions, one question after the other."""

    questions: Texts
    passages: Texts
    labels: NDArray[Any]
    sizes: Integers


class TextPairs:
    """Each question with each of its passages; of a text the first ``max_length`` words.

    >>> asked = Question("Who sings?", ["Ann sang.", "A bird sings!"], np.array([0, 1]))
    >>> pairs = TextPairs([asked], Numbering(["sings", "who"]), max_length=50)
    >>> batch = pairs.batch(np.array([0]))
    >>> batch.passages.words
    tensor([[1, 1, 1, 0],
            [1, 1, 2, 1]])
    >>> batch.passages.overlaps
    tensor([[1, 1, 1, 0],
            [1, 1, 3, 1]])
    """

    def __init__(
        self, questions: Sequence[Question], vocabulary: Numbering, max_length: int
    ) -> None:
        @cache
        def read(text: str) -> _Text:
            words = tokenize(text)[:max_length]
            return _Text(vocabulary.ids(map(shape, words)), list(map(_key, words)))

        rows: tuple[list[list[int]], ...] = ([], [], [], [])
        for question in questions:
            asked = read(question.text)
            for sentence in question.sentences:
                told = read(sentence)
                found = (asked.ids, asked.overlaps(told), told.ids, told.overlaps(asked))
                for column, numbers in zip(rows, found):
                    column.append(numbers)
        self._columns = [_Ragged(column) for column in rows]
        self.sizes = np.array([len(question.labels) for question in questions], np.int64)
        self.groups = Groups.from_sizes(self.sizes, int(self.sizes.sum()))
        self.labels = np.concatenate([question.labels for question in questions])

    def __len__(self) -> int:
        return len(self.sizes)

    def batch(self, questions: Integers) -> PairBatch:
        """The pairs of some questions."""
        ends = np.cumsum(self.sizes)
        sizes = self.sizes[questions]
        first = np.repeat((ends - self.sizes)[questions] - (np.cumsum(sizes) - sizes), sizes)
        rows = first + np.arange(len(first))
        asked, shared, told, sharing = (column.padded(rows) for column in self._columns)
        return PairBatch(Texts(asked, shared), Texts(told, sharing), self.labels[rows], sizes)


class _Text(NamedTuple):
    ids: list[int]
    keys: list[tuple[str, int]]

    def overlaps(self, other: _Text) -> list[int]:
        """Of each word with the other text."""
        others = {key for key, _ in other.keys}
        return [kind if key in others else ALONE for key, kind in self.keys]


class _Ragged:
    """Rows of different lengths in one array."""

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.lengths = np.array([len(row) for row in rows], np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.flat = np.array([*(number for row in rows for number in row), 0], np.int64)

    def padded(self, rows: Integers) -> Tensor:
        """Some rows, padded with the 0 at the end."""
        lengths = self.lengths[rows][:, None]
        places = np.arange(max(1, lengths.max(initial=0)))
        index = np.where(places < lengths, self.starts[rows][:, None] + places, -1)
        return torch.from_numpy(self.flat[index])


@lru_cache(maxsize=1 << 16)
def _key(word: str) -> tuple[str, int]:
    """What words of both texts are compared by, and the overlap if they agree."""
    found = terms(word)
    if not found or found[0] in STOP_WORDS:
        return word, STOP_WORD
    return stem("".join(found)), SHARED
