"""A BM25 index: the first stage of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.ranking.featuriser import State
from didyma.text.features.languages import check_language
from didyma.text.features.lexicon import Lexicon
from didyma.text.features.postings import Postings
from didyma.text.features.reading import SAMPLE, Reader, language_of
from didyma.text.features.vocabulary import Vocabulary

BLOCK = 10_000  # passages whose texts are held at a time
LISTS = ("starts", "passages", "counts", "lengths")


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

    reader_: Reader
    postings_: Postings

    def __init__(self, language: str | None = "auto") -> None:
        self.language = language

    def fit(self, passages: Iterable[str]) -> Self:
        """Index passages, which are read once and not kept; a passage is known by its place."""
        texts = iter(passages)
        first, language = list(islice(texts, SAMPLE)), self.language
        if language == "auto":
            language = language_of([passage for passage in first if isinstance(passage, str)])
        language = check_language(language)
        lexicon = Lexicon(language)
        terms, begins, is_new = _read(chain(first, texts), lexicon)
        # A passage that stood before is found as well, but its words are no more frequent.
        lengths = np.diff(begins)
        distinct = terms[np.repeat(is_new, lengths)], _begins(lengths[is_new])
        vocabulary = Vocabulary.of(lexicon, *distinct)
        self.reader_ = Reader(language, vocabulary)
        self.postings_ = Postings.of(lexicon, vocabulary, terms, begins)
        return self

    def top(
        self, queries: Sequence[str], k: int
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each query places and scores of the k best passages that share a stem, best first.

        Of passages with equal scores the first is better.
        """
        if not hasattr(self, "reader_"):
            raise DataError("there is no index yet: call fit first")
        reading = self.reader_.read(Lists.of_texts(queries, [[]] * len(queries)))
        idf, places = reading.stem_idf, reading.lexicon.stem_places
        rankings = []
        for text in reading.queries:
            words = slice(reading.begins[text], reading.ends[text])
            is_stop = reading.is_stop[reading.terms[words]]
            every = bool(is_stop.all())
            stems = np.array(sorted(set(reading.stems[words][every | ~is_stop].tolist())), np.int64)
            met = stems[places[stems] >= 0]
            met = met[np.argsort(places[met])]  # so that sums do not depend on the words' order
            rankings.append(
                self.postings_.best(places[met].astype(np.int64), idf[met], k, every=every)
            )
        return rankings

    def state(self) -> State:
        """What was indexed, as arrays and plain values."""
        arrays, values = self.reader_.state()
        return {**arrays, **{name: getattr(self.postings_, name) for name in LISTS}}, values

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The index that has this state; its arrays may be mapped from files."""
        found = cls(values["language"])
        words = {name: array for name, array in arrays.items() if name not in LISTS}
        found.reader_ = Reader.from_state(words, values)
        vocabulary = found.reader_.vocabulary
        lists = {name: arrays[name] for name in LISTS}
        found.postings_ = Postings(**lists, mean_length=vocabulary.mean_length)
        found.postings_.check(len(vocabulary.stems.counts))
        return found


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
