"""The vocabulary of a collection: its terms and stems with document frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.errors import DataError
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable
from didyma.text.features.digests import DIGEST_SIZE
from didyma.text.features.languages import check_language, several
from didyma.text.features.term_languages import TermLanguages

if TYPE_CHECKING:
    from didyma.text.features.lexicon import Lexicon

NEWLINE = ord("\n")


class Tables(NamedTuple):
    """A table of the core that finds terms and stems, and the weights of both by place.

    Place −1, of what was never seen, is the last weight.
    """

    places: core.Vocabulary
    term_idf: NDArray[np.float64]
    stem_idf: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Vocabulary(Serialisable):
    """Terms, stems and their document frequencies. Nothing is ever added, so threads share it.

    A term in m of n texts weighs idf = log(1 + (n − m + ½) / (m + ½)): the rarer, the more, and one
    that was never seen most. Terms and stems stand in the order in which the collection has them.

    Attributes
    ----------
    language : str or None
        Of stop words and stems, or several with commas between them.
    n_texts : int
    mean_length : float
        Words of a text.
    terms, stems : arrays of uint8
        In UTF-8, each ended by a newline; of a model from before there were texts in files, their
        digests (`didyma.text.features.digests`).
    term_counts, stem_counts : arrays of shape (n_terms,) and (n_stems,), int32
        In how many texts each occurs.
    stem_of : array of shape (n_terms,), int32
        Place of each term's stem. So a saved model stems the words that it knows as it was trained,
        whatever version of the stemmer it meets, and at once.
    digest_size : int
        Bytes of the digests that stand for terms and stems; 0 if these are texts.
    term_languages : array of shape (n_terms,), int8, or None
        Number of each term's language, in a collection that has several.
    """

    language: str | None
    n_texts: int
    mean_length: float
    terms: Annotated[NDArray[np.uint8], Saved("letters of terms")]
    term_counts: Annotated[NDArray[np.int32], Saved("terms")]
    stems: Annotated[NDArray[np.uint8], Saved("letters of stems")]
    stem_counts: Annotated[NDArray[np.int32], Saved("stems")]
    stem_of: Annotated[NDArray[np.int32], Saved("terms")]
    digest_size: Annotated[int, Saved(default=0)] = 0
    term_languages: Annotated[NDArray[np.int8] | None, Saved("terms", default=None)] = None

    @classmethod
    def of(
        cls, lexicon: Lexicon, terms: NDArray[np.int32], begins: NDArray[np.int64]
    ) -> Vocabulary:
        """Count the terms of texts; text i has the terms ``terms[begins[i]:begins[i + 1]]``."""
        if not len(terms):
            raise DataError("expected at least one passage that has words")
        n_texts = len(begins) - 1
        lexicon.tell_languages(terms, begins)
        return cls(
            check_language(lexicon.language),
            n_texts,
            len(terms) / n_texts,
            lexicon.term_texts,
            _count(terms, begins, lexicon.n_terms),
            lexicon.stem_texts,
            _count(lexicon.stem[terms], begins, lexicon.n_stems),
            lexicon.stem,
            term_languages=None if lexicon.languages is None else lexicon.languages.numbers,
        )

    @cached_property
    def tables(self) -> Tables:
        """What finds and weighs terms and stems; two threads may both make it, to no harm."""
        places = core.Vocabulary(self.terms, self.stems, self.stem_of, self.digest_size)
        return Tables(places, self._idf(self.term_counts), self._idf(self.stem_counts))

    def _idf(self, counts: NDArray[np.int32]) -> NDArray[np.float64]:
        """Weight of each term, and last that of one that was never seen; shape (n_terms + 1,)."""
        m = np.append(counts, 0)
        return np.log(1 + (self.n_texts - m + 0.5) / (m + 0.5))

    @cached_property
    def languages(self) -> TermLanguages | None:
        """Which language each term is of, in a collection that has several."""
        if self.term_languages is None:
            return None
        texts = self.terms.tobytes().decode().split("\n")[:-1]
        return TermLanguages(several(self.language), texts, self.term_languages)

    def _check_state(self) -> None:
        size = self.digest_size
        if size not in (0, DIGEST_SIZE):
            raise ValueError(f"expected digests of {DIGEST_SIZE} bytes")
        for kind in ("term", "stem"):
            texts, counts = getattr(self, f"{kind}s"), getattr(self, f"{kind}_counts")
            is_ended = size or not len(texts) or texts[-1] == NEWLINE
            n_texts = len(texts) / size if size else np.count_nonzero(texts == NEWLINE)
            if n_texts != len(counts) or not is_ended or (counts < 0).any():
                raise ValueError(f"expected a count for each of the {kind}s")
        names = several(check_language(self.language))
        if (self.term_languages is None) != (not names) or (names and size):
            raise ValueError("expected the language of each term where there are several")
        numbers = self.term_languages
        if numbers is not None and not (-1 <= numbers.min() <= numbers.max() < len(names)):
            raise ValueError(f"expected languages of terms among {len(names)}")
        n_stems = len(self.stem_counts)
        if len(self.stem_of) and not 0 <= self.stem_of.min() <= self.stem_of.max() < n_stems:
            raise ValueError(f"expected each term's stem among {n_stems}")
        if not 0 < self.mean_length < np.inf:
            raise ValueError("expected a number of texts and their mean length")

    def __getstate__(self) -> dict[str, Any]:
        made = ("tables", "languages")  # by need, and of what cannot be pickled
        return {name: value for name, value in vars(self).items() if name not in made}


def _count(tokens: NDArray[np.int32], begins: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """In how many texts each of ``size`` terms occurs."""
    counts = np.zeros(size, np.int64)
    core.count_texts(tokens, np.arange(size), begins, counts)
    return counts.astype(np.int32)
