"""How much a passage and a query have in common, word by word.

>>> passages = ["A yield expression makes a generator.", "Lists may be sorted in place."]
>>> BM25().fit(passages).top("a sorted list", 1)[0].tolist()
[1]
>>> features = LexicalFeatures().fit(passages)
>>> features.transform("yield expressions", passages).shape == (2, len(features.names))
True
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import log, sqrt
from typing import Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.errors import DataError

__all__ = ["BM25", "FEATURES", "BM25Weight", "Collection", "LexicalFeatures", "terms"]

_WORD = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """The words of a text in lower case, English plurals as singulars.

    >>> terms('The "for" statement: expression lists and __class__')
    ['the', 'for', 'statement', 'expression', 'list', 'and', 'class']
    """
    return [_singular(word) for word in _WORD.findall(text.casefold())]


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


@dataclass(frozen=True, eq=False)
class Collection:
    """What all passages together tell about a term: in how many of them it occurs.

    A term in m of n passages weighs idf = log(1 + (n − m + ½) / (m + ½)): the rarer, the more.
    """

    n_passages: int
    n_with_term: dict[str, int]
    mean_length: float

    @classmethod
    def of(cls, passages: Iterable[Sequence[str]]) -> Self:
        """Count the terms of each passage."""
        n_with_term: Counter[str] = Counter()
        lengths = []
        for passage in passages:
            n_with_term.update(list(dict.fromkeys(passage)))
            lengths.append(len(passage))
        if not any(lengths):
            raise DataError("expected at least one passage that has words")
        return cls(len(lengths), dict(n_with_term), float(np.mean(lengths)))

    def idf(self, term: str) -> float:
        """Weight of a term; one that no passage has weighs most."""
        return self._idf.get(term, self._most)

    @cached_property
    def _idf(self) -> dict[str, float]:
        return {term: self._weigh(m) for term, m in self.n_with_term.items()}

    @cached_property
    def _most(self) -> float:
        return self._weigh(0)

    def _weigh(self, m: int) -> float:
        return log(1 + (self.n_passages - m + 0.5) / (m + 0.5))


@dataclass(frozen=True)
class BM25Weight:
    """What a term adds to the score of a passage that has it tf times, among ``length`` terms.

    It is idf · tf / (tf + k1 · (1 − b + b · length / mean length)).
    """

    collection: Collection
    k1: float = 1.2
    b: float = 0.75

    def __call__(self, term: str, tf: int, length: int) -> float:
        """Weight of a term in a passage."""
        relative = length / self.collection.mean_length
        return self.collection.idf(term) * tf / (tf + self.k1 * (1 - self.b + self.b * relative))


class BM25:
    """A first stage: the passages whose terms, weighed by `BM25Weight`, match a query best.

    Weights are computed once, into a sparse matrix with a row for each term; a query is a sum of
    rows.
    """

    def fit(self, passages: Iterable[str]) -> Self:
        """Index passages; a passage is known by its place."""
        texts = [terms(passage) for passage in passages]
        weight = BM25Weight(Collection.of(texts))
        self.row_ = {term: row for row, term in enumerate(weight.collection.n_with_term)}
        entries = [
            (weight(term, tf, len(text)), self.row_[term], place)
            for place, text in enumerate(texts)
            for term, tf in Counter(text).items()
        ]
        weights, rows, places = zip(*entries)
        self.weights_ = sp.csr_array(
            (weights, (rows, places)), shape=(len(self.row_), len(texts)), dtype=np.float64
        )
        return self

    def scores(self, query: str) -> NDArray[np.float64]:
        """Score of each passage; shape (n_passages,)."""
        rows = [self.row_[term] for term in terms(query) if term in self.row_]
        return np.asarray(self.weights_[rows].sum(axis=0), dtype=np.float64)

    def top(self, query: str, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Places and scores of the k best passages that share a term with the query, best first.

        Of passages with equal scores the first is better.
        """
        scores = self.scores(query)
        found = np.flatnonzero(scores)
        if len(found) > k:
            found = found[scores[found] >= np.partition(scores[found], -k)[-k]]
        best = found[np.argsort(-scores[found], kind="stable")][:k]
        return best, scores[best]


class LexicalFeatures:
    """Features of a (query, passage) pair; `FEATURES` below says what each of them means.

    `fit` learns how rare a term is, `transform` applies to any texts.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(FEATURES)

    def fit(self, passages: Iterable[str]) -> Self:
        """Learn the weights of terms from a collection."""
        self.collection_ = Collection.of(map(terms, passages))
        return self

    def transform(self, query: str, passages: Sequence[str]) -> NDArray[np.float64]:
        """Features of each passage for the query; shape (n_passages, n_features)."""
        asked = _Text(query)
        values = np.zeros((len(passages), len(FEATURES)))
        for row, passage in zip(values, map(_Text, passages)):
            row[:] = [feature(asked, passage, self.collection_) for feature in FEATURES.values()]
        return values


class _Text:
    """A text and its parts."""

    def __init__(self, text: str) -> None:
        self.terms = terms(text)
        self.counts = Counter(self.terms)

    @cached_property
    def bigrams(self) -> set[tuple[str, str]]:
        return set(pairwise(self.terms))

    @cached_property
    def trigrams(self) -> set[tuple[str, str, str]]:
        """Three characters in a row; a space stands before and after each term."""
        text = f" {' '.join(self.terms)} "
        return set(zip(text, text[1:], text[2:]))

    @cached_property
    def first(self) -> dict[str, int]:
        """Place of each term's first occurrence."""
        return {term: place for place, term in reversed(list(enumerate(self.terms)))}


Feature: TypeAlias = Callable[[_Text, _Text, Collection], float]


def bm25(query: _Text, passage: _Text, collection: Collection) -> float:
    """Score of the first stage, `BM25`."""
    weight, length = BM25Weight(collection), len(passage.terms)
    matches = [term for term in query.terms if term in passage.counts]
    return sum(weight(term, passage.counts[term], length) for term in matches)


def tfidf_cosine(query: _Text, passage: _Text, collection: Collection) -> float:
    """Cosine of the vectors with an entry (1 + log tf) · idf for each term."""
    a, b = (
        {term: (1 + log(tf)) * collection.idf(term) for term, tf in text.counts.items()}
        for text in (query, passage)
    )
    product = sum(value * b[term] for term, value in a.items() if term in b)
    return _share(product, sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values())))


def trigram_cosine(query: _Text, passage: _Text, collection: Collection) -> float:
    """Character trigrams of both, over the geometric mean of how many each has."""
    common = len(query.trigrams & passage.trigrams)
    return _share(common, sqrt(len(query.trigrams) * len(passage.trigrams)))


def coverage(query: _Text, passage: _Text, collection: Collection) -> float:
    """Share of the query's distinct terms that the passage has."""
    return _share(len(query.counts.keys() & passage.counts.keys()), len(query.counts))


def idf_coverage(query: _Text, passage: _Text, collection: Collection) -> float:
    """The same, each term counted by its idf."""
    weights = {term: collection.idf(term) for term in query.counts}
    matched = sum(weight for term, weight in weights.items() if term in passage.counts)
    return _share(matched, sum(weights.values()))


def jaccard(query: _Text, passage: _Text, collection: Collection) -> float:
    """Distinct terms of both, as a share of those of either."""
    common = len(query.counts.keys() & passage.counts.keys())
    return _share(common, len(query.counts) + len(passage.counts) - common)


def bigram_coverage(query: _Text, passage: _Text, collection: Collection) -> float:
    """Share of the query's pairs of neighbouring terms that are neighbours in the passage."""
    return _share(len(query.bigrams & passage.bigrams), len(query.bigrams))


def common_subsequence(query: _Text, passage: _Text, collection: Collection) -> float:
    """Length of the longest common subsequence of terms, as a share of the query."""
    # A row of the usual table, as bits: bit i is 0 where its entry i + 1 exceeds entry i by one.
    places: dict[str, int] = {}
    for place, term in enumerate(query.terms):
        places[term] = places.get(term, 0) | 1 << place
    row = every = (1 << len(query.terms)) - 1
    for term in passage.terms:
        match = row & places.get(term, 0)
        row = (row + match | row - match) & every
    return _share(len(query.terms) - row.bit_count(), len(query.terms))


def earliness(query: _Text, passage: _Text, collection: Collection) -> float:
    """1 − place / length of each query term's first occurrence, averaged by idf; 0 if absent."""
    weights = {term: collection.idf(term) for term in query.counts}
    early = sum(
        weight * (1 - passage.first[term] / len(passage.terms))
        for term, weight in weights.items()
        if term in passage.first
    )
    return _share(early, sum(weights.values()))


def proximity(query: _Text, passage: _Text, collection: Collection) -> float:
    """Distinct query terms in the passage, over the length of its shortest part with them all."""
    wanted = query.counts.keys() & passage.counts.keys()
    last: dict[str, int] = {}
    shortest = len(passage.terms)
    for place, term in enumerate(passage.terms):
        if term in wanted:
            last[term] = place
            if len(last) == len(wanted):
                shortest = min(shortest, place + 1 - min(last.values()))
    return _share(len(wanted), shortest)


def length(query: _Text, passage: _Text, collection: Collection) -> float:
    """Logarithm of one more than the number of terms of the passage."""
    return log(1 + len(passage.terms))


FEATURES: dict[str, Feature] = {
    feature.__name__: feature
    for feature in (
        bm25,
        tfidf_cosine,
        trigram_cosine,
        coverage,
        idf_coverage,
        jaccard,
        bigram_coverage,
        common_subsequence,
        earliness,
        proximity,
        length,
    )
}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
