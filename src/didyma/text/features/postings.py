"""The inverted lists of a BM25 index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma._core.text import add_scores, count_texts, list_texts
from didyma.errors import DataError
from didyma.lazy import cached_property
from didyma.ranking.featuriser import check_array
from didyma.text.features.lexicon import Lexicon
from didyma.text.features.reading import K1, B
from didyma.text.features.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Postings:
    """Lists of passages, one for each stem of a vocabulary, and how often it occurs in them.

    List r is ``passages[starts[r]:starts[r + 1]]``, in ascending order, with ``counts`` beside it.
    Of V stems the first V lists count content words. A stem that some stop word has too is list
    V + r again, where all words count, for queries that are nothing but stop words.

    Attributes
    ----------
    starts : array of shape (2 V + 1,), int64
    passages : array, int32
    counts : array, the smallest unsigned integers that do
    lengths : array of shape (n_passages,), int32
        Words of each passage.
    mean_length : float
        Of passages that differ.
    """

    starts: NDArray[np.int64]
    passages: NDArray[np.int32]
    counts: NDArray[Any]
    lengths: NDArray[np.int32]
    mean_length: float

    @classmethod
    def of(
        cls,
        lexicon: Lexicon,
        vocabulary: Vocabulary,
        terms: NDArray[np.int32],
        begins: NDArray[np.int64],
    ) -> Self:
        """List passages by stem; passage i has the terms ``terms[begins[i]:begins[i + 1]]``."""
        n_stems = len(vocabulary.stems.counts)
        stem, is_stop = lexicon.stem.astype(np.int64), lexicon.is_stop
        is_mixed = np.zeros(n_stems, bool)
        is_mixed[stem[is_stop]] = True
        kinds = np.where(is_stop, -1, stem), np.where(is_mixed[stem], n_stems + stem, -1)
        sizes = np.zeros(2 * n_stems, np.int64)
        for rows in kinds:
            count_texts(terms, rows, begins, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        passages = np.empty(starts[-1], np.int32)
        counts = np.empty(starts[-1], np.int32)
        for rows in kinds:
            list_texts(terms, rows, begins, starts, passages, counts)
        smallest = np.min_scalar_type(counts.max(initial=0))
        lengths = np.diff(begins).astype(np.int32)
        return cls(starts, passages, counts.astype(smallest), lengths, vocabulary.mean_length)

    def check(self, n_stems: int) -> None:
        """Raise ValueError for arrays that would lead out of bounds."""
        check_array("starts", self.starts, np.int64, (2 * n_stems + 1,))
        check_array("passages", self.passages, np.int32, (self.starts[-1],))
        check_array("lengths", self.lengths, np.int32, self.lengths.shape[:1])
        if self.counts.dtype.kind != "u" or not self.counts.dtype.isnative:
            raise ValueError("expected counts that are unsigned integers")
        if self.counts.shape != self.passages.shape:
            raise ValueError("expected a count for each entry")
        if self.starts[0] != 0 or (np.diff(self.starts) < 0).any() or (self.lengths < 0).any():
            raise ValueError("expected lists one after the other")

    @cached_property
    def _saturation(self) -> NDArray[np.float64]:
        return np.asarray(K1 * (1 - B + B * self.lengths / self.mean_length), np.float64)

    def best(
        self, stems: NDArray[np.int64], idf: NDArray[np.float64], k: int, *, every: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Passages with the k largest sums over stems of idf · tf / (tf + saturation), and these.

        Stop words count only if ``every`` word does.
        """
        rows = stems
        if every:
            other = stems + len(self.starts) // 2
            rows = np.where(self.starts[other + 1] > self.starts[other], other, stems)
        scores = np.zeros(len(self.lengths))
        lists = self.starts, self.passages, self.counts
        met = add_scores(rows, idf, *lists, self._saturation, scores)
        if len(met) and met[0] < 0:
            raise DataError("the index is damaged: it lists passages that there are not")
        sums, n = scores[met], len(met)
        if n > k > 0:
            is_best = sums >= np.partition(sums, n - k)[n - k]
            met, sums = met[is_best], sums[is_best]
        order = np.lexsort((met, -sums))[:k]
        return met[order], sums[order]
