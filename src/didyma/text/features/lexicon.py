"""Tokenisation: the words of texts as numbers of terms and stems, and how rare these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.errors import DataError
from didyma.execution import check_interruption
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable
from didyma.text.features.characters import code_points, fold_lines, properties_of
from didyma.text.features.digests import DIGEST_SIZE, digests_of
from didyma.text.features.languages import (
    check_language,
    decode_lines,
    encode_lines,
    several,
    stems_of,
    trait_table,
    traits_of,
)
from didyma.text.features.term_languages import TermLanguages

CHUNK = 1 << 18  # code points split at once, so that memory stays small beside the texts
NEWLINE = ord("\n")
_NOTHING = (*(np.zeros(0, np.int32) for _ in range(3)), np.zeros(0, np.bool_))


@dataclass(frozen=True, eq=False)
class Tokens:
    """Words of texts in order: token t has the term ``terms[t]`` of a lexicon.

    Those of text i are ``begins[i]`` to ``begins[i + 1]``; ``starts`` and ``stops`` are places in
    that text, in code points; ``is_capital`` says which begin with a capital.
    """

    terms: NDArray[np.int32]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    is_capital: NDArray[np.bool_]
    begins: NDArray[np.int64]


class Lexicon:
    """Numbers of the terms and stems of words.

    A *word* is what stands in a text, its *term* what `fold` makes of it, its *stem* the term
    without its ending; a ``vocabulary`` knows the stems of its terms. A lexicon belongs to whoever
    reads: one request, or the training of one model.

    >>> lexicon = Lexicon("english")
    >>> tokens = lexicon.read(["The cats", "the CAT"])
    >>> [lexicon.terms[n] for n in tokens.terms], len(set(lexicon.stem[tokens.terms]))
    (['the', 'cats', 'the', 'cat'], 2)

    In a collection of several languages a term is of one of them (`TermLanguages`).
    """

    def __init__(self, language: str | None, vocabulary: Vocabulary | None = None) -> None:
        self.language = language
        self._unsettled: tuple[str, ...] = ()  # languages that all texts together tell apart
        self._settled: list[str] | None = None  # terms whose languages were told apart here
        self.languages: TermLanguages | None = None
        self._digest_size, places = 0, None
        if vocabulary is not None:
            self.languages, self._digest_size = vocabulary.languages, vocabulary.digest_size
            places = vocabulary.tables.places
        if self.languages is None:
            self._unsettled = several(language)
            traits = _traits(language)
        else:
            traits = self.languages.trait_table
        self._core = core.Lexicon(places, traits)

    @property
    def stem(self) -> NDArray[np.int32]:
        """Stem of each term."""
        return self._core.stem_of_term()

    @property
    def terms(self) -> list[str]:
        """Each term."""
        return decode_lines(self._core.terms())

    @property
    def term_places(self) -> NDArray[np.int32]:
        """Place of each term in the vocabulary, −1 if it lacks it."""
        return self._core.term_places()

    @property
    def stem_places(self) -> NDArray[np.int32]:
        """Place of each stem in the vocabulary, −1 if it lacks it."""
        return self._core.stem_places()

    @property
    def is_stop(self) -> NDArray[np.bool_]:
        """Whether a term is a stop word, in a collection of several languages that of its own."""
        if self.languages is None or self._settled is None:
            return self._core.is_stop()
        traits = self.languages.traits
        return np.array([bool(traits.get(term, 0) & core.STOP_WORD) for term in self._settled])

    @property
    def traits(self) -> NDArray[np.int64]:
        """Traits of each term (`didyma.text.features.languages`)."""
        return self._core.traits()

    @property
    def prefixes(self) -> NDArray[np.int32]:
        """Number of each term's first four letters."""
        return self._core.prefixes()

    @property
    def grams(self) -> tuple[NDArray[np.int32], NDArray[np.int64], int]:
        """Character n-grams: term n has those numbered ``grams[stops[n]:stops[n + 1]]``.

        They are three characters in a row of ^term$, or the single ones of scripts without spaces;
        the number of different ones stands behind them.
        """
        return self._core.grams()

    def read(self, texts: Iterable[str]) -> Tokens:
        """Split texts into words, and number the new ones."""
        pieces, lengths = [_NOTHING], [0]
        for chunk in _chunks(texts):
            check_interruption()
            piece, counts = self._read(chunk)
            pieces.append(piece)
            lengths.extend(counts.tolist())
        terms, starts, stops, is_capital = (np.concatenate(parts) for parts in zip(*pieces))
        return Tokens(terms, starts, stops, is_capital, np.cumsum(lengths))

    def _read(self, texts: list[str]) -> tuple[tuple[NDArray[Any], ...], NDArray[np.int64]]:
        codes = code_points("\n".join(texts))
        self._core.split(codes, properties_of(codes))
        self._describe()
        terms, starts, stops, is_capital = self._core.tokens()
        offsets = np.cumsum([0, *(len(text) + 1 for text in texts)], dtype=np.int32)
        counts = np.diff(np.searchsorted(starts, offsets))
        shift = np.repeat(offsets[:-1], counts)
        return (terms, starts - shift, stops - shift, is_capital), counts

    def vocabulary(self, terms: NDArray[np.int32], begins: NDArray[np.int64]) -> Vocabulary:
        """What was read, counted in texts; text i has ``terms[begins[i]:begins[i + 1]]``."""
        if not len(terms):
            raise DataError("expected at least one passage that has words")
        if self._unsettled:
            self._settle_languages(terms, begins)
        n_texts = len(begins) - 1
        return Vocabulary(
            check_language(self.language),
            n_texts,
            len(terms) / n_texts,
            np.frombuffer(self._core.terms(), np.uint8),
            _count(terms, begins, self._core.n_terms),
            np.frombuffer(self._core.stems(), np.uint8),
            _count(self.stem[terms], begins, self._core.n_stems),
            self.stem,
            term_languages=None if self.languages is None else self.languages.numbers,
        )

    def _settle_languages(self, tokens: NDArray[np.int32], begins: NDArray[np.int64]) -> None:
        """Tell the languages of terms apart, and stem them, when all texts of training are read."""
        self._settled = self.terms
        self.languages = TermLanguages.count(self._unsettled, self._settled, tokens, begins)
        stems = self.languages.stems(self._settled, self.languages.numbers.tolist())
        self._core.stem(encode_lines(stems), 0)
        self._unsettled = ()

    def _describe(self) -> None:
        """Find out about new words what needs tables of Unicode or a stemmer."""
        folded = fold_lines(self._core.unfolded().decode())
        self._core.fold(folded.encode(), properties_of(code_points(folded)))
        if self._digest_size:
            self._core.identify(digests_of(decode_lines(self._core.unidentified())))
        if self._unsettled:
            return
        new = decode_lines(self._core.unstemmed())
        stems = (
            stems_of(new, self.language) if self.languages is None else self.languages.stems(new)
        )
        encode = digests_of if self._digest_size else encode_lines
        self._core.stem(encode(stems), self._digest_size)


@cache
def _traits(language: str | None) -> core.Traits:
    """The words of a language that have traits or are stop words; of several, none so far."""
    return trait_table({} if several(language) else traits_of(language))


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size > CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


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
        terms = decode_lines(self.terms.tobytes())
        return TermLanguages(several(self.language), terms, self.term_languages)

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
