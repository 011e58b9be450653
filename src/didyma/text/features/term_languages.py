"""Collections in several languages: which these are, and of which of them each term is."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.lazy import cached_property
from didyma.text.features.languages import (
    LANGUAGES,
    LEAST_SHARE,
    detect,
    stems_of,
    stop_words,
    trait_table,
    traits_of,
)

LEAST_TEXTS, LEAST_PART = 10, 0.05  # texts of a further language, and their share of all texts
LEAST_STOP_WORDS, LEAST_RATIO = 2, 2.0  # different ones in such a text; times those of the first
SCRIPTS = {
    "arabic": "ARABIC",
    "greek": "GREEK",
    "hindi": "DEVANAGARI",
    "russian": "CYRILLIC",
}
LATIN = "LATIN"
NONE = -1  # the number of no language


class TermLanguages:
    """Which of several languages a term is of, so that one stem and one stop list apply to it.

    Only languages of its script come into question. Of these it is the one in whose training texts
    the term is most frequent (share of texts that have it), whatever text it stands in now: a name
    that two languages share is one word, and a query matches passages of both. A term that training
    has not seen is of the language whose terms it resembles by its letters,

        argmax Σ log (1 + n(g)) / (1 + n) over the trigrams g of ^term$,

    n(g) being how many terms of the language have g, and n how many it has in all. So what a term
    is depends on nothing but the term and the model.

    >>> terms = ["die", "katze", "schläft", "the", "cat", "sleeps"]
    >>> texts = np.arange(6, dtype=np.int32), np.array([0, 3, 6])
    >>> TermLanguages.count(("english", "german"), terms, *texts).numbers.tolist()
    [1, 1, 1, 0, 0, 0]

    Attributes
    ----------
    names : tuple of str
    terms : sequence of str
        Those of the vocabulary.
    numbers : array of shape (n_terms,), int8
        The language of each, −1 for none: numbers, and scripts that none of the languages has.
    """

    def __init__(
        self, names: Sequence[str], terms: Sequence[str], numbers: NDArray[np.int8]
    ) -> None:
        self.names, self.terms, self.numbers = tuple(names), terms, numbers

    @classmethod
    def count(
        cls,
        names: Sequence[str],
        terms: Sequence[str],
        tokens: NDArray[np.int32],
        begins: NDArray[np.int64],
    ) -> TermLanguages:
        """Count terms in texts; text i has the terms ``tokens[begins[i]:begins[i + 1]]``."""
        scripts = [script_of(term) for term in terms]
        allowed = np.array([[_script(name) == script for script in scripts] for name in names])
        language_of_text = _language_of_texts(names, terms, allowed, tokens, begins)
        shares = np.zeros((len(names), len(terms)))
        lengths = np.diff(begins)
        for number in range(len(names)):
            chosen = language_of_text == number
            if chosen.any():
                counts = np.zeros(len(terms), np.int64)
                bounds = np.concatenate([[0], np.cumsum(lengths[chosen])])
                words = tokens[np.repeat(chosen, lengths)]
                core.count_texts(words, np.arange(len(terms)), bounds, counts)
                shares[number] = counts / chosen.sum()
        shares = np.where(allowed, shares, -1.0)
        numbers = np.where(shares.max(axis=0) > 0, shares.argmax(axis=0), NONE).astype(np.int8)
        counted = cls(names, terms, numbers)
        unsure = np.flatnonzero((numbers == NONE) & allowed.any(axis=0))
        numbers[unsure] = counted.guess([terms[n] for n in unsure.tolist()])
        return cls(names, terms, numbers)

    def guess(self, terms: Sequence[str]) -> list[int]:
        """The language of terms that the vocabulary lacks."""
        return [self._guess(term) for term in terms]

    def stems(self, terms: Sequence[str], numbers: Sequence[int] | None = None) -> list[str]:
        """The stem of each term in its language, as guessed where no ``numbers`` are given."""
        languages = np.asarray(self.guess(terms) if numbers is None else numbers, np.int64)
        stems = [""] * len(terms)
        for number in np.unique(languages).tolist():
            places = np.flatnonzero(languages == number).tolist()
            language = None if number == NONE else self.names[number]
            for at, stem in zip(places, stems_of([terms[at] for at in places], language)):
                stems[at] = stem
        return stems

    @cached_property
    def traits(self) -> dict[str, int]:
        """Bits of the words that are cues or stop words, each in its own language."""
        number_of = dict(zip(self.terms, self.numbers.tolist()))
        bits: dict[str, int] = {}
        for number, language in enumerate(self.names):
            for word, traits in traits_of(language).items():
                if number_of.get(word, number) == number:
                    bits[word] = bits.get(word, 0) | traits
        return bits

    @cached_property
    def trait_table(self) -> core.Traits:
        """The same as a table of the core."""
        return trait_table(self.traits)

    def _guess(self, term: str) -> int:
        script = script_of(term)
        numbers = [n for n, name in enumerate(self.names) if _script(name) == script]
        if len(numbers) < 2:
            return numbers[0] if numbers else NONE
        grams = _grams(term)

        def likelihood(number: int) -> float:
            seen, total = self._seen[number]
            return sum(log((1 + seen[gram]) / (1 + total)) for gram in grams)

        return max(numbers, key=likelihood)

    @cached_property
    def _seen(self) -> list[tuple[Counter[str], int]]:
        """How many terms of each language have a trigram, and how many there are."""
        seen: list[tuple[Counter[str], int]] = []
        for number in range(len(self.names)):
            of_language = np.flatnonzero(self.numbers == number).tolist()
            grams = Counter(g for n in of_language for g in set(_grams(self.terms[n])))
            seen.append((grams, len(of_language)))
        return seen


def script_of(term: str) -> str | None:
    """The script of a term's first letter, None if it has none.

    >>> script_of("Москва"), script_of("1812") is None
    ('CYRILLIC', True)
    """
    if term.isascii():
        return LATIN if any(map(str.isalpha, term)) else None
    for character in term:
        if character.isalpha():
            return unicodedata.name(character, "?").split()[0]
    return None


def detect_all(
    terms: Sequence[str], tokens: NDArray[np.int32], begins: NDArray[np.int64]
) -> tuple[str, ...]:
    """The language of a collection and those that a real share of its texts is in beside it.

    Text i has the terms ``tokens[begins[i]:begins[i + 1]]``. It is in another language than the
    first if the share of its stop words is greater than `LEAST_SHARE` and twice that of the first
    one's, with two different ones at least. There must be ten such texts, and they must be a
    twentieth of all.
    """
    first = detect(terms[n] for n in tokens.tolist())
    n_texts, lengths = len(begins) - 1, np.maximum(np.diff(begins), 1)
    base = np.zeros(n_texts)
    if first is not None:
        base = _sums(_is_stop(first, terms)[tokens], begins) / lengths
    others = [language for language in LANGUAGES if language != first]
    stops = [_is_stop(language, terms)[tokens] for language in others]
    shares = np.stack([_sums(is_stop, begins) / lengths for is_stop in stops])
    distinct = np.stack([_distinct(tokens, is_stop, begins) for is_stop in stops])
    winner = shares.argmax(axis=0)
    at = winner, np.arange(n_texts)
    is_other = (
        (shares[at] > LEAST_SHARE)
        & (shares[at] > LEAST_RATIO * base)
        & (distinct[at] >= LEAST_STOP_WORDS)
    )
    votes = Counter(others[n] for n in winner[is_other].tolist())
    least = max(LEAST_TEXTS, LEAST_PART * n_texts)
    further = [language for language, count in votes.most_common() if count >= least]
    return (*([] if first is None else [first]), *further)


def _language_of_texts(
    names: Sequence[str],
    terms: Sequence[str],
    allowed: NDArray[np.bool_],
    tokens: NDArray[np.int32],
    begins: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The number of each text's language: most stop words, or else most words of its script.

    −1 where two languages are equal in both. ``allowed`` are terms of each language's script.
    """
    is_stop = np.stack([_is_stop(name, terms) for name in names])
    # A thousandth of a stop word for each word of the script, that the latter decides ties only.
    sums = np.stack([_sums(row[tokens], begins) for row in is_stop + allowed / 1000.0])
    best = sums.max(axis=0)
    is_tied = np.isclose(sums, best).sum(axis=0) > 1
    return np.where(is_tied | (best <= 0), NONE, sums.argmax(axis=0))


def _is_stop(language: str, terms: Sequence[str]) -> NDArray[np.bool_]:
    words = stop_words(language)
    return np.array([term in words for term in terms], np.bool_)


def _sums(values: NDArray[np.bool_ | np.float64], begins: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum over the tokens of each text."""
    text = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    return np.bincount(text, values, minlength=len(begins) - 1).astype(np.float64)


def _distinct(
    tokens: NDArray[np.int32], chosen: NDArray[np.bool_], begins: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many different ones of the chosen tokens each text has."""
    text = np.repeat(np.arange(len(begins) - 1), np.diff(begins))[chosen]
    pairs = np.unique(np.stack([text, tokens[chosen]]), axis=1)
    return np.bincount(pairs[0], minlength=len(begins) - 1)


def _script(language: str) -> str:
    return SCRIPTS.get(language, LATIN)


def _grams(term: str) -> list[str]:
    framed = f"^{term}$"
    return [framed[n : n + 3] for n in range(len(framed) - 2)]
