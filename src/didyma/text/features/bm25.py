"""A BM25 index: the first stage of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from typing import Annotated, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma._core.text import add_scores, count_texts, list_texts
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.lazy import cached_property
from didyma.model import Saved, Serialisable, State
from didyma.text.features.languages import check_language
from didyma.text.features.lexicon import Lexicon
from didyma.text.features.reading import K1, SAMPLE, B, Reader, language_of

BLOCK = 10_000  # passages whose texts are held at a time

Ranking: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Places of passages and their scores, best first."""


@dataclass(frozen=True, eq=False)
class Postings(Serialisable):
    """Lists of passages, one for each stem of a vocabulary, and how often it occurs in them.

    List r is ``passages[starts[r]:starts[r + 1]]``, in ascending order, with ``counts`` beside it.
    Of V stems the first V lists count content words. A stem that some stop word has too is list
    V + r again, where all words count, for queries that are nothing but stop words.

    Attributes
    ----------
    reader : Reader
        What reads queries, with the vocabulary of the passages that differ.
    starts : array of shape (2 V + 1,), int64
    passages : array, int32
    counts : array, the smallest unsigned integers that do
    lengths : array of shape (n_passages,), int32
        Words of each passage.
    """

    reader: Annotated[Reader, Saved(inline=True)]
    starts: Annotated[NDArray[np.int64], Saved("starts")]
    passages: Annotated[NDArray[np.int32], Saved("entries")]
    counts: Annotated[NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32], Saved("entries")]
    lengths: Annotated[NDArray[np.int32], Saved("passages")]

    @classmethod
    def of(
        cls,
        lexicon: Lexicon,
        reader: Reader,
        terms: NDArray[np.int32],
        begins: NDArray[np.int64],
    ) -> Self:
        """List passages by stem; passage i has the terms ``terms[begins[i]:begins[i + 1]]``."""
        n_stems = len(reader.vocabulary.stem_counts)
        stem, is_stop = lexicon.stem.astype(np.int64), lexicon.is_stop
        is_mixed = np.zeros(n_stems, bool)
        is_mixed[stem[is_stop]] = True
        kinds = np.where(is_stop, -1, stem), np.where(is_mixed[stem], n_stems + stem, -1)
        sizes = np.zeros(2 * n_stems, np.int64)
        for rows in kinds:
            count_texts(terms, rows, begins, sizes)
        starts = _begins(sizes)
        passages = np.empty(starts[-1], np.int32)
        counts = np.empty(starts[-1], np.int32)
        for rows in kinds:
            list_texts(terms, rows, begins, starts, passages, counts)
        smallest: Any = counts.astype(np.min_scalar_type(counts.max(initial=0)))
        return cls(reader, starts, passages, smallest, np.diff(begins).astype(np.int32))

    def _check_state(self) -> None:
        if len(self.starts) != 2 * len(self.reader.vocabulary.stem_counts) + 1:
            raise ValueError("expected two lists for each stem")
        if self.starts[0] != 0 or (np.diff(self.starts) < 0).any() or (self.lengths < 0).any():
            raise ValueError("expected lists one after the other")
        if self.starts[-1] != len(self.passages):
            raise ValueError("expected as many entries as the lists have")

    @cached_property
    def _saturation(self) -> NDArray[np.float64]:
        mean_length = self.reader.vocabulary.mean_length
        return np.asarray(K1 * (1 - B + B * self.lengths / mean_length), np.float64)

    def best(
        self, stems: NDArray[np.int64], idf: NDArray[np.float64], k: int, *, every: bool
    ) -> Ranking:
        """Passages with the k largest sums over stems of idf · tf / (tf + saturation), and these.

        Stop words count only if ``every`` word does.
        """
        rows = stems
        if every:
            other = stems + len(self.starts) // 2
            rows = np.where(self.starts[other + 1] > self.starts[other], other, stems)
        scores = np.zeros(len(self.lengths))
        lists = self.starts, self.passages, self.counts
        places = add_scores(rows, idf, *lists, self._saturation, scores)
        if len(places) and places[0] < 0:
            raise DataError("the index is damaged: it lists passages that there are not")
        sums, n = scores[places], len(places)
        if n > k > 0:
            is_best = sums >= np.partition(sums, n - k)[n - k]
            places, sums = places[is_best], sums[is_best]
        order = np.lexsort((places, -sums))[:k]
        return places[order], sums[order]


class BM25:
    """Passages by the BM25 of their stems, found in an index of all of them.

    The score is the feature ``stem_bm25`` of `SmallFeatures`, whose words are counted over the
    collection: Σ idf · tf / (tf + k1 (1 − b + b length / mean length)) over the distinct stems of
    the query's content words. A query costs as much as the lists of passages that it adds up.

    >>> index = BM25().fit(["A yield expression makes a generator.", "Lists are sorted in place."])
    >>> [(places, scores)] = index.top(["how to sort a list"], 10)
    >>> places.tolist()
    [1]

    Parameters
    ----------
    language : str or None
        Of the stop words and stems, as in `TextFeatures`.
    """

    postings_: Postings

    def __init__(self, language: str | None = "auto") -> None:
        self.language = language

    @property
    def reader_(self) -> Reader:
        """What reads queries."""
        if not hasattr(self, "postings_"):
            raise DataError("there is no index yet: call fit first")
        return self.postings_.reader

    def fit(self, passages: Iterable[str]) -> Self:
        """Index passages, which are read once and not kept; a passage is known by its place."""
        texts = iter(passages)
        first, language = list(islice(texts, SAMPLE)), self.language
        if language == "auto":
            language = language_of([passage for passage in first if isinstance(passage, str)])
        lexicon = Lexicon(check_language(language))
        terms, begins, is_new = _read(chain(first, texts), lexicon)
        # A passage that stood before is found as well, but its words are no more frequent.
        lengths = np.diff(begins)
        distinct = terms[np.repeat(is_new, lengths)], _begins(lengths[is_new])
        reader = Reader(lexicon.vocabulary(*distinct))
        self.postings_ = Postings.of(lexicon, reader, terms, begins)
        return self

    def top(self, queries: Sequence[str], k: int) -> list[Ranking]:
        """For each query places and scores of the k best passages that share a stem, best first.

        Of passages with equal scores the first is better.
        """
        reading = self.reader_.read(Lists.of_texts(queries, [[]] * len(queries)))
        idf, places = reading.stem_idf, reading.lexicon.stem_places
        rankings = []
        for text in reading.queries:
            words = slice(reading.begins[text], reading.ends[text])
            is_stop = reading.is_stop[reading.terms[words]]
            every = bool(is_stop.all())
            stems = np.unique(reading.stems[words][every | ~is_stop])
            stems = stems[places[stems] >= 0]
            stems = stems[np.argsort(places[stems])]  # sums do not depend on the words' order
            rows = places[stems].astype(np.int64)
            rankings.append(self.postings_.best(rows, idf[stems], k, every=every))
        return rankings

    def state(self) -> State:
        """What was indexed, as arrays and plain values."""
        return self.postings_.state()

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The index that has this state; its arrays may be mapped from files."""
        index = cls(values["language"])
        index.postings_ = Postings.from_state(arrays, values)
        return index


def _read(
    passages: Iterator[str], lexicon: Lexicon
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.bool_]]:
    """The terms of all passages, where those of each begin, and whether it is new."""
    terms, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
    is_new: list[bool] = []
    seen: set[bytes] = set()
    while block := list(islice(passages, BLOCK)):
        for passage in block:
            if not isinstance(passage, str):
                raise DataError(f"expected texts, found {passage!r:.40}", field="passages")
            before = len(seen)
            seen.add(blake2b(passage.encode("utf-8", "surrogatepass"), digest_size=16).digest())
            is_new.append(len(seen) > before)
        tokens = lexicon.read(block)
        terms.append(tokens.terms)
        lengths.append(np.diff(tokens.begins))
    return np.concatenate(terms), _begins(np.concatenate(lengths)), np.array(is_new, np.bool_)


def _begins(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])
