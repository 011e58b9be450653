"""How rare terms are: learned from a collection, kept as arrays of hashes and counts."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray

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
        cls,
        hashes: NDArray[np.uint64],
        tokens: NDArray[np.int32],
        texts: NDArray[np.int32],
        n_texts: int,
    ) -> Self:
        """Count terms: ``tokens[t]`` is the number of a term, in text ``texts[t]`` of ``n_texts``.

        >>> known = np.array([7, 3], np.uint64)
        >>> seen = Counts.of(known, np.array([0, 1, 1, 0]), np.array([0, 0, 0, 1]), 2)
        >>> seen.hashes.tolist(), seen.counts.tolist()
        ([3, 7], [1, 2])
        """
        once = np.unique(texts.astype(np.int64) * len(hashes) + tokens) % max(len(hashes), 1)
        counts = np.bincount(once, minlength=len(hashes))
        order = np.argsort(hashes)
        return cls(hashes[order], counts[order].astype(np.int32), n_texts)

    def places(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Place of each term, −1 for one that was never seen."""
        if not len(self.hashes):
            return np.full(len(hashes), -1)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, at, -1)

    def idf(self, hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Weight of each term; shape (n_terms,)."""
        places = self.places(hashes)
        m = np.where(places >= 0, np.append(self.counts, 0)[places], 0)
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
