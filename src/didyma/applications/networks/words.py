"""Words as numbers (0 pads, 1 is any word that was not seen in training) and as given vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from didyma import DataError

# Words and the vector of each, as `didyma.data.word_vectors.read` gives them.
Vectors: TypeAlias = "tuple[Sequence[str], ArrayLike]"

PADDING, UNKNOWN = 0, 1
RESERVED = 2


class Numbering:
    """The words that have a number of their own, from 2 up.

    >>> vocabulary = Numbering.build([["to", "be", "or"], ["not", "to", "be"]], min_count=2)
    >>> vocabulary.words, len(vocabulary), vocabulary.ids(["to", "see"])
    (['be', 'to'], 4, [3, 1])
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self._numbers = {word: number for number, word in enumerate(self.words, start=RESERVED)}

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], min_count: int = 1) -> Numbering:
        """The words that occur often enough, in alphabetical order."""
        counts = Counter(word for sentence in sentences for word in sentence)
        return cls(sorted(word for word, count in counts.items() if count >= min_count))

    def __len__(self) -> int:
        return len(self.words) + RESERVED

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """The number of each token."""
        return [self._numbers.get(token, UNKNOWN) for token in tokens]


def pad(
    rows: Sequence[Sequence[int] | NDArray[np.int64]],
    length: int | None = None,
    padding: int = PADDING,
) -> Tensor:
    """Rows of different lengths as one matrix (B, length), that of the longest by default.

    >>> pad([[2, 3], [4]])
    tensor([[2, 3],
            [4, 0]])
    """
    n_columns = max([1, *map(len, rows)]) if length is None else length
    padded = np.full((len(rows), n_columns), padding, np.int64)
    for row, numbers in zip(padded, rows):
        row[: len(numbers)] = numbers
    return torch.from_numpy(padded)


def as_vectors(vectors: Vectors | None, dimension: int) -> tuple[list[str], NDArray[np.float32]]:
    """Words and a matrix of their vectors; of no words, in the dimension wanted, without any."""
    if vectors is None:
        return [], np.zeros((0, dimension), np.float32)
    words, matrix = list(vectors[0]), np.asarray(vectors[1], dtype=np.float32)
    if not words:
        raise DataError("expected vectors of some words, found none", field="vectors")
    if matrix.ndim != 2 or len(matrix) != len(words) or not matrix.size:
        raise DataError(
            f"expected a vector for each of {len(words)} words, found shape {matrix.shape}",
            field="vectors",
        )
    return words, matrix


def start_from(
    embedding: nn.Embedding, numbers: Sequence[int], matrix: NDArray[np.float32], *, tune: bool
) -> None:
    """Give the rows ``numbers`` these vectors, and others the same spread; train them or not."""
    with torch.no_grad():
        embedding.weight *= float(matrix.std())
        embedding.weight[list(numbers)] = torch.from_numpy(matrix)
    embedding.weight.requires_grad_(tune)
