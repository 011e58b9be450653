"""Collections in several languages: of which of them each term is."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

import didyma._core.text as core
from didyma.lazy import cached_property
from didyma.text.features.cues import trait_table, traits_of
from didyma.text.features.languages import stems_of, stop_words

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

    >>> texts = [["die", "katze", "schläft"], ["the", "cat", "sleeps"]]
    >>> languages = TermLanguages.of(("english", "german"), texts)
    >>> terms = sorted({term for text in texts for term in text})
    >>> dict(zip(terms, languages.numbers.tolist()))
    {'cat': 0, 'die': 1, 'katze': 1, 'schläft': 1, 'sleeps': 0, 'the': 0}

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
    def of(cls, names: Sequence[str], texts: Sequence[Sequence[str]]) -> TermLanguages:
        """Count terms in texts; terms are numbered in ascending order."""
        terms = sorted({term for text in texts for term in text})
        place = {term: n for n, term in enumerate(terms)}
        tokens = np.array([place[term] for text in texts for term in text], np.int32)
        begins = np.cumsum([0, *map(len, texts)])
        return cls.count(names, terms, tokens, begins)

    @classmethod
    def count(
        cls,
        names: Sequence[str],
        terms: Sequence[str],
        tokens: NDArray[np.int32],
        begins: NDArray[np.int64],
    ) -> TermLanguages:
        """The same of numbered terms; text i has ``tokens[begins[i]:begins[i + 1]]``."""
        spoken = language_of_texts(names, terms, tokens, begins)
        shares = np.zeros((len(names), len(terms)))
        lengths = np.diff(begins)
        for number in range(len(names)):
            chosen = spoken == number
            if chosen.any():
                counts = np.zeros(len(terms), np.int64)
                bounds = np.concatenate([[0], np.cumsum(lengths[chosen])])
                words = tokens[np.repeat(chosen, lengths)]
                core.count_texts(words, np.arange(len(terms)), bounds, counts)
                shares[number] = counts / chosen.sum()
        scripts = [script_of(term) for term in terms]
        allowed = np.array([[_script(name) == script for script in scripts] for name in names])
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
        spoken = np.asarray(self.guess(terms) if numbers is None else numbers, np.int64)
        stems = [""] * len(terms)
        for number in np.unique(spoken).tolist():
            places = np.flatnonzero(spoken == number).tolist()
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


def language_of_texts(
    names: Sequence[str],
    terms: Sequence[str],
    tokens: NDArray[np.int32],
    begins: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The number of each text's language: most stop words, or else most words of its script.

    −1 where two languages are equal in both.
    """
    scripts = [script_of(term) for term in terms]
    is_stop = np.array([[term in stop_words(name) for term in terms] for name in names])
    fits = np.array([[_script(name) == script for script in scripts] for name in names])
    # A thousandth of a stop word for each word of the script, that the latter decides ties only.
    worth = is_stop + fits / 1000.0
    sums = np.stack([_sums(row[tokens], begins) for row in worth])
    best = sums.max(axis=0)
    is_tied = np.isclose(sums, best).sum(axis=0) > 1
    return np.where(is_tied | (best <= 0), NONE, sums.argmax(axis=0))


def detect_all(
    first: str | None,
    languages: Sequence[str],
    terms: Sequence[str],
    tokens: NDArray[np.int32],
    begins: NDArray[np.int64],
    least_share: float,
) -> tuple[str, ...]:
    """The language of a collection and those that a real share of its texts is in beside it.

    A text is in another language than the first if the share of its stop words is greater than
    ``least_share`` and twice that of the first one's, with two different ones at least. There must
    be ten such texts, and they must be a twentieth of all.
    """
    lengths = np.maximum(np.diff(begins), 1)
    distinct, shares = {}, {}
    for language in languages:
        is_stop = np.isin(terms, list(stop_words(language)))[tokens]
        shares[language] = _sums(is_stop.astype(float), begins) / lengths
        distinct[language] = _distinct(tokens, is_stop, begins)
    base = np.zeros(len(lengths)) if first is None else shares[first]
    others = [language for language in languages if language != first]
    table = np.stack([shares[language] for language in others])
    counts = np.stack([distinct[language] for language in others])
    winner = table.argmax(axis=0)
    at = winner, np.arange(len(lengths))
    is_other = (
        (table[at] > least_share)
        & (table[at] > LEAST_RATIO * base)
        & (counts[at] >= LEAST_STOP_WORDS)
    )
    votes = Counter(others[n] for n in winner[is_other].tolist())
    least = max(LEAST_TEXTS, LEAST_PART * len(lengths))
    further = [language for language, n_texts in votes.most_common() if n_texts >= least]
    return (*([] if first is None else [first]), *further)


def _distinct(
    tokens: NDArray[np.int32], chosen: NDArray[np.bool_], begins: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many different ones of the chosen tokens each text has."""
    text = np.repeat(np.arange(len(begins) - 1), np.diff(begins))[chosen]
    pairs = np.unique(np.stack([text, tokens[chosen]]), axis=1)
    return np.bincount(pairs[0], minlength=len(begins) - 1)


def _sums(values: NDArray[np.float64], begins: NDArray[np.int64]) -> NDArray[np.float64]:
    text = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    return np.bincount(text, values, minlength=len(begins) - 1).astype(np.float64)


def _script(language: str) -> str:
    return SCRIPTS.get(language, LATIN)


def _grams(term: str) -> list[str]:
    framed = f"^{term}$"
    return [framed[n : n + 3] for n in range(len(framed) - 2)]
