"""Features of all pairs of mentions of a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.applications.coreference.mentions.english import TO_BE
from didyma.applications.coreference.mentions.reading import FORMS, NAME, Integers, Mentions, read
from didyma.applications.coreference.reader import Document
from didyma.applications.coreference.task import MentionPairs

Flags = NDArray[np.bool_]

SENTENCES = (0, 1, 2, 3, 5, 9, 17)  # least distance of each bin
MENTIONS = (1, 2, 3, 5, 9, 17, 33, 65)

# How the two mentions of a pair appear, in document order.
KINDS = (
    "pronouns",
    "name before pronoun",
    "noun before pronoun",
    "pronoun before noun",
    "names",
    "nouns",
    "name and noun",
)
NOUN_KINDS = KINDS[4:]
NAME_KINDS = ("name before pronoun", "names", "name and noun")
AGREEMENT = ("same gender", "other gender", "same number", "other number")
MATCHES = (
    "same text",
    "same content words",
    "same head",
    "same head, other modifiers",
    "content words within the other's",
    "half of the content words shared",
    "some content words shared",
    "no content words shared",
    "same length",
    "second longer",
)
PERSONS = (
    "first person, agreeing",
    "first person, not agreeing",
    "second person",
    "third person, agreeing",
    "third person, not agreeing",
    "I and you",
    "first and third person",
    "second and third person",
    "other pronouns",
)
SETTINGS = ("no quotation", "one quotation", "two quotations", "one quoted")
OTHERS = (
    "nested",
    "side by side",
    "comma between",
    "form of to be between",
    "same speaker",
    "other speaker",
)


def _bins(least: Sequence[int], unit: str) -> list[str]:
    names = [
        str(low) if following == low + 1 else f"{low}-{following - 1}"
        for low, following in pairwise(least)
    ]
    return [f"{name} {unit} apart" for name in (*names, f"{least[-1]} or more")]


def _each(kinds: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}, {kind}" for kind in kinds for name in names)


# Names of the features, group by group.
GROUPS: dict[str, tuple[str, ...]] = {
    "any": ("any pair",),
    "forms": tuple(f"{first} before {second}" for first, second in product(FORMS, FORMS)),
    "sentences": _each(KINDS, _bins(SENTENCES, "sentences")),
    "mentions": _each(KINDS, _bins(MENTIONS, "mentions")),
    "agreement": _each(KINDS, AGREEMENT),
    "nearest": _each(KINDS, ("nearest that agrees",)),
    "nearest name": _each(NAME_KINDS, ("nearest name that agrees",)),
    "matches": _each(NOUN_KINDS, MATCHES),
    "persons": tuple(f"{persons}, {setting}" for persons in PERSONS for setting in SETTINGS),
    "others": OTHERS,
}
FEATURES = tuple(chain.from_iterable(GROUPS.values()))
_BEGINS = dict(zip(GROUPS, accumulate(map(len, GROUPS.values()), initial=0)))


class _Indicators:
    """Indicators of all pairs, shape (n_pairs, len(FEATURES))."""

    def __init__(self, n_pairs: int) -> None:
        self.features = np.zeros((n_pairs, len(FEATURES)), np.uint8)
        self._rows = np.arange(n_pairs) * len(FEATURES)

    def mark(self, group: str, column: Any, on: Any = slice(None)) -> None:
        """Set a column of a group, which may be another one for each pair, where ``on``."""
        places = (self._rows + _BEGINS[group] + column)[on]
        self.features.ravel()[places] = 1


def pair_features(document: Document) -> MentionPairs:
    """Indicators (uint8) of all pairs of mentions, shape (n(n−1)/2, len(`FEATURES`)).

    Gold clusters are not looked at.
    """
    n = len(document.mentions)
    i, j = np.triu_indices(n, 1)
    indicators = _Indicators(len(i))
    if len(i):
        _fill(indicators, document, read(document), i, j)
    return MentionPairs(n, indicators.features)


def _fill(
    indicators: _Indicators, document: Document, mentions: Mentions, i: Integers, j: Integers
) -> None:
    mark = indicators.mark
    form, person = mentions.form, mentions.person
    number, gender = mentions.number, mentions.gender
    kind = _kind(form[i], form[j])
    noun_kind = kind - KINDS.index(NOUN_KINDS[0])
    nouns = noun_kind >= 0
    nested = mentions.stop[j] <= mentions.stop[i]

    mark("any", 0)
    mark("forms", form[i] * len(FORMS) + form[j])
    apart = mentions.sentence[j] - mentions.sentence[i]
    for group, distance, least in (("sentences", apart, SENTENCES), ("mentions", j - i, MENTIONS)):
        mark(group, kind * len(least) + np.searchsorted(least, distance, "right") - 1)

    gendered, numbered = (t[i] * t[j] > 0 for t in (gender, number))
    other_gender = gendered & (gender[i] != gender[j])
    other_number = numbered & (number[i] != number[j])
    agreement = (gendered & ~other_gender, other_gender, numbered & ~other_number, other_number)
    for column, on in enumerate(agreement):
        mark("agreement", kind * len(AGREEMENT) + column, on)

    # A noun has person 0: it may agree with a third person, not with a first or second one.
    low, high = np.minimum(person[i], person[j]), np.maximum(person[i], person[j])
    same_person = (low == high) | ((low == 0) & (high == 3))
    agrees = same_person & ~other_gender & ~other_number & ~nested
    agrees &= ~nouns | (mentions.head[i] == mentions.head[j])
    mark("nearest", kind, agrees & (i == _nearest(agrees, i, j, len(form))[j]))
    named = agrees & (form[i] == NAME)
    named &= i == _nearest(named, i, j, len(form))[j]
    for column, name in enumerate(NAME_KINDS):
        mark("nearest name", column, named & (kind == KINDS.index(name)))

    for column, on in enumerate(_matches(mentions, i, j)):
        mark("matches", noun_kind * len(MATCHES) + column, nouns & on)

    persons = _persons(low, high, ~other_gender & ~other_number)
    setting = _setting(mentions.quotation, i, j)
    mark("persons", persons * len(SETTINGS) + setting, kind == KINDS.index("pronouns"))

    for column, on in enumerate(_others(document, mentions, i, j, nested)):
        mark("others", column, on)


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


def _persons(low: Integers, high: Integers, agree: Flags) -> Integers:
    """Index into `PERSONS` from the lower and the higher person of two pronouns."""
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
