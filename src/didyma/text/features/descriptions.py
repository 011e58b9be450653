"""Columns of features in words, for those who read why a passage has its score."""

from __future__ import annotations

import re

from didyma.text.features.in_lists import IN_LIST, RRF
from didyma.text.features.meaning import MEANING
from didyma.text.features.signals import MISSING, RANK, SIGNAL

WORDS = {
    # Of the small set
    "bm25": "BM25 of the words",
    "tfidf_cosine": "similarity of all words, rare ones more",
    "word_coverage": "share of the question's words that occur",
    "word_jaccard": "words in common, as a share of all",
    "pair_coverage": "share of the question's pairs of words that occur",
    "stem_bm25": "BM25 of the stems of words",
    "stem_coverage": "share of the question's content words that occur",
    "stem_idf_coverage": "share of the question's content words that occur, rare ones more",
    "stem_idf_jaccard": "content words in common, rare ones more",
    "stem_substring": "longest run of content words in common",
    "stem_subsequence": "content words in the same order",
    "proximity": "the question's words stand close together",
    "earliness": "the question's words come early",
    "gram_coverage": "share of the question's letter groups that occur",
    "gram_jaccard": "letter groups in common",
    "length": "length of the passage",
    # Of the extended set
    "word_substring": "longest run of words in common",
    "word_subsequence": "words in the same order",
    "word_tiling": "runs of words in common",
    "word_gappy": "words in the same order, with gaps",
    "stem_tiling": "runs of content words in common",
    "stem_gappy": "content words in the same order, with gaps",
    "word_idf_coverage": "share of the question's words that occur, rare ones more",
    "pair_jaccard": "pairs of words in common",
    "triple_coverage": "share of the question's triples of words that occur",
    "triple_jaccard": "triples of words in common",
    "rarest_matched": "rarest word of the question that occurs",
    "rarest_missing": "rarest word of the question that is missing",
    "prefix_coverage": "share of the question's words whose beginning occurs",
    "subject_coverage": "the question's words stand in the subject",
    "opening_matched": "the passage begins with a word of the question",
    "head_matched": "the question's first content word occurs",
    "last_matched": "the question's last content word occurs",
    "capitals_matched": "share of the question's names that occur",
    "numbers_matched": "share of the question's numbers that occur",
    "new_stems": "words that the question does not have",
    "concepts": "similarity of subject",
    # Of word vectors and encoders
    "vector_cosine": "similarity of the words' meanings",
    "vector_coverage": "each word of the question has a similar one",
    "vector_reverse_coverage": "each word of the passage has a similar one in the question",
    "meaning": "similarity of meaning",
    "meaning agreement": "similarity of meaning, and words in common",
    "meaning missing": "no vector",
    "late_interaction": "each word of the question has a similar one, rare ones more",
    # Of a first stage
    "first_score": "score of the first stage",
    "first_reciprocal_rank": "place in the first stage's order",
}
CUES = {
    "number": "a number",
    "year": "a year",
    "month": "a month",
    "number_word": "a number in words",
    "unit": "a unit",
    "person": "a word for a person",
    "cause": "a word for a cause",
    "by": "“by”",
    "means": "a word for a means",
    "negation": "a negation",
    "capitals": "capitalised words",
    "name": "a name",
    "place": "a place",
    "definition": "a definition",
    "pronoun": "begins with a pronoun",
    "fragment": "no whole sentence",
    "new_number": "a number that the question does not have",
    "money": "a sum of money",
    "bracket": "a bracket",
    "quote": "a quotation",
    "full_stop": "ends with a full stop",
}
KINDS = {
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
OF_SIGNALS = {RANK: "place by {}", MISSING: "{} is missing"}
IN_COMPANY = {IN_LIST: "{}, compared with the others here", RRF: "place by {}"}
CUE = "cue_"

_KIND = re.compile(rf"({'|'.join(KINDS)}):(.+)")
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
        return f"{described(kind[2])}, where the question {KINDS[kind[1]]}"
    if name.startswith(CUE) and (cue := name.removeprefix(CUE)) in CUES:
        words = CUES[cue]
        return words if words.split()[0] in ("begins", "ends") else f"has {words}"
    if (field := _FIELD.fullmatch(name)) is not None and field[2] in WORDS:
        words = WORDS[field[2]]
        return f"{field[1]}: {words}"
    return name
