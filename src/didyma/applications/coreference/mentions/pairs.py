"""Features of all pairs of mentions of a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.applications.coreference.mentions.english import TO_BE
from didyma.applications.coreference.mentions.names import (
    AGREEMENT,
    FEATURES,
    FORMS,
    KINDS,
    MATCHES,
    MENTIONS,
    NAME,
    NAME_KINDS,
    NOUN_KINDS,
    OTHERS,
    PERSONS,
    SENTENCES,
    SETTINGS,
)
from didyma.applications.coreference.mentions.reading import Integers, Mentions, read
from didyma.applications.coreference.reader import Document
from didyma.applications.coreference.task import MentionPairs

Flags = NDArray[np.bool_]


class _Columns:
    """Indicators of all pairs, filled in the order of `FEATURES`."""

    def __init__(self, n_pairs: int) -> None:
        self.features = np.zeros((n_pairs, len(FEATURES)), np.uint8)
        self._first = np.arange(n_pairs) * len(FEATURES)
        self._begin = 0

    def mark(self, on: Any, column: Any) -> None:
        """Set the column, counted within the present group, of each pair where ``on``."""
        places = (self._first + self._begin + column)[on]
        self.features.ravel()[places] = 1

    def close(self, size: int) -> None:
        """End a group of so many columns."""
        self._begin += size


def pair_features(document: Document) -> MentionPairs:
    """Indicators (uint8) of all pairs of mentions, shape (n(n−1)/2, len(`FEATURES`)).

    Gold clusters are not looked at.
    """
    n = len(document.mentions)
    i, j = np.triu_indices(n, 1)
    columns = _Columns(len(i))
    if len(i):
        _fill(columns, document, read(document), i, j)
    return MentionPairs(n, columns.features)


def _fill(
    columns: _Columns, document: Document, mentions: Mentions, i: Integers, j: Integers
) -> None:
    form, person = mentions.form, mentions.person
    number, gender = mentions.number, mentions.gender
    every = np.ones(len(i), np.bool_)
    kind = _kind(form[i], form[j])
    noun_kind = np.maximum(kind - KINDS.index(NOUN_KINDS[0]), 0)
    nouns = kind >= KINDS.index(NOUN_KINDS[0])
    nested = mentions.stop[j] <= mentions.stop[i]

    columns.mark(every, 0)
    columns.close(1)
    columns.mark(every, form[i] * len(FORMS) + form[j])
    columns.close(len(FORMS) ** 2)
    apart = mentions.sentence[j] - mentions.sentence[i]
    for distance, least in ((apart, SENTENCES), (j - i, MENTIONS)):
        columns.mark(every, kind * len(least) + np.searchsorted(least, distance, "right") - 1)
        columns.close(len(KINDS) * len(least))

    gendered, numbered = (t[i] * t[j] > 0 for t in (gender, number))
    other_gender = gendered & (gender[i] != gender[j])
    other_number = numbered & (number[i] != number[j])
    agreement = (gendered & ~other_gender, other_gender, numbered & ~other_number, other_number)
    for column, on in enumerate(agreement):
        columns.mark(on, kind * len(AGREEMENT) + column)
    columns.close(len(KINDS) * len(AGREEMENT))

    # A noun has person 0: it may agree with a third person, not with a first or second one.
    low, high = np.minimum(person[i], person[j]), np.maximum(person[i], person[j])
    same_person = (low == high) | ((low == 0) & (high == 3))
    agrees = same_person & ~other_gender & ~other_number & ~nested
    agrees &= ~nouns | (mentions.head[i] == mentions.head[j])
    columns.mark(agrees & (i == _nearest(agrees, i, j, len(form))[j]), kind)
    columns.close(len(KINDS))
    named = agrees & (form[i] == NAME)
    named &= i == _nearest(named, i, j, len(form))[j]
    for column, name in enumerate(NAME_KINDS):
        columns.mark(named & (kind == KINDS.index(name)), column)
    columns.close(len(NAME_KINDS))

    for column, on in enumerate(_matches(mentions, i, j)):
        columns.mark(nouns & on, noun_kind * len(MATCHES) + column)
    columns.close(len(NOUN_KINDS) * len(MATCHES))

    pronouns = kind == KINDS.index("pronouns")
    persons = _persons(mentions, i, j, ~other_gender & ~other_number)
    columns.mark(pronouns, persons * len(SETTINGS) + _setting(mentions.quotation, i, j))
    columns.close(len(PERSONS) * len(SETTINGS))

    for column, on in enumerate(_others(document, mentions, i, j, nested)):
        columns.mark(on, column)
    columns.close(len(OTHERS))


def _kind(first: Integers, second: Integers) -> Integers:
    """Index into `KINDS` from the forms of both mentions."""
    pronoun = (first < NAME, second < NAME)
    name = (first == NAME, second == NAME)
    cases = [
        pronoun[0] & pronoun[1],
        name[0] & pronoun[1],
        ~pronoun[0] & pronoun[1],
        pronoun[0],
        name[0] & name[1],
        ~name[0] & ~name[1],
    ]
    return np.select(cases, range(len(cases)), default=len(cases))


def _nearest(on: Flags, i: Integers, j: Integers, n: int) -> Integers:
    """For each mention the last one before it of the pairs that are on, −1 if there is none."""
    before = np.full(n, -1)
    np.maximum.at(before, j[on], i[on])
    return before


def _matches(mentions: Mentions, i: Integers, j: Integers) -> Iterator[Flags]:
    """The flags of `MATCHES`."""
    size = mentions.content.sum(axis=1)
    shared = (mentions.content @ mentions.content.T)[i, j]
    least, most = np.minimum(size[i], size[j]), np.maximum(size[i], size[j])
    length = mentions.stop - mentions.start
    head = mentions.head[i] == mentions.head[j]
    yield mentions.text[i] == mentions.text[j]
    yield shared == most
    yield head
    yield head & (shared < least)
    yield (shared == least) & (shared < most)
    yield (2 * shared >= most) & (shared < most)
    yield (2 * shared < most) & (shared > 0)
    yield shared == 0
    yield length[i] == length[j]
    yield length[i] < length[j]


def _persons(mentions: Mentions, i: Integers, j: Integers, agree: Flags) -> Integers:
    """Index into `PERSONS` from two pronouns."""
    person = mentions.person
    low, high = np.minimum(person[i], person[j]), np.maximum(person[i], person[j])
    cases = [
        (low == 1) & (high == 1) & agree,
        (low == 1) & (high == 1),
        (low == 2) & (high == 2),
        (low == 3) & (high == 3) & agree,
        (low == 3) & (high == 3),
        (low == 1) & (high == 2),
        (low == 1) & (high == 3),
        (low == 2) & (high == 3),
    ]
    return np.select(cases, range(len(cases)), default=len(cases))


def _setting(quotation: Integers, i: Integers, j: Integers) -> Integers:
    """Index into `SETTINGS`."""
    first, second = quotation[i], quotation[j]
    cases = [(first == 0) & (second == 0), first == second, (first > 0) & (second > 0)]
    return np.select(cases, range(len(cases)), default=len(cases))


def _others(
    document: Document, mentions: Mentions, i: Integers, j: Integers, nested: Flags
) -> Iterator[Flags]:
    """The flags of `OTHERS`."""
    words = np.array([*(word.casefold() for word in document.words), ""], dtype=object)
    between = mentions.start[j] - mentions.stop[i]
    single = (between == 1) & (mentions.sentence[i] == mentions.sentence[j])
    word = np.where(single, words[np.minimum(mentions.stop[i], len(words) - 1)], "")
    speaker, other = mentions.speaker[i], mentions.speaker[j]
    yield nested
    yield between == 0
    yield word == ","
    yield np.isin(word.astype(str), list(TO_BE))
    yield (speaker == other) & (speaker > 0)
    yield (speaker != other) & (speaker * other > 0)
