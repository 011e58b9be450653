"""The extended feature set: overlaps, sequence kernels, concepts, answer cues, question kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from didyma._core.text import concept_cosines, stem_sequences, word_sequences
from didyma._core.text import cues as kernel_cues
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable
from didyma.text.features.languages import QUESTION_KINDS, TRAITS, check_language, cues
from didyma.text.features.part import Part
from didyma.text.features.reading import Reading
from didyma.text.features.small import SmallFeatures

# So that a saved model stays small. Keeping the strongest entries also makes the cosines better:
# what a common stem has in all other concepts is noise.
MOST_CONCEPTS = 1024
STRONGEST = 32  # entries of a stem
MOST_ENTRIES = 2**18
LONGEST_PASSAGE = 1024  # words; what a passage has beyond them only the small set looks at

SHORTEST_TILE, DECAY = 2, 0.5  # words of a tile; what a gap costs in the gappy kernel
# Cues of answers in words, by the kernel, by traits of words, and by signs in the text.
KERNEL_CUES = {
    "capitals": "capitalised words",
    "name": "a name",
    "place": "a place",
    "definition": "a definition",
    "pronoun": "begins with a pronoun",
    "fragment": "no whole sentence",
    "new_number": "a number that the question does not have",
}
TRAIT_CUES = {
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
}
TEXT_CUES = {
    "money": "a sum of money",
    "bracket": "a bracket",
    "quote": "a quotation",
    "full_stop": "ends with a full stop",
}
CUES = KERNEL_CUES | TRAIT_CUES | TEXT_CUES
# Those that need no words of a language.
PLAIN_CUES = ("number", "year", "capitals", "name", "fragment", "new_number", *TEXT_CUES)
# Overlaps whose worth depends on the kind of the question.
BY_KIND = ("stem_idf_coverage", "subject_coverage", "opening_matched", "length")


@dataclass(frozen=True, eq=False)
class Concepts(Serialisable):
    """Explicit semantic analysis: a text as the concepts that its stems occur in.

    Concepts are the lists of passages that a model is trained on, or evenly chosen ones of them.
    The weight of a stem in a concept is (1 + log tf) · log(1 + n / df), each concept scaled to
    length 1; a text is the sum over its content words of the weights of their stems, times
    log(1 + n / df). Of each stem the strongest entries are kept, in 255 steps of the greatest: the
    cosine of two texts does not depend on the scale.

    Attributes
    ----------
    stems : array of shape (n_stems,), int32, ascending
        Places in the reader's vocabulary.
    starts : array of shape (n_stems + 1,)
        Entries ``starts[s]`` to ``starts[s + 1]`` are those of stem s.
    concepts, weights : arrays
        Number of the concept, and weight, of each entry. Files of 0.2 have all entries, in single
        precision.
    """

    stems: Annotated[NDArray[np.int32], Saved("stems")]
    starts: Annotated[NDArray[np.int32] | NDArray[np.int64], Saved("starts")]
    concepts: Annotated[NDArray[np.int16], Saved("entries")]
    weights: Annotated[NDArray[np.uint8] | NDArray[np.float32], Saved("entries")]

    @classmethod
    def fit(cls, reading: Reading) -> Self:
        """The concepts of a reading's lists."""
        n_lists = len(reading.queries)
        n = min(n_lists, MOST_CONCEPTS)
        chosen = np.arange(n) * n_lists // max(n, 1)
        lists = [np.unique(reading.rows[reading.bounds[q] : reading.bounds[q + 1]]) for q in chosen]
        is_content = ~reading.is_stop[reading.terms]
        words = [slice(reading.begins[n], reading.ends[n]) for texts in lists for n in texts]
        parts = [reading.stems[part][is_content[part]] for part in words]
        owner = np.repeat(np.arange(n), list(map(len, lists)))
        stems = reading.lexicon.stem_places[np.concatenate([np.zeros(0, np.int32), *parts])]
        concept = np.repeat(owner, list(map(len, parts)))
        # By stem, and then by concept.
        entries, tf = np.unique(stems.astype(np.int64) * n + concept, return_counts=True)
        stem, concept = np.divmod(entries, max(n, 1))
        present, place, df = np.unique(stem, return_inverse=True, return_counts=True)
        rarity = np.log1p(n / np.maximum(df, 1))[place]
        weights = (1 + np.log(tf)) * rarity
        norms = np.sqrt(np.bincount(concept, weights**2, minlength=n))
        weights *= rarity / norms[concept]
        most = STRONGEST
        while most > 1 and np.minimum(df, most).sum() > MOST_ENTRIES:
            most //= 2
        order = np.lexsort((-weights, place))
        strongest = np.arange(len(order)) - np.repeat(np.cumsum(df) - df, df) < most
        entries_kept = np.sort(order[strongest])
        steps = 255 * weights[entries_kept] / weights.max(initial=0.0)
        return cls(
            present.astype(np.int32),
            np.concatenate([[0], np.cumsum(np.minimum(df, most))]).astype(np.int32),
            concept[entries_kept].astype(np.int16),
            np.maximum(np.rint(steps), 1).astype(np.uint8),
        )

    def cosines(self, reading: Reading, ends: NDArray[np.int64]) -> NDArray[np.float64]:
        """Cosine of each row and its query; text i is read to ``ends[i]``."""
        if not len(self.stems):
            return np.zeros(len(reading))
        wanted = reading.lexicon.stem_places
        at = np.minimum(np.searchsorted(self.stems, wanted), len(self.stems) - 1)
        places = np.where(self.stems[at] == wanted, at, -1).astype(np.int32)
        return concept_cosines(reading.numbered(ends), places, *self._entries)

    @cached_property
    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.int16], NDArray[np.float32], int]:
        """What the kernel takes: starts, concepts, weights and the number of concepts."""
        n_concepts = int(self.concepts.max()) + 1
        starts, weights = self.starts.astype(np.int64), self.weights.astype(np.float32)
        return starts, self.concepts, weights, n_concepts

    def _check_state(self) -> None:
        n_entries, n_starts = len(self.concepts), len(self.stems) + 1
        if len(self.starts) != n_starts or tuple(self.starts[[0, -1]]) != (0, n_entries):
            raise ValueError(f"expected {n_entries} concepts of {len(self.stems)} stems")
        if (np.diff(self.starts) < 0).any() or (np.diff(self.stems, prepend=-1) <= 0).any():
            raise ValueError("the concepts are not in order")
        if n_entries and not 0 <= self.concepts.min() <= self.concepts.max() < MOST_CONCEPTS:
            raise ValueError(f"expected concepts below {MOST_CONCEPTS}")


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

    descriptions: ClassVar = {
        **SmallFeatures.descriptions,
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
    }
    language_: Annotated[str | None, Saved()]
    concepts_: Annotated[Concepts, Saved(inline=True)]

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column, those of the small set first."""
        return (
            *self.descriptions,
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
        return tuple(CUES) if cues(self.language_).has_words else PLAIN_CUES

    @property
    def _products(self) -> tuple[str, ...]:
        if not cues(self.language_).has_words:
            return ()
        return (*(f"cue_{name}" for name in self._cues), *BY_KIND)

    def _kind(self, reading: Reading, text: int, terms: list[str]) -> int:
        numbers = reading.terms[reading.begins[text] : reading.ends[text]]
        kind = cues(self.language_).question_kind([terms[n] for n in numbers.tolist()])
        return list(QUESTION_KINDS).index(kind)

    def _columns(self, reading: Reading, ends: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """The columns but for products, in the order of their names."""
        yield from reading.overlaps.T
        numbered = reading.numbered(ends)
        yield from word_sequences(numbered, SHORTEST_TILE, DECAY).T
        yield from stem_sequences(numbered, SHORTEST_TILE, DECAY).T[2:]
        lexicon, is_capital = reading.lexicon, reading.tokens.is_capital
        values, traits = kernel_cues(numbered, is_capital, lexicon.traits, lexicon.prefixes)
        further, cue_values = np.split(values.T, [-len(KERNEL_CUES)])
        yield from further
        yield self.concepts_.cosines(reading, ends)
        texts = np.array([_marks(text) for text in reading.texts]).reshape(-1, 5)[reading.rows]
        cue = dict(zip(KERNEL_CUES, cue_values))
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
