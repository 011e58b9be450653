"""Names of the features of a pair of mentions, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

SENTENCES = (0, 1, 2, 3, 5, 9, 17)  # least distance of each bin
MENTIONS = (1, 2, 3, 5, 9, 17, 33, 65)

FORMS = ("I", "you", "he", "one", "name", "definite", "possessive", "other")
NAME, DEFINITE, POSSESSIVE, OTHER = range(4, 8)  # the forms before are pronouns

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


FEATURES: tuple[str, ...] = (
    "any pair",
    *(f"{first} before {second}" for first, second in product(FORMS, FORMS)),
    *(f"{name}, {kind}" for kind in KINDS for name in _bins(SENTENCES, "sentences")),
    *(f"{name}, {kind}" for kind in KINDS for name in _bins(MENTIONS, "mentions")),
    *(f"{name}, {kind}" for kind in KINDS for name in AGREEMENT),
    *(f"nearest that agrees, {kind}" for kind in KINDS),
    *(f"nearest name that agrees, {kind}" for kind in NAME_KINDS),
    *(f"{name}, {kind}" for kind in NOUN_KINDS for name in MATCHES),
    *(f"{persons}, {setting}" for persons in PERSONS for setting in SETTINGS),
    *OTHERS,
)
