"""The mentions of a document as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.applications.coreference.mentions import english
from didyma.applications.coreference.reader import Document

Integers = NDArray[np.int64]

FORMS = ("I", "you", "he", "one", "name", "definite", "possessive", "other")
NAME, DEFINITE, POSSESSIVE, OTHER = range(4, 8)  # the forms before are pronouns


class _Traits(NamedTuple):
    form: int
    person: int
    number: int
    gender: int


@dataclass(frozen=True, eq=False)
class Mentions:
    """The mentions of a document, one entry each in every array."""

    start: Integers
    stop: Integers
    sentence: Integers
    form: Integers
    person: Integers
    number: Integers
    gender: Integers
    text: Integers  # equal numbers for equal texts; likewise below
    head: Integers
    content: NDArray[np.float32]  # (n, number of different words): which content words it has
    quotation: Integers  # its number, 0 outside of any
    speaker: Integers  # 0 if unknown


def read(document: Document) -> Mentions:
    """The mentions of a document, in its order."""
    spans = [document.words[m.start : m.stop] for m in document.mentions]
    lowered = [[word.casefold() for word in span] for span in spans]
    heads = [_head(span) for span in lowered]
    contents = [[word for word in span if word not in english.EMPTY] or span for span in lowered]
    column_of: dict[str, int] = {}
    columns = [[column_of.setdefault(word, len(column_of)) for word in words] for words in contents]
    content = np.zeros((len(spans), len(column_of)), np.float32)
    for row, words_of_row in zip(content, columns):
        row[words_of_row] = 1.0
    rows = np.array([_traits(span, head) for span, head in zip(spans, heads)], np.int64)
    form, person, number, gender = rows.reshape(-1, 4).T
    start = np.array([m.start for m in document.mentions], np.int64)
    return Mentions(
        start,
        np.array([m.stop for m in document.mentions], np.int64),
        document.sentences[start],
        form,
        person,
        number,
        gender,
        _numbers([" ".join(span) for span in lowered]),
        _numbers([span[head] for span, head in zip(lowered, heads)]),
        content,
        _quotations(document.words)[start],
        _numbers([document.speakers[m.start] for m in document.mentions]),
    )


def _head(words: Sequence[str]) -> int:
    """Place of the head: the last word before what usually follows a head."""
    for place, word in enumerate(words):
        if place and word in english.AFTER_HEAD and words[place - 1] not in english.EMPTY:
            return place - 1
    last = len(words) - 1
    return last - 1 if last and words[last] == "'s" else last


def _traits(words: Sequence[str], head: int) -> _Traits:
    lowered = [word.casefold() for word in words]
    if len(words) == 1 and lowered[0] in english.PRONOUNS:
        person, number, gender = english.PRONOUNS[lowered[0]]
        return _Traits(person - 1, person, number, gender)
    noun, first = lowered[head], lowered[0]
    owners = [place for place, word in enumerate(lowered[:head]) if word in ("'s", "'")]
    if words[head][:1].isupper():
        form = NAME
    elif first in english.DEFINITE:
        form = DEFINITE
    else:
        form = POSSESSIVE if owners or first in english.POSSESSIVE else OTHER
    # A title or given name before the head of a name tells its gender, but not that of an owner.
    told = lowered[owners[-1] + 1 if owners else 0 : head] if form == NAME else []
    genders = (english.GENDER[word] for word in (noun, *told) if word in english.GENDER)
    gender = next(genders, english.UNKNOWN)
    several = noun in english.PLURALS or (
        form != NAME and noun.endswith("s") and not noun.endswith(english.SINGULAR_ENDINGS)
    )
    plural = several or "and" in lowered[:head]
    return _Traits(form, 0, english.PLURAL if plural else english.SINGULAR, gender)


def _quotations(words: Sequence[str]) -> Integers:
    """The number of the quotation around each word, 0 for none."""
    numbers, opened, current = np.zeros(len(words), np.int64), 0, 0
    for place, word in enumerate(words):
        if word in english.OPENS or (word in english.EITHER and not current):
            opened += 1
            current = opened
        elif word in english.CLOSES or word in english.EITHER:
            current = 0
        numbers[place] = current
    return numbers


def _numbers(texts: Sequence[str]) -> Integers:
    """Equal numbers for equal texts; 0 for none."""
    number = {"": 0}
    return np.array([number.setdefault(text, len(number)) for text in texts], np.int64)
