"""The small feature set: lexical overlaps of query and passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from didyma.model import Saved
from didyma.text.features.part import Part
from didyma.text.features.reading import Reader, Reading


class SmallFeatures(Part):
    """Sixteen overlaps of a query and a passage.

    Terms are all words, stems those of content words: words that are no stop words, or all of them
    if the query has no others. A share of nothing is 0.

    bm25, stem_bm25
        Σ idf · tf / (tf + k1 (1 − b + b length / mean length)) over the query's terms, or distinct
        stems; tf counts them in the passage, length all its words.
    tfidf_cosine
        Cosine of vectors with an entry (1 + log tf) · idf for each term.
    word_coverage, pair_coverage, stem_coverage, gram_coverage
        Share of the query's distinct terms, pairs of neighbouring terms, stems, and character
        n-grams of content words that the passage has.
    word_jaccard, gram_jaccard
        Those that both have, as a share of those that either has.
    stem_idf_coverage, stem_idf_jaccard
        The same for stems, each counted by its idf.
    stem_substring, stem_subsequence
        Length of the longest common run of stems, and of the longest common subsequence, as a
        share of the query.
    proximity
        (m − 1) / (w − 1) if the passage has m > 1 of the query's stems, and the shortest part that
        has them all is of w words.
    earliness
        Mean over the query's stems, by idf, of 1 − place / length of its first occurrence; 0 if
        there is none.
    length
        log(1 + number of words).

    >>> from didyma import Lists
    >>> from didyma.text import TextFeatures
    >>> lists = Lists.of_texts(["who wrote Emma?"], [["Jane Austen wrote Emma.", "It rains."]])
    >>> TextFeatures([SmallFeatures()]).fit(lists).names[:3]
    ('bm25', 'tfidf_cosine', 'word_coverage')
    """

    descriptions: ClassVar = {
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
    }

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Overlaps of each row; shape (n_rows, 16)."""
        return reading.overlaps


NAMES = tuple(SmallFeatures.descriptions)
# Those that a short text is compared by.
OVERLAPS = (
    *("stem_bm25", "stem_coverage", "stem_idf_coverage", "stem_idf_jaccard"),
    *("pair_coverage", "gram_coverage", "length"),
)


class FieldOverlaps(Part):
    """Overlaps of the small set (`SmallFeatures`) with one field, as FIELD.stem_bm25 and so on.

    The field has a mean length and frequencies of words of its own, as in BM25F.

    >>> from didyma.data.attributes import Attributes
    >>> from didyma.data.lists import Lists
    >>> from didyma.text.features.union import TextFeatures
    >>> titles = Attributes({"title": ["Emma", "Clocks"]})
    >>> lists = Lists(["A novel.", "A book."], queries=["who wrote Emma"], attributes=titles)
    >>> features = TextFeatures([FieldOverlaps("title")]).fit(lists)
    >>> features.names[1], features.transform(lists)[:, 1].tolist()
    ('title.stem_coverage', [0.5, 0.0])
    """

    field: Annotated[str, Saved()]
    reader_: Annotated[Reader, Saved()]

    def __init__(self, field: str) -> None:
        self.field = field

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(f"{self.field}.{name}" for name in OVERLAPS)

    def fit(self, reading: Reading) -> Self:
        """Learn how rare words are in the field."""
        texts = self._texts(reading)
        self.reader_ = Reader.fit(reading.lists.with_items(texts), reading.language)
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Overlaps of each row; shape (n_rows, n_columns)."""
        field_reading = self.reader_.read(reading.lists.with_items(self._texts(reading)))
        places = [NAMES.index(name) for name in OVERLAPS]
        overlaps: NDArray[np.float64] = field_reading.overlaps[:, places][reading.document]
        return overlaps

    def _texts(self, reading: Reading) -> Sequence[str]:
        attributes = reading.lists.attributes
        fields = {} if attributes is None else attributes.fields
        return fields.get(self.field, [""] * len(reading.lists))
