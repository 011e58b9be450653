"""The corpus: parsing of pages, what must hold of any language reference, and candidates."""

from __future__ import annotations

import re

import pytest

from didyma.applications.demo.corpus import (
    Corpus,
    Topic,
    language_reference,
    read_corpus,
    retrieve,
    split,
)
from didyma.errors import DataError
from didyma.text import BM25

LONG = "this paragraph has enough words to be taken as a passage"

PAGE = f"""The "loop" statements
*********************

First, {LONG}.

Inner *things*
==============

Second, {LONG}:

   while True:
       pass

Third.

Other things
============

* Fourth,
  {LONG}.

short

+-------+-------+
| name  | value |
|=======|=======|
| one   | two   |
| three | four  |
| five  | six   |
| seven | eight |
+-------+-------+
"""


def corpus_of(*pages):
    corpus = read_corpus({f"page{place}": page for place, page in enumerate(pages)})
    texts = {
        topic.title: {corpus.passages[name] for name in topic.passages} for topic in corpus.topics
    }
    return corpus, texts


def test_passages_belong_to_every_heading_above_them():
    corpus, texts = corpus_of(PAGE)
    first = f"First, {LONG}."
    second = f"Second, {LONG}: while True: pass"
    fourth = f"Fourth, {LONG}."
    table = "short name value one two three four five six seven eight"
    assert list(corpus.passages.values()) == [first, second, fourth, table]
    assert texts == {
        "The loop statements": {first, second, fourth, table},
        "Inner things": {second},
        "Other things": {fourth, table},
    }


def test_repeated_titles_and_passages_count_once():
    again = f"Inner Thing\n***********\n\nSecond, {LONG}: while True: pass\n\nNew, {LONG}."
    corpus, texts = corpus_of(PAGE, again)
    assert len(corpus.passages) == 5
    assert texts["Inner things"] == {f"Second, {LONG}: while True: pass", f"New, {LONG}."}
    assert "Inner Thing" not in texts


def test_a_line_under_a_sentence_is_no_heading():
    corpus, _ = corpus_of(f"Title\n*****\n\nNo heading\n---\n\n{LONG}\n\n======\n\nAlso, {LONG}")
    assert [topic.title for topic in corpus.topics] == ["Title"]


@pytest.fixture(scope="module")
def reference():
    return language_reference()


def test_the_language_reference_is_large_enough(reference):
    assert len(reference.topics) > 100
    assert len(reference.passages) > 1000


def test_every_topic_has_passages_and_every_passage_a_topic(reference):
    assert all(topic.passages for topic in reference.topics)
    assert set().union(*(topic.passages for topic in reference.topics)) == set(reference.passages)


def test_names_can_stand_in_files(reference):
    names = [topic.name for topic in reference.topics]
    assert len(set(names)) == len(names)
    for name in (*names, *reference.passages):
        assert name
        assert not set(name) & set(" \t\n#:")


def test_passages_are_single_lines_of_text_that_differ(reference):
    texts = list(reference.passages.values())
    assert len(set(texts)) == len(texts)
    for text in texts:
        assert text == " ".join(text.split())
        assert len(re.findall(r"\w+", text)) >= 8


def test_headings_are_not_passages(reference):
    titles = {topic.title for topic in reference.topics}
    assert not titles & set(reference.passages.values())


def test_reading_twice_gives_the_same(reference):
    assert language_reference() == reference


@pytest.fixture(scope="module")
def corpus(reference):
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
    passages = {"p1": "apple tree", "p2": "apple pie", "p3": "plum pie", "p4": "nothing at all"}
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
