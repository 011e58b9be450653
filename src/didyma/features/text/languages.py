"""Languages: their stop words, their stems, and which of them a collection is written in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.resources import files

from didyma.errors import DataError
from didyma.features.text.characters import fold, without_accents

__all__ = ["LANGUAGES", "check_language", "detect", "stemmer", "stop_words"]

LANGUAGES = (
    *("arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hindi"),
    *("hungarian", "indonesian", "italian", "norwegian", "polish", "portuguese", "romanian"),
    *("russian", "spanish", "swedish", "turkish"),
)
LEAST_SHARE = 0.08  # of a text's words are stop words of its language


def check_language(language: str | None) -> str | None:
    """A language that we know, or none."""
    if language is not None and language not in LANGUAGES:
        raise DataError(
            f"expected auto, None or one of {', '.join(LANGUAGES)}, found {language!r}",
            field="language",
        )
    return language


@cache
def stop_words(language: str | None) -> frozenset[str]:
    """Terms that tell nothing about what a text is about.

    >>> sorted(stop_words("german"))[:3]
    ['aber', 'alle', 'allem']
    """
    if language is None:
        return frozenset()
    file = files("didyma.features.text").joinpath("stop_words", f"{language}.txt")
    return frozenset(map(fold, file.read_text(encoding="utf-8").split()))


def stemmer(language: str | None) -> Callable[[str], str]:
    """From a term to its stem, which has no accents; without a language only these go.

    >>> [stemmer("english")(term) for term in ("connected", "connections", "naïve")]
    ['connect', 'connect', 'naiv']
    """
    if language is None:
        return without_accents
    # Not the package's own choice: that prefers a compiled library of any version if there is one.
    module = import_module(f"snowballstemmer.{language}_stemmer")
    stem: Callable[[str], str] = getattr(module, f"{language.capitalize()}Stemmer")().stemWord
    return lambda term: without_accents(stem(term))


def detect(terms: Iterable[str]) -> str | None:
    """The language that has most stop words among the terms, or None if they are few in each.

    >>> detect("der hund und die katze sind im garten".split())
    'german'
    >>> detect(["你好"]) is None
    True
    """
    found = Counter(terms)
    counts = {language: sum(found[word] for word in stop_words(language)) for language in LANGUAGES}
    best = max(LANGUAGES, key=lambda language: counts[language])
    return best if counts[best] > LEAST_SHARE * found.total() else None
