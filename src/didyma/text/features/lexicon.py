"""Tokenisation: the words of texts as numbers of terms and stems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.execution import check_interruption
from didyma.text.features.characters import code_points, fold_lines, properties_of
from didyma.text.features.cues import listed, trait_table, traits_of
from didyma.text.features.digests import digests_of
from didyma.text.features.languages import several, stem_lines
from didyma.text.features.term_languages import TermLanguages
from didyma.text.features.vocabulary import Vocabulary

CHUNK = 1 << 18  # code points split at once, so that memory stays small beside the texts
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
        self._told: list[str] | None = None
        self.languages = None if vocabulary is None else vocabulary.languages
        self._digest_size = 0 if vocabulary is None else vocabulary.digest_size
        table = None if vocabulary is None else vocabulary.tables.places
        self._names = several(language) if self.languages is None else ()
        words = _traits(language) if self.languages is None else self.languages.trait_table
        self._core = core.Lexicon(table, words)

    @property
    def stem(self) -> NDArray[np.int32]:
        """Stem of each term."""
        return self._core.stem_of_term()

    @property
    def terms(self) -> list[str]:
        """Each term."""
        return _lines(self._core.terms())

    @property
    def term_texts(self) -> NDArray[np.uint8]:
        """The terms in UTF-8, each ended by a newline."""
        return np.frombuffer(self._core.terms(), np.uint8)

    @property
    def stem_texts(self) -> NDArray[np.uint8]:
        """The stems in UTF-8, each ended by a newline."""
        return np.frombuffer(self._core.stems(), np.uint8)

    @property
    def n_terms(self) -> int:
        """How many terms there are."""
        return self._core.n_terms

    @property
    def n_stems(self) -> int:
        """How many stems there are."""
        return self._core.n_stems

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
        if self.languages is None or self.languages.terms is not self._told:
            return self._core.is_stop()
        traits = self.languages.traits
        return np.array([bool(traits.get(term, 0) & core.STOP_WORD) for term in self._told])

    @property
    def traits(self) -> NDArray[np.int64]:
        """Traits of each term (`didyma.text.features.cues`)."""
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

    def tell_languages(self, tokens: NDArray[np.int32], begins: NDArray[np.int64]) -> None:
        """Tell the languages of terms apart, and stem them, when all texts of training are read.

        Text i has the terms ``tokens[begins[i]:begins[i + 1]]``. In a single language that is done.
        """
        if not self._names:
            return
        self._told = self.terms
        self.languages = TermLanguages.count(self._names, self._told, tokens, begins)
        stems = self.languages.stems(self._told, self.languages.numbers.tolist())
        self._core.stem(listed(stems), 0)
        self._names = ()

    def _describe(self) -> None:
        """Find out about new words what needs tables of Unicode or a stemmer."""
        folded = fold_lines(self._core.unfolded().decode())
        self._core.fold(folded.encode(), properties_of(code_points(folded)))
        if self._digest_size:
            self._core.identify(digests_of(_lines(self._core.unidentified())))
        if self._names:  # of which language a term is, all texts together tell
            return
        new = _lines(self._core.unstemmed())
        stems = (
            stem_lines(new, self.language).encode()
            if self.languages is None
            else listed(self.languages.stems(new))
        )
        self._core.stem(
            digests_of(_lines(stems)) if self._digest_size else stems, self._digest_size
        )


def _lines(listed: bytes) -> list[str]:
    return listed.decode().split("\n")[:-1]


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
