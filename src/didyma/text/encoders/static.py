"""The mean of the vectors of a text's pieces, from the table inside the package `wordllama`."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma.errors import MissingExtraError
from didyma.text.encoders.encoder import Encoder, Side

WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
TOKENISER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # stands before a word
WORD = re.compile(r" *[^ ]+| +$")
REMEMBERED = 1 << 18  # words whose pieces are remembered, since texts share most of theirs


class SubwordTable:
    """Vectors of pieces of words; that of a word is the mean of those of its pieces.

    A word is cut by byte pair encoding: of all pairs of neighbouring pieces the one that comes
    first in ``merges`` is joined, until none is in it. A character that is no piece is its bytes.
    """

    def __init__(
        self, numbers: dict[str, int], merges: list[str], vectors: NDArray[np.float16]
    ) -> None:
        self._numbers, self._vectors = numbers, vectors
        self._rank = {merge: rank for rank, merge in enumerate(merges)}
        self._remembered: dict[str, NDArray[np.int32]] = {}

    @classmethod
    def installed(cls) -> Self:
        """The table of the installed package."""
        spec = find_spec("wordllama")
        folder = None if spec is None or spec.origin is None else Path(spec.origin).parent
        if folder is None or not (folder / WEIGHTS).is_file() or not (folder / TOKENISER).is_file():
            raise MissingExtraError("the table of word vectors", "vectors")
        from safetensors.numpy import load_file

        model = json.loads((folder / TOKENISER).read_text(encoding="utf-8"))["model"]
        merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
        return cls(model["vocab"], merges, load_file(folder / WEIGHTS)["embedding.weight"])

    def __call__(self, terms: list[str]) -> NDArray[np.float32]:
        """Vector of each term; shape (n_terms, dimension)."""
        vectors = np.zeros((len(terms), self._vectors.shape[1]), np.float32)
        for vector, term in zip(vectors, terms):
            vector[:] = self.mean(self.numbers(f" {term}"))
        return vectors

    def means(self, texts: list[str]) -> NDArray[np.float32]:
        """Mean of the vectors of each text's pieces; shape (n_texts, dimension)."""
        remembered = self._remembered
        if len(remembered) > REMEMBERED:
            remembered = self._remembered = {}
        means = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for mean, text in zip(means, texts):
            numbers = []
            # No piece goes on from a word into the space after it, so words are cut one by one.
            for word in WORD.findall(f" {text}".replace(SPACE, " ")):
                if (cut := remembered.get(word)) is None:
                    cut = remembered[word] = self.numbers(word)
                numbers.append(cut)
            mean[:] = self.mean(np.concatenate(numbers))
        return means

    def mean(self, numbers: NDArray[np.int32]) -> NDArray[np.float32]:
        """Mean of the vectors of some pieces."""
        return self._vectors[numbers].astype(np.float32).mean(axis=0)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text, in which the spaces count."""
        letters = text.replace(" ", SPACE)
        parts = [part for character in letters for part in self._least(character)]
        while len(parts) > 1:
            ranks = [self._rank.get(f"{a} {b}", len(self._rank)) for a, b in pairwise(parts)]
            if (least := min(ranks)) == len(self._rank):
                break
            at = ranks.index(least)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts

    def numbers(self, text: str) -> NDArray[np.int32]:
        """The numbers of these pieces."""
        return np.array([self._numbers[piece] for piece in self.pieces(text)], np.int32)

    def _least(self, character: str) -> list[str]:
        if character in self._numbers:
            return [character]
        return [f"<0x{byte:02X}>" for byte in character.encode("utf-8", "surrogatepass")]


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


@cache
def _table() -> SubwordTable:
    """The table of the installed package, once in each process."""
    return SubwordTable.installed()
