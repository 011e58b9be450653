"""Traits of words that are cues of answers, and the classification of questions.

Words are data, one file for each language that has them; a language without such a file has only
the traits that need no words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

import didyma._core.text as core
from didyma.text.features.languages import several, stop_words

QUESTION_KINDS = (
    *("person", "time", "place", "reason", "quantity"),
    *("manner", "definition", "thing", "other"),
)
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
                    return min(nouns, key=QUESTION_KINDS.index)
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
    return core.Traits(np.frombuffer(listed(traits), np.uint8), bits)


def listed(texts: Iterable[str]) -> bytes:
    """Texts in UTF-8, each ended by a newline."""
    return "".join(f"{text}\n" for text in texts).encode()
