"""The retrieval functions of Yue et al. (2007), Tables 6 and 9: five formulas over three indices.

The paper takes them from Indri with its defaults, over a web corpus that is not free; it prints
neither formulas nor constants. Here they are formulas over the abstracts of Cranfield and Vaswani,
and each gives a run of its best documents.
With tf and qtf how often a term is in a document and in the query, of N documents df having it:

    cosine          cos of (1 + log tf) idf and (1 + log qtf) idf
    tf-idf          Σ qtf · k tf / (tf + k a) · idf²,                         k = 1,   b = 0.3
    Okapi           Σ (k₃ + 1) qtf / (k₃ + qtf) · (k + 1) tf / (tf + k a) · rsj, k = 1.2, b = 0.75
    Dirichlet       Σ qtf log(1 + tf / (μ p)) + |q| log(μ / (|d| + μ)),       μ = 1000
    Jelinek-Mercer  Σ qtf log(1 + (1 − λ) tf / (λ |d| p)),                    λ = 0.5

where a = 1 − b + b |d| / mean |d|, idf = log(N / df), rsj = log((N − df + ½) / (df + ½)), k₃ = 7,
and p is the share of the term in the collection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from didyma.data import trec
from didyma.text.features.languages import stems_of, stop_words
from reproductions.svmmap_models import Model, Vector
from reproductions.svmmap_trials import N_TOPICS, Collection, run_settings

COLLECTIONS = {"cranfield": "aerodynamics", "vaswani": "physics abstracts"}
DEPTH = 1000  # documents of a run
GRAM = 4  # characters

Analyzer = Callable[[str], list[str]]


def words(text: str) -> list[str]:
    """Runs of letters and digits, in small letters."""
    return re.findall(r"\w+", text.lower())


def stems(text: str) -> list[str]:
    """Stems of the words."""
    return stems_of(words(text), "english")


def content_stems(text: str) -> list[str]:
    """Stems of the words that are no stop words."""
    return stems_of([word for word in words(text) if word not in stop_words("english")], "english")


def grams(text: str) -> list[str]:
    """Four characters in a row, within words; a shorter word is one of them."""
    return [
        word[start : start + GRAM]
        for word in words(text)
        for start in range(max(1, len(word) - GRAM + 1))
    ]


# Indices of each setting: those of the paper, and its third replaced by n-grams.
SETTINGS: Mapping[str, Mapping[str, Analyzer]] = {
    "Words, stems, stems without stop words": {
        "words": words,
        "stems": stems,
        "content": content_stems,
    },
    "Words, stems, 4-grams": {"words": words, "stems": stems, "4-grams": grams},
}


class Index:
    """Counts of terms in documents and queries, and the five functions over them."""

    def __init__(
        self, analyzer: Analyzer, documents: Sequence[str], queries: Sequence[str]
    ) -> None:
        counter = CountVectorizer(analyzer=analyzer)
        self.tf = sp.csr_array(counter.fit_transform(documents).astype(np.float64))
        self.qtf = sp.csr_array(counter.transform(queries).astype(np.float64))
        self.df = np.diff(sp.csc_array(self.tf).indptr)
        self.sizes = np.asarray(self.tf.sum(axis=1))
        self.share = np.asarray(self.tf.sum(axis=0)) / self.sizes.sum()
        self.idf = np.log(self.tf.shape[0] / self.df)

    def functions(self) -> dict[str, Vector]:
        """Scores of all documents for all queries, (queries, documents), by function."""
        return {
            "cosine": self.cosine(),
            "tf-idf": self.tf_idf(),
            "Okapi": self.okapi(),
            "Dirichlet": self.dirichlet(),
            "Jelinek-Mercer": self.jelinek_mercer(),
        }

    def cosine(self) -> Vector:
        """The cosine of logarithmic counts."""
        document, query = (_unit(_each(tf, 1.0 + np.log(tf.data), self.idf)) for tf in self._both)
        return _product(query, document)

    def tf_idf(self, k: float = 1.0, b: float = 0.3) -> Vector:
        """Saturated counts and idf²."""
        return _product(self.qtf, _each(self.tf, k * self._saturated(k, b), self.idf**2))

    def okapi(self, k: float = 1.2, b: float = 0.75, k3: float = 7.0) -> Vector:
        """BM25."""
        n = self.tf.shape[0]
        rsj = np.log((n - self.df + 0.5) / (self.df + 0.5))
        query = _each(self.qtf, (k3 + 1.0) * self.qtf.data / (k3 + self.qtf.data))
        return _product(query, _each(self.tf, (k + 1.0) * self._saturated(k, b), rsj))

    def dirichlet(self, mu: float = 1000.0) -> Vector:
        """Query likelihood under a language model with a Dirichlet prior."""
        document = _each(self.tf, np.log1p(self.tf.data / (mu * self.share[self.tf.indices])))
        length = np.asarray(self.qtf.sum(axis=1))
        return _product(self.qtf, document) + np.outer(length, np.log(mu / (self.sizes + mu)))

    def jelinek_mercer(self, share: float = 0.5) -> Vector:
        """Query likelihood under a mixture of the document's model and the collection's."""
        odds = (1.0 - share) / share * self.tf.data / self._row_sizes
        return _product(self.qtf, _each(self.tf, np.log1p(odds / self.share[self.tf.indices])))

    @property
    def _both(self) -> tuple[Any, Any]:
        return self.tf, self.qtf

    @property
    def _row_sizes(self) -> Vector:
        """The length of the document of each entry."""
        return np.repeat(self.sizes, np.diff(self.tf.indptr))

    def _saturated(self, k: float, b: float) -> Vector:
        """Counts that saturate: tf / (tf + k (1 − b + b |d| / mean |d|)) of each entry."""
        tf = self.tf.data
        return tf / (tf + k * (1.0 - b + b * self._row_sizes / self.sizes.mean()))


def _each(counts: Any, values: Vector, of_term: Vector | None = None) -> Any:
    """The matrix of the counts' places with other values, times a weight of each term."""
    weight = 1.0 if of_term is None else of_term[counts.indices]
    return sp.csr_array((values * weight, counts.indices, counts.indptr), shape=counts.shape)


def _unit(rows: Any) -> Any:
    """Rows of length 1; those of length 0 stay."""
    norms = np.sqrt(np.asarray((rows * rows).sum(axis=1)))
    return sp.diags_array(1.0 / np.where(norms > 0, norms, 1.0)) @ rows


def _product(query: Any, document: Any) -> Vector:
    return np.asarray((query @ document.T).toarray())


def make_run(
    tag: str, scores: Vector, has_term: NDArray[np.bool_], qid: Any, docid: Any
) -> trec.Run:
    """The best documents of each query among those that have a term of it."""
    found = []
    for number, (row, mask) in enumerate(zip(scores, has_term)):
        candidates = np.flatnonzero(mask)
        best = candidates[np.argsort(-row[candidates], kind="stable")[:DEPTH]]
        found.append((np.full(len(best), number), best))
    queries, documents = (np.concatenate(part) for part in zip(*found))
    return trec.Run(qid[queries], docid[documents], scores[queries, documents], tag)


def read_collections(
    folder: Path, analyzers: Mapping[str, Analyzer], seed: int
) -> list[Collection]:
    """Fifty drawn queries of each collection with the runs of all functions."""
    collections = []
    for part, title in COLLECTIONS.items():
        qid, queries = _columns(folder / part / "queries.tsv")
        docid, documents = _columns(folder / part / "passages.tsv")
        drawn = np.random.default_rng(seed).permutation(len(qid))[:N_TOPICS]
        qrels = _qrels(folder / part / "qrels.tsv", qid[drawn])
        runs = []
        for name, analyzer in analyzers.items():
            index = Index(analyzer, documents.tolist(), queries[drawn].tolist())
            has_term = _product(index.qtf, index.tf) > 0
            for function, scores in index.functions().items():
                tag = f"{function}, {name}"
                runs.append(make_run(tag, scores, has_term, qid[drawn], docid))
        collections.append(Collection.join(title, runs, qrels))
    return collections


def _columns(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    names, texts = zip(*(line.split("\t", 1) for line in lines))
    return np.array(names), np.array(texts, dtype=object)


def _qrels(path: Path, drawn: NDArray[Any]) -> trec.Qrels:
    """Judgements of the drawn queries."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    qid, docid, relevance = (np.array(column) for column in zip(*rows))
    mask = np.isin(qid, drawn)
    return trec.Qrels(qid[mask], docid[mask], relevance[mask].astype(np.int64))


def reproduce_functions(
    folder: Path, models: Sequence[Model], n_trials: int, seed: int
) -> dict[str, Any]:
    """Both collections with the functions of each setting."""
    settings = [
        (title, [(collection, None) for collection in read_collections(folder, analyzers, seed)])
        for title, analyzers in SETTINGS.items()
    ]
    return run_settings(settings, models, n_trials, seed)
