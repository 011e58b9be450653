"""Matched spans: the words of a passage that its query has."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma import Lists
from didyma.ranking.explanation import MatchedSpan
from didyma.text.features.reading import Reader
from didyma.text.spans import matched_spans
from tests.text.features.texts import languages, texts


def spans(query, passage, language="english", **kwargs):
    reader = Reader.fit(Lists.of_texts([query], [[passage, "something else"]]), language)
    return matched_spans(reader.read(Lists.of_texts([query], [[passage]])), 0, **kwargs)


def test_words_and_stems():
    passage = "Flows over the Wings; the flow, a wing."
    found = spans("the flow over a wing", passage)
    assert [passage[span.start : span.stop] for span in found] == ["Flows", "Wings", "flow", "wing"]
    assert [span.kind for span in found] == ["stem", "stem", "word", "word"]
    assert [span.matched for span in found] == [("flow",), ("wing",), ("flow",), ("wing",)]


def test_stop_words_match_where_there_is_nothing_else():
    assert [span.matched for span in spans("to be or not to be", "It is not to be.")]
    assert spans("the flow", "the end") == []


@pytest.mark.parametrize(
    ("query", "passage", "language", "expected"),
    [
        # Combining marks belong to their letters, whether composed or not.
        ("cafe\u0301", "Le caf\u00e9 noir", "french", ["caf\u00e9"]),
        ("caf\u00e9", "Le cafe\u0301 noir", "french", ["cafe\u0301"]),
        ("किताब", "यह किताब है", "hindi", ["किताब"]),
        ("كتاب", "هذا كِتَاب جديد", "arabic", ["كِتَاب"]),
        # Scripts without spaces are read in pairs, and pairs that overlap are one span.
        ("北京大学", "我在北京大学学习", None, ["北京大学"]),
        ("北京", "从北京到东京", None, ["北京"]),
        # What is no word counts as a place, in code points.
        ("moon", "🌒👩‍🚀 the moon 🌕", "english", ["moon"]),
        ("Straße", "Die STRASSE 🇩🇪 und die Straße", "german", ["STRASSE", "Straße"]),
        ("42", "٤٢ and 42", "english", ["٤٢", "42"]),
    ],
)
def test_spans_in_many_scripts(query, passage, language, expected):
    found = spans(query, passage, language)
    assert [passage[span.start : span.stop] for span in found] == expected
    assert all(span.kind == "word" for span in found)


def test_a_merged_span_names_all_that_it_matched():
    (found,) = spans("北京大学", "北京大学", None)
    assert found == MatchedSpan(0, 4, ("北京", "京大", "大学"), "word")


def test_a_window_restricts_the_search():
    passage = "flow and flow and flow"
    assert [s.start for s in spans("flow", passage, window=(9, 22))] == [9, 18]
    assert [s.start for s in spans("flow", passage, window=(10, 21))] == []


@given(st.data())
def test_spans_are_ascending_words_of_the_query(data):
    language = data.draw(languages)
    query, passage = data.draw(texts(language)), data.draw(texts(language))
    reader = Reader.fit(Lists.of_texts([query], [[passage, "word"]]), language)
    before = passage
    reading = reader.read(Lists.of_texts([query, "word"], [["word", passage], [passage]]))
    found = matched_spans(reading, 1)
    assert passage == before
    places = [place for span in found for place in (span.start, span.stop)]
    assert places == sorted(set(places))  # none is empty, none touches another
    assert all(0 <= place <= len(passage) for place in places)
    for span in found:
        assert all(word in query for word in span.matched)
        # A span neither begins with a mark nor cuts a word: what is outside is no mark of it.
        assert not unicodedata.category(passage[span.start]).startswith("M")
        if span.stop < len(passage):
            assert not unicodedata.category(passage[span.stop]).startswith("M")
    # By the definition: words of the passage with the stem of a content word of the query.
    lexicon = reading.lexicon

    def stems(text):
        tokens = lexicon.read([text])
        terms = tokens.terms
        return list(zip(tokens.starts, tokens.stops, lexicon.is_stop[terms], lexicon.stem[terms]))

    asked = stems(query)
    wanted = {stem for *_, stop, stem in asked if not stop} or {stem for *_, stem in asked}
    covered = {
        n for start, stop, _, stem in stems(passage) if stem in wanted for n in range(start, stop)
    }
    assert covered == {n for span in found for n in range(span.start, span.stop)}
