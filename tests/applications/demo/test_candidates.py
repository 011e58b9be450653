"""Candidates are judged results of the first stage; their parts do not overlap."""

from __future__ import annotations

import pytest

from didyma.applications.demo.candidates import retrieve, split
from didyma.applications.demo.corpus import Corpus, Topic, language_reference
from didyma.errors import DataError
from didyma.text import BM25


@pytest.fixture(scope="module")
def corpus():
    reference = language_reference()
    return Corpus(reference.topics[:30], reference.passages)


@pytest.fixture(scope="module")
def candidates(corpus):
    return retrieve(corpus, depth=20)


def test_each_topic_is_kept_or_dropped_and_counted(corpus, candidates):
    kept = {topic.name for topic in candidates.topics}
    assert kept == set(candidates.lists.qid)
    assert len(candidates.topics) + len(candidates.dropped) == len(corpus.topics)
    assert not kept & {topic.name for topic in candidates.dropped}


def test_each_kept_topic_has_relevant_candidates_and_others(candidates):
    data = candidates.lists
    for name in data.groups.names:
        assert set(data.y[data.qid == name]) == {0.0, 1.0}


def test_rows_are_the_first_stage_and_grades_are_membership(corpus, candidates):
    data = candidates.lists
    names = list(corpus.passages)
    index = BM25().fit(corpus.passages.values())
    for topic in candidates.topics:
        rows = data.qid == topic.name
        assert data.docid[rows].tolist() == [names[i] for i in index.top([topic.title], 20)[0][0]]
        assert [name in topic.passages for name in data.docid[rows]] == data.y[rows].tolist()


def test_recall_is_the_mean_share_of_passages_found():
    passages = {
        "p1": "apple tree",
        "p2": "apple pie",
        "p3": "plum pie",
        "p4": "nothing at all",
    }
    topics = (
        Topic("apple", "Apple", frozenset({"p1", "p4"})),
        Topic("plum", "Plum", frozenset({"p3"})),
        Topic("pear", "Pear", frozenset({"p4"})),
    )
    found = retrieve(Corpus(topics, passages))
    assert found.recall == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert [topic.name for topic in found.topics] == ["apple"]
    assert [topic.name for topic in found.dropped] == ["plum", "pear"]


def test_nothing_to_rank_is_refused():
    corpus = Corpus((Topic("plum", "Plum", frozenset({"p1"})),), {"p1": "plum pie"})
    with pytest.raises(DataError, match="no topic has candidates"):
        retrieve(corpus)


def test_parts_share_no_topic_and_lose_none(candidates):
    parts = split(candidates.lists, random_state=3)
    topics = {name: set(part.qid) for name, part in parts.items()}
    assert not topics["train"] & topics["test"]
    assert sum(map(len, parts.values())) == len(candidates.lists)
    assert len(topics["train"]) == pytest.approx(3 * len(candidates.topics) / 5, abs=1)


def test_the_seed_alone_decides_the_split(candidates):
    first, again, other = (split(candidates.lists, random_state=seed) for seed in (0, 0, 1))
    assert first["test"].qid.tolist() == again["test"].qid.tolist()
    assert first["test"].qid.tolist() != other["test"].qid.tolist()
