"""The extended feature set: overlaps, sequence kernels, answer cues, question kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma._core.text import cues as kernel_cues
from didyma._core.text import stem_sequences, word_sequences
from didyma.model import Saved
from didyma.text.features.concepts import Concepts
from didyma.text.features.cues import QUESTION_KINDS, TRAITS, cues
from didyma.text.features.languages import check_language
from didyma.text.features.part import Part
from didyma.text.features.reading import Reading
from didyma.text.features.small import SmallFeatures

LONGEST_PASSAGE = 1024  # words; what a passage has beyond them only the small set looks at

SHORTEST_TILE, DECAY = 2, 0.5  # words of a tile; what a gap costs in the gappy kernel
SEQUENCES = ("substring", "subsequence", "tiling", "gappy")
FURTHER = (
    *("word_idf_coverage", "pair_jaccard", "triple_coverage", "triple_jaccard"),
    *("rarest_matched", "rarest_missing", "prefix_coverage", "subject_coverage"),
    *("opening_matched", "head_matched", "last_matched", "capitals_matched"),
    *("numbers_matched", "new_stems"),
)
KERNEL_CUES = ("capitals", "name", "place", "definition", "pronoun", "fragment", "new_number")
TRAIT_CUES = (
    *("number", "year", "month", "number_word", "unit"),
    *("person", "cause", "by", "means", "negation"),
)
TEXT_CUES = ("money", "bracket", "quote", "full_stop")
# Those that need no words of a language.
PLAIN_CUES = ("number", "year", "capitals", "name", "fragment", "new_number", *TEXT_CUES)
# Overlaps whose worth depends on the kind of the question.
BY_KIND = ("stem_idf_coverage", "subject_coverage", "opening_matched", "length")

_ALL_CUES = (*KERNEL_CUES, *TRAIT_CUES, *TEXT_CUES)


class ExtendedFeatures(Part):
    """The small set, and what answers of questions have in common.

    word_substring, word_subsequence, word_tiling, word_gappy; stem_tiling, stem_gappy
        Common runs as shares of the query, and gappy kernels (Lodhi et al. 2002), of all
        terms, and of the stems of content words.
    word_idf_coverage, pair_jaccard, triple_coverage, triple_jaccard
        Terms by idf; pairs and triples of neighbouring terms.
    rarest_matched, rarest_missing
        Greatest idf of a query's stem that the passage has, and of one that it lacks.
    prefix_coverage
        Share of the first four letters of the query's content words that begin one of the passage.
    subject_coverage
        Coverage by idf of the query's stems by what stands before the first "is", "was", …
    opening_matched, head_matched, last_matched
        Whether the passage's first content word is one of the query; whether the query's first
        content word, often what is asked for, and its last are in the passage.
    capitals_matched, numbers_matched
        Shares of the query's capitalised words (but for the first) and numbers.
    new_stems
        log(1 + number of stems that only the passage has).
    concepts
        Cosine of the two texts as vectors of `Concepts`.
    cue_*
        What in the passage, whatever the query, may speak for one kind of answer or another.
    kind:*
        The cues and some overlaps, if the query asks for this kind (`QUESTION_KINDS`), else 0: so a
        linear model can learn that *when* asks for a date. In languages that have cues.

    >>> from didyma import Lists
    >>> from didyma.text import TextFeatures
    >>> lists = Lists.of_texts(["who wrote Emma?"], [["Jane Austen wrote Emma.", "It rains."]])
    >>> features = TextFeatures([ExtendedFeatures()]).fit(lists)
    >>> features.transform(lists).shape == (2, len(features.names))
    True
    """

    language_: Annotated[str | None, Saved()]
    concepts_: Annotated[Concepts, Saved(inline=True)]

    def __init__(self) -> None:
        self._small = SmallFeatures()

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column, those of the small set first."""
        return (
            *self._small.names,
            *(f"word_{name}" for name in SEQUENCES),
            *(f"stem_{name}" for name in SEQUENCES[2:]),
            *FURTHER,
            "concepts",
            *(f"cue_{name}" for name in self._cues),
            *(f"{kind}:{name}" for name in self._products for kind in QUESTION_KINDS),
        )

    def fit(self, reading: Reading) -> Self:
        """Learn the concepts."""
        self.language_ = reading.language
        self.concepts_ = Concepts.fit(reading)
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Features of each row; shape (n_rows, n_columns)."""
        ends = np.minimum(reading.ends, reading.begins + LONGEST_PASSAGE)
        columns = dict(zip(self.names, self._columns(reading, ends)))
        values = np.zeros((len(reading), len(self.names)))
        for n, column in enumerate(columns.values()):
            values[:, n] = column
        if self._products:
            terms = reading.lexicon.terms
            kinds = np.array([self._kind(reading, q, terms) for q in reading.queries], np.int64)
            kind_of_row = kinds[reading.query_of_row]
            products = values[:, len(columns) :]
            for n, name in enumerate(self._products):
                place = n * len(QUESTION_KINDS) + kind_of_row
                products[np.arange(len(reading)), place] = columns[name]
        return values

    def _check_state(self) -> None:
        check_language(self.language_)

    @property
    def _cues(self) -> tuple[str, ...]:
        return _ALL_CUES if cues(self.language_).has_words else PLAIN_CUES

    @property
    def _products(self) -> tuple[str, ...]:
        if not cues(self.language_).has_words:
            return ()
        return (*(f"cue_{name}" for name in self._cues), *BY_KIND)

    def _kind(self, reading: Reading, text: int, terms: list[str]) -> int:
        numbers = reading.terms[reading.begins[text] : reading.ends[text]]
        kind = cues(self.language_).question_kind([terms[n] for n in numbers.tolist()])
        return QUESTION_KINDS.index(kind)

    def _columns(self, reading: Reading, ends: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """The columns but for products, in the order of their names."""
        yield from self._small.columns(reading).T
        numbered = reading.numbered(ends)
        yield from word_sequences(numbered, SHORTEST_TILE, DECAY).T
        yield from stem_sequences(numbered, SHORTEST_TILE, DECAY).T[2:]
        prefixes = reading.lexicon.prefixes
        values, traits = kernel_cues(numbered, reading.is_capital, reading.traits, prefixes)
        yield from values.T[: len(FURTHER)]
        yield self.concepts_.cosines(reading, ends)
        texts = np.array([_marks(text) for text in reading.texts]).reshape(-1, 5)[reading.rows]
        cue = dict(zip(KERNEL_CUES, values.T[len(FURTHER) :]))
        cue |= {name: (traits & TRAITS[name]) > 0 for name in TRAIT_CUES}
        cue |= dict(zip(TEXT_CUES, texts.T))
        cue["unit"] = cue["unit"] | texts[:, 4]
        yield from (cue[name] for name in self._cues)


def _marks(text: str) -> tuple[bool, ...]:
    """Whether a text has a sign of money, a bracket, a quotation; whether it ends; has a unit."""
    is_money = "$" in text or "£" in text or "€" in text
    return (
        is_money,
        "(" in text or "-lrb-" in text or "-LRB-" in text,
        '"' in text or "“" in text or "`" in text,
        text.rstrip()[-1:] in (".", "!", "?", "。", "！", "？", "।", "؟"),
        is_money or "%" in text,
    )
