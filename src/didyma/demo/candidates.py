"""From topics and passages to judged results: first stage, features, and three disjoint parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from didyma.data import Lists
from didyma.demo.corpus import Corpus, Topic
from didyma.errors import DataError
from didyma.features.scaling import QueryStandardScaler
from didyma.features.text import FirstStage, SmallFeatures, TextFeatures
from didyma.features.text.bm25 import BM25

__all__ = ["Candidates", "retrieve", "split"]

DEPTH = 50
PARTS = {"train": 0.4, "dev": 0.2, "test": 0.4}


@dataclass(frozen=True)
class Candidates:
    """The passages that the first stage finds for each topic, judged by membership.

    ``recall`` is the share of a topic's passages that are found, averaged over all topics. Topics
    in ``dropped`` have no candidate that is relevant, or none that is not: nothing to rank.
    """

    data: Lists
    topics: tuple[Topic, ...]
    dropped: tuple[Topic, ...]
    recall: float

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features."""
        assert self.data.feature_names is not None
        return self.data.feature_names


def retrieve(corpus: Corpus, depth: int = DEPTH) -> Candidates:
    """The best ``depth`` passages by BM25 for each title, with lexical features.

    A feature is standardised within each topic, as only differences within one matter.
    """
    names, texts = list(corpus.passages), list(corpus.passages.values())
    found = BM25("english").fit(texts).top([topic.title for topic in corpus.topics], depth)
    kept, dropped, recall = [], [], []
    passages, grades, scores, docid = [], [], [], []
    for topic, (places, values) in zip(corpus.topics, found):
        relevant = [names[place] in topic.passages for place in places]
        recall.append(sum(relevant) / len(topic.passages))
        if not any(relevant) or all(relevant):
            dropped.append(topic)
            continue
        kept.append(topic)
        passages.append([texts[place] for place in places])
        docid.append([names[place] for place in places])
        grades.append(relevant)
        scores.append(values)
    if not kept:
        raise DataError("no topic has candidates that are relevant and others that are not")
    titles = [topic.title for topic in kept]
    lists = Lists.of_texts(titles, passages, grades, scores, docid)
    features = TextFeatures([SmallFeatures(), FirstStage()], "english").fit(lists)
    qid = np.array([topic.name for topic in kept])[lists.groups.codes]
    X = QueryStandardScaler().fit_transform(features.transform(lists), qid=qid)
    data = Lists(X, lists.y, qid, lists.docid, features.names, scores=lists.scores)
    return Candidates(data, tuple(kept), tuple(dropped), float(np.mean(recall)))


def split(data: Lists, random_state: int) -> dict[str, Lists]:
    """Training, development and test data: the queries are shuffled and dealt out by `PARTS`."""
    n_queries = len(data.groups)
    shuffled = np.random.default_rng(random_state).permutation(n_queries)
    bounds = np.round(np.cumsum(list(PARTS.values())) * n_queries).astype(np.int64)
    parts = zip(PARTS, np.split(shuffled, bounds[:-1]))
    return {name: data.select(np.isin(data.groups.codes, queries)) for name, queries in parts}
