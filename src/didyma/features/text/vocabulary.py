"""How rare terms are: learned from a collection, kept as arrays of hashes and counts."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.kernels.postings import count_texts

if TYPE_CHECKING:
    from didyma.features.text.lexicon import Lexicon

__all__ = ["Counts", "Vocabulary", "hash_of"]


def hash_of(term: str) -> int:
    """64 bits that stand for a term, the same on every machine."""
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass(frozen=True, eq=False)
class Counts:
    """In how many of n texts each term occurs.

    A term in m of n texts weighs idf = log(1 + (n − m + ½) / (m + ½)): the rarer, the more, and one
    that was never seen most.

    Attributes
    ----------
    hashes : array of shape (n_terms,), uint64, ascending
    counts : array of shape (n_terms,), int32
    n_texts : int
    """

    hashes: NDArray[np.uint64]
    counts: NDArray[np.int32]
    n_texts: int

    @classmethod
    def of(
        cls, hashes: NDArray[np.uint64], tokens: NDArray[np.int32], begins: NDArray[np.int64]
    ) -> Self:
        """Count terms: text i has the terms that ``tokens[begins[i]:begins[i + 1]]`` number.

        >>> known = np.array([7, 3], np.uint64)
        >>> seen = Counts.of(known, np.array([0, 1, 1, 0]), np.array([0, 3, 4]))
        >>> seen.hashes.tolist(), seen.counts.tolist()
        ([3, 7], [1, 2])
        """
        counts = np.zeros(len(hashes), np.int32)
        count_texts(tokens, np.arange(len(hashes)), begins, counts)
        order = np.argsort(hashes)
        return cls(hashes[order], counts[order], len(begins) - 1)

    def places(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Place of each term, −1 for one that was never seen."""
        if not len(self.hashes):
            return np.full(len(hashes), -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, at, -1)

    def idf(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Weight of each term; shape (n_terms,)."""
        places = self.places(hashes)
        m = np.zeros(len(hashes))
        m[places >= 0] = self.counts[places[places >= 0]]
        return np.log(1 + (self.n_texts - m + 0.5) / (m + 0.5))


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """What a collection tells about its words.

    Attributes
    ----------
    terms, stems : Counts
    stem_of : array of shape (n_terms,), uint64
        Hash of each term's stem. So a saved model stems the words that it knows as it was trained,
        whatever version of the stemmer it meets, and at once.
    mean_length : float
        Words of a text.
    """

    terms: Counts
    stems: Counts
    stem_of: NDArray[np.uint64]
    mean_length: float

    @classmethod
    def of(
        cls, lexicon: Lexicon, words: NDArray[np.int32], begins: NDArray[np.int64]
    ) -> Vocabulary:
        """Count the words of texts; text i has the words ``words[begins[i]:begins[i + 1]]``."""
        if not len(words):
            raise DataError("expected at least one passage that has words")
        terms = lexicon.term[words]
        return cls(
            Counts.of(lexicon.term_hashes, terms, begins),
            Counts.of(lexicon.stem_hashes, lexicon.stem[terms], begins),
            lexicon.stem_hashes[lexicon.stem][np.argsort(lexicon.term_hashes)],
            len(words) / (len(begins) - 1),
        )
