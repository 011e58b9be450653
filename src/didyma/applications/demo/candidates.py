"""From topics and passages to lists of candidates: what the first stage finds, judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from didyma import DataError
from didyma.applications.demo.corpus import Corpus, Topic
from didyma.data import Lists
from didyma.text import BM25

DEPTH = 50
PARTS = {"train": 0.6, "test": 0.4}


@dataclass(frozen=True)
class Candidates:
    """The passages that the first stage finds for each topic, judged by membership.

    ``recall`` is the share of a topic's passages that are found, averaged over all topics. Topics
    in ``dropped`` have no candidate that is relevant, or none that is not: nothing to rank.
    """

    lists: Lists
    topics: tuple[Topic, ...]
    dropped: tuple[Topic, ...]
    recall: float


def retrieve(corpus: Corpus, depth: int = DEPTH) -> Candidates:
    """The best ``depth`` passages by BM25 for each title."""
    names, texts = list(corpus.passages), list(corpus.passages.values())
    best = BM25().fit(texts).top([topic.title for topic in corpus.topics], depth)
    found = [[names[place] for place in places] for places, _ in best]
    judged = [[name in topic.passages for name in own] for topic, own in zip(corpus.topics, found)]
    recall = [sum(own) / len(topic.passages) for topic, own in zip(corpus.topics, judged)]
    kept = [n for n, own in enumerate(judged) if any(own) and not all(own)]
    if not kept:
        raise DataError("no topic has candidates that are relevant and others that are not")
    topics = tuple(corpus.topics[n] for n in kept)
    lists = Lists(
        [corpus.passages[name] for n in kept for name in found[n]],
        np.array([value for n in kept for value in judged[n]], dtype=np.float64),
        np.repeat([topic.name for topic in topics], [len(found[n]) for n in kept]),
        np.array([name for n in kept for name in found[n]]),
        queries=[topic.title for topic in topics],
        scores=np.concatenate([best[n][1] for n in kept]),
    )
    dropped = tuple(topic for topic in corpus.topics if topic not in topics)
    return Candidates(lists, topics, dropped, float(np.mean(recall)))


def split(lists: Lists, random_state: int) -> dict[str, Lists]:
    """Lists to learn from and lists to test on: they are shuffled and dealt out by `PARTS`."""
    n_queries = len(lists.groups)
    shuffled = np.random.default_rng(random_state).permutation(n_queries)
    bounds = np.round(np.cumsum(list(PARTS.values())) * n_queries).astype(np.int64)
    parts = zip(PARTS, np.split(shuffled, bounds[:-1]))
    return {name: lists.select_lists(np.sort(numbers)) for name, numbers in parts}
