"""The corpus: parsing of pages, and what must hold of any Python's language reference."""

from __future__ import annotations

import re

import pytest

from didyma.applications.demo.corpus import language_reference, read_corpus

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
