"""Columns of features in words, for those who read why a passage has its score."""

from __future__ import annotations

import re

from didyma.text.features.extended import CUES, ExtendedFeatures
from didyma.text.features.languages import QUESTION_KINDS
from didyma.text.features.meaning import MEANING, Meaning
from didyma.text.features.part import IN_LIST, RRF, FirstStage
from didyma.text.features.signals import MISSING, RANK, SIGNAL
from didyma.text.features.word_vectors import WordVectors

PARTS = (ExtendedFeatures, WordVectors, Meaning, FirstStage)
WORDS = {name: words for part in PARTS for name, words in part.descriptions.items()}
OF_SIGNALS = {RANK: "place by {}", MISSING: "{} is missing"}
IN_COMPANY = {IN_LIST: "{}, compared with the others here", RRF: "place by {}"}
CUE = "cue_"

_KIND = re.compile(rf"({'|'.join(QUESTION_KINDS)}):(.+)")
_FIELD = re.compile(r"([^.]+)\.(.+)")


def described(name: str) -> str:
    """What a column says of a passage; signals have the names that users gave them.

    >>> described("word_coverage")
    "share of the question's words that occur"
    >>> described("signal.dense"), described("signal.dense rank")
    ('dense', 'place by dense')
    >>> described("title.stem_coverage in list")
    "title: share of the question's content words that occur, compared with the others here"
    >>> described("meaning.title")
    'title: similarity of meaning'
    >>> described("time:cue_year")
    'has a year, where the question asks when'
    >>> described("bm25 × my own feature")
    'BM25 of the words × my own feature'
    """
    if " × " in name:
        return " × ".join(map(described, name.split(" × ")))
    if name in WORDS:
        return WORDS[name]
    is_signal = name.startswith(SIGNAL)
    for end, words in (OF_SIGNALS | IN_COMPANY if is_signal else IN_COMPANY).items():
        if name.endswith(end):
            return words.format(described(name.removesuffix(end)))
    if name.startswith(f"{MEANING}."):
        return f"{name.removeprefix(f'{MEANING}.')}: {WORDS[MEANING]}"
    if is_signal:
        return name.removeprefix(SIGNAL).replace("=", " is ", 1)
    if (kind := _KIND.fullmatch(name)) is not None:
        return f"{described(kind[2])}, where the question {QUESTION_KINDS[kind[1]]}"
    if name.startswith(CUE) and (cue := name.removeprefix(CUE)) in CUES:
        words = CUES[cue]
        return words if words.split()[0] in ("begins", "ends") else f"has {words}"
    if (field := _FIELD.fullmatch(name)) is not None and field[2] in WORDS:
        words = WORDS[field[2]]
        return f"{field[1]}: {words}"
    return name
