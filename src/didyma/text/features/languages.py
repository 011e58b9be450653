"""Stop words, stemming and language detection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files

from didyma.errors import DataError
from didyma.text.features.characters import fold, without_accents

LANGUAGES = (
    *("arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hindi"),
    *("hungarian", "indonesian", "italian", "norwegian", "polish", "portuguese", "romanian"),
    *("russian", "spanish", "swedish", "turkish"),
)
BLOCK = 1 << 12  # terms stemmed at once
LEAST_SHARE = 0.08  # of a text's words are stop words of its language


def check_language(language: str | None) -> str | None:
    """The language itself, or several with commas between them, if all are supported, or None.

    >>> check_language("english, russian")
    'english,russian'
    """
    if language is None:
        return None
    names = [name.strip() for name in language.split(",")] if isinstance(language, str) else []
    if not names or not set(names) <= set(LANGUAGES):
        raise DataError(
            f"expected auto, None, or one or more of {', '.join(LANGUAGES)}, found {language!r}",
            field="language",
        )
    return ",".join(dict.fromkeys(names))


def several(language: str | None) -> tuple[str, ...]:
    """The languages of a collection that has more than one, else none.

    >>> several("english,russian"), several("english")
    (('english', 'russian'), ())
    """
    names = () if language is None else tuple(language.split(","))
    return names if len(names) > 1 else ()


@cache
def stop_words(language: str | None) -> frozenset[str]:
    """The stop words of a language, folded.

    >>> sorted(stop_words("german"))[:3]
    ['aber', 'alle', 'allem']
    """
    if language is None:
        return frozenset()
    file = files("didyma.text.features").joinpath("stop_words", f"{language}.txt")
    return frozenset(map(fold, file.read_text(encoding="utf-8").split()))


def stems_of(terms: list[str], language: str | None) -> list[str]:
    """The stem of each term, which has no accents; without a language only these go.

    >>> stems_of(["connected", "connections", "naïve"], "english")
    ['connect', 'connect', 'naiv']
    """
    return stem_lines(terms, language).split("\n")[:-1]


def stem_lines(terms: list[str], language: str | None) -> str:
    """The stem of each term, each ended by a newline."""
    lines = []
    stem = (lambda block: block) if language is None else _stemmer(language)
    for start in range(0, len(terms), BLOCK):  # between blocks other threads run
        lines += [without_accents("\n".join(stem(terms[start : start + BLOCK]))), "\n"]
    return "".join(lines)


def _stemmer(language: str) -> Callable[[list[str]], list[str]]:
    """A new stemmer: it has a buffer, so threads must not share one."""
    from Stemmer import Stemmer

    stem: Callable[[list[str]], list[str]] = Stemmer(language, 0).stemWords
    return stem


def detect(terms: Iterable[str]) -> str | None:
    """The language that has most stop words among the terms, or None if they are few in each.

    >>> detect("der hund und die katze sind im garten".split())
    'german'
    >>> detect(["你好"]) is None
    True
    """
    frequency = Counter(terms)
    counts = {
        language: sum(frequency[word] for word in stop_words(language)) for language in LANGUAGES
    }
    best = max(LANGUAGES, key=lambda language: counts[language])
    return best if counts[best] > LEAST_SHARE * frequency.total() else None
