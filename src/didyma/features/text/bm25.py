"""A first stage: the passages of a collection that match a query best by BM25."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data import Lists
from didyma.errors import DataError
from didyma.features.text.reading import Reader, Reading
from didyma.features.text.small import K1, B

__all__ = ["BM25"]


class BM25:
    """Passages by the BM25 of their stems, found in an index of all of them.

    The score is the feature ``stem_bm25`` of `SmallFeatures`, whose words are counted over the
    collection: Σ idf · tf / (tf + k1 (1 − b + b length / mean length)) over the distinct stems of
    the query's content words. What each stem adds to each passage is computed once, so that a query
    costs as much as the rows of a sparse matrix that it adds up.

    >>> index = BM25().fit(["A yield expression makes a generator.", "Lists are sorted in place."])
    >>> [(places, scores)] = index.top(["how to sort a list"], 10)
    >>> places.tolist()
    [1]

    Parameters
    ----------
    language : str or None
        Of the stop words and stems, as in `TextFeatures`.
    """

    def __init__(self, language: str | None = "auto") -> None:
        self.language = language

    def fit(self, passages: Iterable[str]) -> Self:
        """Index passages; a passage is known by its place."""
        texts = list(passages)
        lists = Lists.of_texts([""], [texts])
        self.reader_ = Reader.fit(lists, self.language)
        reading = self.reader_.read(lists)
        is_stop = reading.is_stop[reading.terms]
        # By content words and, for queries that have none, by all words.
        self.weights_ = tuple(
            self._weights(reading, kept) for kept in (~is_stop, np.ones_like(is_stop))
        )
        return self

    def _weights(self, reading: Reading, kept: NDArray[np.bool_]) -> sp.csr_array:
        """What each stem of the vocabulary, a row, adds to the score of each passage."""
        known = self.reader_.vocabulary
        lengths = reading.ends - reading.begins
        owner = np.repeat(np.arange(len(lengths)), lengths)[kept]
        place = known.stems.places(reading.lexicon.stem_hashes)[reading.stems[kept]]
        counts = sp.csr_array(
            (np.ones(len(place)), (place, owner)), shape=(len(known.stems.hashes), len(lengths))
        )
        counts.sum_duplicates()
        idf = np.repeat(known.stems.idf(known.stems.hashes), np.diff(counts.indptr))
        saturation = K1 * (1 - B + B * lengths / known.mean_length)
        counts.data = idf * counts.data / (counts.data + saturation[counts.indices])
        return counts[:, reading.rows]

    def top(
        self, queries: Sequence[str], k: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each query places and scores of the k best passages that share a stem, best first.

        Of passages with equal scores the first is better.
        """
        if not hasattr(self, "reader_"):
            raise DataError("there is no index yet: call fit first")
        reading = self.reader_.read(Lists.of_texts(queries, [[]] * len(queries)))
        place = self.reader_.vocabulary.stems.places(reading.lexicon.stem_hashes)
        found = []
        for text in reading.queries:
            words = slice(reading.begins[text], reading.ends[text])
            is_stop = reading.is_stop[reading.terms[words]]
            every = bool(is_stop.all())
            asked = np.unique(place[reading.stems[words][every | ~is_stop]])
            found.append(_best(self.weights_[every], asked[asked >= 0], k))
        return found


def _best(
    weights: sp.csr_array, rows: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Columns of the k largest sums of some rows that are not zero, and these sums."""
    n_passages = weights.shape[1]
    parts = [slice(weights.indptr[row], weights.indptr[row + 1]) for row in rows]
    columns = np.concatenate([weights.indices[part] for part in parts] or [np.zeros(0, np.int64)])
    values = np.concatenate([weights.data[part] for part in parts] or [np.zeros(0)])
    scores = np.asarray(np.bincount(columns, values, minlength=n_passages), np.float64)
    matched = np.flatnonzero(scores)
    if len(matched) > k:
        matched = matched[scores[matched] >= np.partition(scores[matched], -k)[-k]]
    best = matched[np.argsort(-scores[matched], kind="stable")][:k]
    return best, scores[best]
