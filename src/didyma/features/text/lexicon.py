"""What is known of each distinct word as it is written, found out once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.features.text.characters import code_points, fold, kind_of, kinds_of
from didyma.features.text.cues import cues
from didyma.features.text.growing import Growing
from didyma.features.text.languages import stemmer, stop_words
from didyma.features.text.vocabulary import Vocabulary, hash_of
from didyma.kernels.words import UNSPACED, find, insert, split

__all__ = ["Lexicon", "Tokens", "grams_of"]

GRAM, PREFIX = 3, 4  # characters
CHUNK = 1 << 22  # code points split at once, so that memory stays small beside the texts


@dataclass(frozen=True, eq=False)
class Tokens:
    """Words of texts in order: token t is word ``word[t]`` of a lexicon.

    Those of text i are ``begins[i]`` to ``begins[i + 1]``; ``starts`` and ``stops`` are places in
    that text, in code points.
    """

    word: NDArray[np.int32]
    starts: NDArray[np.int32]
    stops: NDArray[np.int32]
    begins: NDArray[np.int64]


class Lexicon:
    """Numbers of words, of their terms and stems, in the order in which they were met.

    A *word* is what stands in a text, its *term* what `fold` makes of it, its *stem* the term
    without its ending. Only new words cost Python's time: all others are found by a kernel. Stems
    cost most of it, so those of a collection are ``known`` from its `Vocabulary`.

    >>> lexicon = Lexicon("english")
    >>> tokens = lexicon.read(["The cats", "the CAT"])
    >>> terms = lexicon.term[tokens.word]
    >>> [lexicon.terms[n] for n in terms], len(set(lexicon.stem[terms]))
    (['the', 'cats', 'the', 'cat'], 2)
    """

    def __init__(self, language: str | None, known: Vocabulary | None = None) -> None:
        self.language = language
        self.terms: list[str] = []
        self._known = known
        self._cues = cues(language)
        self._stem_of = stemmer(language)
        self._stop_words = stop_words(language)
        self._number_of_term: dict[str, int] = {}
        self._number_of_stem: dict[int, int] = {}
        self._number_of_gram: dict[str, int] = {}
        self._number_of_prefix: dict[str, int] = {}
        self._term, self._stem = Growing(np.int32), Growing(np.int32)
        self._is_stop, self._is_capital = Growing(np.bool_), Growing(np.bool_)
        self._traits, self._prefixes = Growing(np.int64), Growing(np.int32)
        self._term_hashes, self._stem_hashes = Growing(np.uint64), Growing(np.uint64)
        self._grams, self._gram_stops = Growing(np.int32), Growing(np.int64)
        self._gram_stops.extend([0])
        self._keys = np.zeros(1 << 12, np.uint64)
        self._values = np.full(1 << 12, -1, np.int32)

    def __len__(self) -> int:
        return len(self._term)

    @property
    def term(self) -> NDArray[Any]:
        """Term of each word."""
        return self._term.array

    @property
    def stem(self) -> NDArray[Any]:
        """Stem of each term."""
        return self._stem.array

    @property
    def is_stop(self) -> NDArray[Any]:
        """Whether a term is a stop word."""
        return self._is_stop.array

    @property
    def is_capital(self) -> NDArray[Any]:
        """Whether a word begins with a capital."""
        return self._is_capital.array

    @property
    def traits(self) -> NDArray[Any]:
        """Traits of each term (`didyma.features.text.cues`)."""
        return self._traits.array

    @property
    def prefixes(self) -> NDArray[Any]:
        """Number of each term's first letters."""
        return self._prefixes.array

    @property
    def term_hashes(self) -> NDArray[Any]:
        """`hash_of` each term."""
        return self._term_hashes.array

    @property
    def stem_hashes(self) -> NDArray[Any]:
        """`hash_of` each stem."""
        return self._stem_hashes.array

    @property
    def grams(self) -> tuple[NDArray[Any], NDArray[Any], int]:
        """Character n-grams: term n has those numbered ``grams[stops[n]:stops[n + 1]]``."""
        return self._grams.array, self._gram_stops.array, len(self._number_of_gram)

    def read(self, texts: Iterable[str]) -> Tokens:
        """Split texts into words, and learn the new ones."""
        pieces, lengths = [], [0]
        for chunk in _chunks(texts):
            piece, counts = self._read(chunk)
            pieces.append(piece)
            lengths.extend(counts.tolist())
        word, starts, stops = (
            np.concatenate([piece[n] for piece in pieces] or [np.zeros(0, np.int32)])
            for n in range(3)
        )
        return Tokens(word, starts, stops, np.cumsum(lengths))

    def _read(self, texts: list[str]) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
        joined = "\n".join(texts)
        codes = code_points(joined)
        starts, stops = np.empty(len(codes), np.int32), np.empty(len(codes), np.int32)
        hashes = np.empty(len(codes), np.uint64)
        n = split(codes, kinds_of(codes), starts, stops, hashes)
        starts, stops, hashes = starts[:n], stops[:n], hashes[:n]
        word = np.empty(n, np.int32)
        if find(hashes, self._keys, self._values, word):
            new, places = np.unique(hashes[word < 0], return_index=True)
            places = np.flatnonzero(word < 0)[places]
            self._learn([joined[starts[at] : stops[at]] for at in places], new)
            find(hashes, self._keys, self._values, word)
        offsets = np.cumsum([0, *(len(text) + 1 for text in texts)])
        begins = np.searchsorted(starts, offsets)
        shift = np.repeat(offsets[:-1], np.diff(begins)).astype(np.int32)
        return [word, starts - shift, stops - shift], np.diff(begins)

    def _learn(self, words: list[str], hashes: NDArray[np.uint64]) -> None:
        first, terms = len(self), [fold(word) for word in words]
        self._number([t for t in dict.fromkeys(terms) if t not in self._number_of_term])
        self._term.extend([self._number_of_term[term] for term in terms])
        self._is_capital.extend([word[0].isupper() for word in words])
        if 2 * len(self) > len(self._keys):
            size = 1 << (4 * len(self)).bit_length()
            taken = np.flatnonzero(self._values >= 0)
            keys = self._keys[taken[np.argsort(self._values[taken])]]
            self._keys, self._values = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
            insert(keys, 0, self._keys, self._values)
        insert(hashes, first, self._keys, self._values)

    def _number(self, terms: list[str]) -> None:
        """Give numbers to new terms, to their stems and n-grams."""
        hashes = np.array([hash_of(term) for term in terms], np.uint64)
        grams, stops = [], []
        for term, stem in zip(terms, self._stems(terms, hashes)):
            self._number_of_term[term] = len(self._number_of_term)
            self._stem.extend([self._number_of_stem.setdefault(stem, len(self._number_of_stem))])
            if len(self._stem_hashes) < len(self._number_of_stem):
                self._stem_hashes.extend([stem])
            known = self._number_of_gram
            grams += [known.setdefault(gram, len(known)) for gram in grams_of(term)]
            stops.append(len(self._grams) + len(grams))
        self.terms += terms
        self._term_hashes.extend(hashes)
        self._is_stop.extend([term in self._stop_words for term in terms])
        self._traits.extend([self._cues.traits(term) for term in terms])
        known = self._number_of_prefix
        self._prefixes.extend([known.setdefault(t[:PREFIX], len(known)) for t in terms])
        self._grams.extend(grams)
        self._gram_stops.extend(stops)

    def _stems(self, terms: list[str], hashes: NDArray[np.uint64]) -> list[int]:
        if self._known is None:
            return [hash_of(self._stem_of(term)) for term in terms]
        places = self._known.terms.places(hashes).tolist()
        return [
            hash_of(self._stem_of(term)) if place < 0 else int(self._known.stem_of[place])
            for term, place in zip(terms, places)
        ]


def grams_of(term: str) -> list[str]:
    """Distinct character n-grams: three in a row of ^term$, or the characters of unspaced scripts.

    >>> grams_of("cat"), grams_of("北京")
    (['^ca', 'cat', 'at$'], ['北', '京'])
    """
    if kind_of(term[0]) == UNSPACED:
        return list(dict.fromkeys(term))
    ends = f"^{term}$"
    return list(dict.fromkeys(ends[i : i + GRAM] for i in range(len(term))))


def _chunks(texts: Iterable[str]) -> Iterable[list[str]]:
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
