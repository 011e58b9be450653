"""The eight collections that rerankers of texts are tried on, as lists of passages.

Two are files of questions and sentences; the others are folders with queries.tsv, passages.tsv and
qrels.tsv and, where they are given, candidates.tsv and split.tsv. Without candidates they are the
best 50 by BM25 over all passages. Measures are those of the candidates' order, and queries whose
candidates are all relevant, or none, are not counted: no reranker can do anything about them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.texts import qa
from didyma.data.texts import reader as texts
from didyma.errors import LeftOutWarning
from didyma.metrics import evaluate
from didyma.text import BM25

MEASURES = ("AP", "RR", "nDCG@10")
N_CANDIDATES = 50
N_FOLDS = 5

Values = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Collection:
    """Judged lists of passages, and which of them are for training and for testing, by number."""

    lists: Lists
    splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]

    def evaluate(self, tested: Lists, scores: NDArray[np.float64]) -> Values:
        """Values of some lists, query by query."""
        found = evaluate(scores, tested.y, tested.groups, MEASURES, docid=tested.docid)
        return {measure: found[measure][tested.mixed] for measure in MEASURES}

    def first_stage(self, tested: Lists) -> NDArray[np.float64]:
        """BM25 of each passage: the first stage's, or over the candidates of the collection."""
        if tested.scores is not None:
            return tested.scores
        texts = list(dict.fromkeys(self.lists.items))
        index = BM25().fit(texts)
        place = {text: k for k, text in enumerate(texts)}
        scores = np.zeros(len(tested))
        groups = tested.groups
        for number, (places, found) in enumerate(index.top(tested.queries or [], len(texts))):
            known = dict(zip(places.tolist(), found.tolist()))
            for row in groups.rows_of(number).tolist():
                scores[row] = known.get(place[tested.items[row]], 0.0)
        return scores


def folds(n_queries: int, n_folds: int = N_FOLDS) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Training and test queries of each fold."""
    fold = np.random.default_rng(0).permutation(n_queries) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def questions(folder: Path, places: dict[str, str], read: Callable[..., Lists]) -> Collection:
    """Questions and sentences; training and dev questions are for training.

    Test questions are those with right and wrong sentences. Names of sentences are drawn, so that
    their order, which gives the answers away, breaks no tie.
    """
    rng = np.random.default_rng(0)
    asked, passages, labels, docid = [], [], [], []
    parts: dict[str, list[int]] = {"train": [], "dev": [], "test": []}
    for part, place in places.items():
        lists = read(folder / place)
        for number, text in enumerate(lists.queries or []):
            own = lists.select_lists([number])
            if 0 < np.mean(own.y >= 1) < 1:
                parts[part].append(len(asked))
                names = rng.permutation(len(own))
                docid.append([f"{part}-{number}-{name}" for name in names])
                asked.append(text)
                passages.append(own.items)
                labels.append(own.y)
    lists = Lists.of_texts(asked, passages, labels, docid=docid)
    train = np.array(parts["train"] + parts["dev"])
    return Collection(lists, [(train, np.array(parts["test"]))])


def judged(folder: Path) -> Collection:
    """A folder of queries, passages and judgements."""
    candidates: dict[str, Any] = {}
    if not (folder / "candidates.tsv").exists():
        candidates = {"first_stage": BM25(), "depth": N_CANDIDATES}
    lists = texts.read(folder, **candidates)
    splits: list[tuple[Any, Any]] = folds(len(lists.groups))
    if (folder / "split.tsv").exists():
        with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
            tested = texts.read(folder, part="test", **candidates).groups.names
        is_test = np.isin(lists.groups.names, tested)
        splits = [(np.flatnonzero(~is_test), np.flatnonzero(is_test))]
    # The order or score that candidates are given with is no first stage: one of them is drawn.
    return Collection(lists if candidates else replace(lists, scores=None), splits)


TREC_QA = {"train": "train-all.tsv", "dev": "clean-dev", "test": "clean-test"}
WIKIQA = {part: f"{part}.txt" for part in ("train", "dev", "test")}

# Title, whether it is in English, and how it is read.
COLLECTIONS: dict[str, tuple[str, bool, Callable[[Path], Collection]]] = {
    "wikiqa": ("WikiQA", True, lambda data: questions(data / "wikiqa", WIKIQA, qa.read_wikiqa)),
    "trecqa": ("TREC QA", True, lambda data: questions(data / "trecqa", TREC_QA, qa.read_trecqa)),
    "cranfield": ("aerodynamics", True, lambda data: judged(data / "rerank" / "cranfield")),
    "vaswani": ("physics abstracts", True, lambda data: judged(data / "rerank" / "vaswani")),
    "semeval16-a": ("forum comments", True, lambda data: judged(data / "rerank" / "semeval16-a")),
    "insuranceqa-en": (
        *("insurance answers", True),
        lambda data: judged(data / "rerank" / "insuranceqa-en"),
    ),
    "xquadr-de": ("German sentences", False, lambda data: judged(data / "rerank" / "xquadr-de")),
    "xquadr-zh": ("Chinese sentences", False, lambda data: judged(data / "rerank" / "xquadr-zh")),
}
