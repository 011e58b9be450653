"""The mean of the vectors of a text's pieces, from the table inside the package `wordllama`."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.text.encoders.encoder import Encoder, Side
from didyma.text.encoders.subword_table import SPACE, SubwordTable

WORD = re.compile(r" *[^ ]+| +$")
REMEMBERED = 1 << 18  # words whose pieces are remembered


class WordLlama(Encoder):
    """The static encoder inside the package `wordllama`: 256 numbers, no network of layers.

    v(text) = mean over the pieces t of the text of v(t), scaled to unit length. The same numbers as
    ``WordLlama.embed(texts, norm=True)``, but that "<s>" and the like in a text are not special.
    """

    name = "wordllama"
    batch_size = 1024
    is_static = True
    is_restorable = True

    def __init__(self) -> None:
        _table()

    def _encode(self, texts: list[str], side: Side) -> Any:
        return _table().means(texts)

    def __reduce__(self) -> Any:
        return type(self), ()


class _Table:
    """Sums of the vectors of words, which are remembered, since texts share most of theirs."""

    def __init__(self, pieces: SubwordTable) -> None:
        self._pieces = pieces
        self._numbers: dict[str, NDArray[np.int32]] = {}

    def means(self, texts: list[str]) -> NDArray[np.float32]:
        """Mean of the vectors of each text's pieces; zeros for an empty one."""
        remembered = self._numbers
        if len(remembered) > REMEMBERED:
            remembered = self._numbers = {}
        means = np.zeros((len(texts), self._pieces.dimension), np.float32)
        for mean, text in zip(means, texts):
            numbers = []
            # No piece goes on from a word into the space after it, so words are cut one by one.
            for word in WORD.findall(f" {text}".replace(SPACE, " ")):
                if (cut := remembered.get(word)) is None:
                    cut = remembered[word] = self._pieces.numbers(word)
                numbers.append(cut)
            mean[:] = self._pieces.mean(np.concatenate(numbers))
        return means


@cache
def _table() -> _Table:
    return _Table(SubwordTable.installed())
