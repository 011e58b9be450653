"""English words that tell what a mention is: data, in a file beside this one."""

from __future__ import annotations

import json
from importlib.resources import files

UNKNOWN, MALE, FEMALE, NEUTER = range(4)
SINGULAR, PLURAL = 1, 2

_NUMBERS = {"": UNKNOWN, "singular": SINGULAR, "plural": PLURAL}
_GENDERS = {"": UNKNOWN, "male": MALE, "female": FEMALE, "neuter": NEUTER}
_DATA = json.loads(
    files("didyma.applications.coreference.mentions")
    .joinpath("english.json")
    .read_text(encoding="utf-8")
)


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


# Person, number and gender of each.
PRONOUNS = {
    word: (row["person"], _NUMBERS[row["number"]], _GENDERS[row["gender"]])
    for row in _DATA["pronouns"]
    for word in row["words"].split()
}
GENDER = {
    word: _GENDERS[name] for name, words in _DATA["genders"].items() for word in words.split()
}
PLURALS, TO_BE, AFTER_HEAD = _words("plurals"), _words("to_be"), _words("after_head")
SINGULAR_ENDINGS = tuple(_DATA["singular_endings"].split())
DEFINITE, POSSESSIVE = _words("definite"), _words("possessive")
EMPTY = DEFINITE | POSSESSIVE | _words("indefinite") | _words("empty")
OPENS, CLOSES, EITHER = (_DATA["quotes"][name].split() for name in ("open", "close", "either"))
