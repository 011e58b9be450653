"""The vocabulary of a collection: its terms and stems with document frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.text.features.lexicon import Lexicon
    from didyma.text.features.term_languages import TermLanguages


@dataclass(frozen=True, eq=False)
class Counts:
    """Document frequencies: in how many of n texts each term occurs.

    A term in m of n texts weighs idf = log(1 + (n − m + ½) / (m + ½)): the rarer, the more, and one
    that was never seen most.

    Attributes
    ----------
    texts : array of uint8
        The terms in UTF-8, each ended by a newline; of a model from before there were texts in
        files, their digests (`didyma.text.features.digests`).
    counts : array of shape (n_terms,), int32
    n_texts : int
    """

    texts: NDArray[np.uint8]
    counts: NDArray[np.int32]
    n_texts: int

    def idf(self) -> NDArray[np.float64]:
        """Weight of each term, and last that of one that was never seen; shape (n_terms + 1,)."""
        m = np.append(self.counts, 0)
        return np.log(1 + (self.n_texts - m + 0.5) / (m + 0.5))


class Tables(NamedTuple):
    """A table of the core that finds terms and stems, and the weights of both by place.

    Place −1, of what was never seen, is the last weight.
    """

    places: core.Vocabulary
    term_idf: NDArray[np.float64]
    stem_idf: NDArray[np.float64]


class Vocabulary:
    """Terms, stems and their frequencies. Nothing is ever added to it, so threads share it.

    Terms and stems stand in the order in which the collection has them.

    Attributes
    ----------
    terms, stems : Counts
    stem_of : array of shape (n_terms,), int32
        Place of each term's stem. So a saved model stems the words that it knows as it was trained,
        whatever version of the stemmer it meets, and at once.
    mean_length : float
        Words of a text.
    digest_size : int
        Bytes of the digests that stand for terms and stems; 0 if these are texts.
    languages : TermLanguages or None
        Which language each term is of, in a collection that has several.
    """

    def __init__(
        self,
        terms: Counts,
        stems: Counts,
        stem_of: NDArray[np.int32],
        mean_length: float,
        digest_size: int = 0,
        languages: TermLanguages | None = None,
    ) -> None:
        self.terms, self.stems, self.stem_of = terms, stems, stem_of
        self.mean_length, self.digest_size = mean_length, digest_size
        self.languages = languages
        self._tables: Tables | None = None

    @classmethod
    def of(
        cls, lexicon: Lexicon, terms: NDArray[np.int32], begins: NDArray[np.int64]
    ) -> Vocabulary:
        """Count the terms of texts; text i has the terms ``terms[begins[i]:begins[i + 1]]``."""
        if not len(terms):
            raise DataError("expected at least one passage that has words")
        n_texts = len(begins) - 1
        lexicon.tell_languages(terms, begins)
        of_terms, of_stems = (
            Counts(texts, _count(tokens, begins, size), n_texts)
            for texts, tokens, size in (
                (lexicon.term_texts, terms, lexicon.n_terms),
                (lexicon.stem_texts, lexicon.stem[terms], lexicon.n_stems),
            )
        )
        mean_length = len(terms) / n_texts
        return cls(of_terms, of_stems, lexicon.stem, mean_length, languages=lexicon.languages)

    @property
    def tables(self) -> Tables:
        """What finds and weighs terms and stems; made when it is first asked for."""
        tables = self._tables
        if tables is None:  # two threads may both make it, which does no harm
            texts = self.terms.texts, self.stems.texts
            table = core.Vocabulary(*texts, self.stem_of, self.digest_size)
            tables = self._tables = Tables(table, self.terms.idf(), self.stems.idf())
        return tables

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_tables": None}


def _count(tokens: NDArray[np.int32], begins: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """In how many texts each of ``size`` terms occurs."""
    counts = np.zeros(size, np.int64)
    core.count_texts(tokens, np.arange(size), begins, counts)
    return counts.astype(np.int32)
