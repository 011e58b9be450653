"""The small feature set: lexical overlaps of query and passage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from didyma.text.features.part import Part
from didyma.text.features.reading import Reading

NAMES = (
    "bm25",
    "tfidf_cosine",
    "word_coverage",
    "word_jaccard",
    "pair_coverage",
    "stem_bm25",
    "stem_coverage",
    "stem_idf_coverage",
    "stem_idf_jaccard",
    "stem_substring",
    "stem_subsequence",
    "proximity",
    "earliness",
    "gram_coverage",
    "gram_jaccard",
    "length",
)


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

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return NAMES

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Overlaps of each row; shape (n_rows, 16)."""
        return reading.overlaps
