"""Questions and their passages as numbers: of words, and of whether the other text has them too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma.applications.networks.words import Numbering
from didyma.data import Lists
from didyma.text import fold, stems_of, stop_words

Integers: TypeAlias = NDArray[np.int64]

# Does the other text have the word? 0 pads.
ALONE, STOP_WORD, SHARED = 1, 2, 3
N_OVERLAPS = 4

_WORD = re.compile(r"[^\W_]+(?:[.,'][^\W_]+)*|[^\w\s]")
_DIGIT = re.compile(r"\d")
_PART = re.compile(r"[^\W_]+")
LANGUAGE = "english"  # of stop words and stems


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
    """Pairs of some queries, one query after the other; labels if they are known."""

    queries: Texts
    passages: Texts
    labels: NDArray[np.float64] | None
    sizes: Integers


class TextPairs:
    """`Lists` of texts as a network reads them: each query with each of its passages, in numbers.

    Of a text the first ``max_length`` words are read. Rows of a list stand together here; ``rows``
    are their places in the lists that were given.

    >>> lists = Lists.of_texts(["Who sings?"], [["Ann sang.", "A bird sings!"]])
    >>> pairs = TextPairs(lists, Numbering(["sings", "who"]), max_length=50)
    >>> batch = pairs.batch(np.array([0]))
    >>> batch.passages.words
    tensor([[1, 1, 1, 0],
            [1, 1, 2, 1]])
    >>> batch.passages.overlaps
    tensor([[1, 1, 1, 0],
            [1, 1, 3, 1]])
    """

    def __init__(self, lists: Lists, vocabulary: Numbering, max_length: int) -> None:
        @cache
        def read(text: str) -> _Text:
            words = tokenize(text)[:max_length]
            return _Text(vocabulary.ids(map(shape, words)), list(map(_key, words)))

        self.lists, self.rows = lists.gathered(), lists.groups.rows
        queries = list(map(read, self.lists.query_texts))
        rows: tuple[list[list[int]], ...] = ([], [], [], [])
        for number, passage in zip(self.lists.groups.codes.tolist(), self.lists.texts):
            asked, told = queries[number], read(passage)
            columns = (asked.ids, asked.overlaps(told), told.ids, told.overlaps(asked))
            for column, numbers in zip(rows, columns):
                column.append(numbers)
        self._columns = [_Ragged(column) for column in rows]

    def __len__(self) -> int:
        return len(self.lists.groups)

    def batch(self, lists: Integers) -> PairBatch:
        """The pairs of some lists, by number."""
        groups, labels = self.lists.groups, self.lists.labels
        sizes = groups.sizes[lists]
        first = np.repeat(groups.starts[lists] - (np.cumsum(sizes) - sizes), sizes)
        rows = first + np.arange(len(first))
        asked, shared, told, sharing = (column.padded(rows) for column in self._columns)
        grades = None if labels is None else labels[rows]
        return PairBatch(Texts(asked, shared), Texts(told, sharing), grades, sizes)


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
    parts = _PART.findall(fold(word))
    if not parts or parts[0] in stop_words(LANGUAGE):
        return word, STOP_WORD
    return stems_of(["".join(parts)], LANGUAGE)[0], SHARED
