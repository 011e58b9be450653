"""What is known of a language: stop words, stems, cues of answers; and which one a text is in.

Stop words and cues are data, a file for each language; a language without a file of cues has only
the traits that need no words.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

import didyma._core.text as core
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
    stem = _stemmer(language)
    stems: list[str] = []
    for start in range(0, len(terms), BLOCK):  # between blocks other threads run
        block = "\n".join(stem(terms[start : start + BLOCK]))
        stems += without_accents(block).split("\n")
    return stems


def _stemmer(language: str | None) -> Callable[[list[str]], list[str]]:
    """A new stemmer: it has a buffer, so threads must not share one."""
    if language is None:
        return list
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
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] > LEAST_SHARE * frequency.total() else None


QUESTION_KINDS = {
    "person": "asks who",
    "time": "asks when",
    "place": "asks where",
    "reason": "asks why",
    "quantity": "asks how much",
    "manner": "asks how",
    "definition": "asks what it is",
    "thing": "asks what",
    "other": "is of no known kind",
}
# The bit of each trait; the kernel knows the first six, and which words are numbers and years.
TRAITS = {
    "number": core.NUMBER,
    "place": core.PLACE,
    "being": core.BEING,
    "article": core.ARTICLE,
    "copula": core.COPULA,
    "pronoun": core.PRONOUN,
    **{
        name: core.YEAR << n
        for n, name in enumerate(
            ("year", "month", "number_word", "unit", "person", "cause", "by", "means", "negation")
        )
    },
}
_NEXT = 3  # words after a question word that may say what is asked for


@dataclass(frozen=True)
class Cues:
    """What a language's words say about questions and answers."""

    traits_of: dict[str, int]
    kind_of: dict[str, str]
    kind_of_noun: dict[str, str]
    quantities: frozenset[str]
    definitions: frozenset[str]

    @property
    def has_words(self) -> bool:
        """Whether the language has a file of cues."""
        return bool(self.kind_of)

    def question_kind(self, terms: Sequence[str]) -> str:
        """What a question asks for, from its question word and the next few.

        >>> [cues("english").question_kind(text.split()) for text in ("in what year", "how tall")]
        ['time', 'quantity']
        """
        for place, term in enumerate(terms):
            following = terms[place + 1 : place + 1 + _NEXT]
            kind = self.kind_of.get(term)
            if kind == "manner" and not self.quantities.isdisjoint(following[:1]):
                return "quantity"
            if kind == "thing":
                nouns = {self.kind_of_noun[word] for word in following if word in self.kind_of_noun}
                if nouns:
                    return min(nouns, key=list(QUESTION_KINDS).index)
                return kind if self.definitions.isdisjoint(following[:1]) else "definition"
            if kind:
                return kind
        return "other"


@cache
def cues(language: str | None) -> Cues:
    """The cues of a language; of several those of the first that has a file of them."""
    for name in several(language):
        if cues(name).has_words:
            return cues(name)
    file = files("didyma.text.features").joinpath("cues", f"{language}.json")
    if not file.is_file():
        return Cues({}, {}, {}, frozenset(), frozenset())
    data = json.loads(file.read_text(encoding="utf-8"))
    traits: dict[str, int] = {}
    for name, words in data["traits"].items():
        for word in words.split():
            traits[word] = traits.get(word, 0) | TRAITS[name]
    return Cues(
        traits,
        {word: kind for kind, words in data["questions"].items() for word in words.split()},
        {word: kind for kind, words in data["following"].items() for word in words.split()},
        frozenset(data["quantity"].split()),
        frozenset(data["definition"].split()),
    )


def traits_of(language: str | None) -> dict[str, int]:
    """Bits of the words of a language that have traits or are stop words."""
    traits = dict(cues(language).traits_of)
    for word in stop_words(language):
        traits[word] = traits.get(word, 0) | core.STOP_WORD
    return traits


def trait_table(traits: Mapping[str, int]) -> core.Traits:
    """Bits of words as a table of the core."""
    bits = np.fromiter(traits.values(), np.int64, len(traits))
    return core.Traits(np.frombuffer(encode_lines(traits), np.uint8), bits)


def encode_lines(texts: Iterable[str]) -> bytes:
    """Texts in UTF-8, each ended by a newline."""
    return "".join(f"{text}\n" for text in texts).encode()


def decode_lines(lines: bytes) -> list[str]:
    """Texts that are each ended by a newline, from UTF-8."""
    return lines.decode().split("\n")[:-1]
