"""Windows: their features are those of their texts, and they cover a passage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.text.features.extended import ExtendedFeatures
from didyma.text.features.part import FirstStage
from didyma.text.features.reading import Reader, cut_windows
from didyma.text.features.small import SmallFeatures
from didyma.text.features.union import TextFeatures
from tests.text.features.reference import written
from tests.text.features.texts import languages, texts


@st.composite
def cases(draw):
    language = draw(languages)
    queries = draw(st.lists(texts(language), min_size=1, max_size=2))
    passages = [draw(st.lists(texts(language), max_size=3)) for _ in queries]
    return language, queries, passages, draw(st.integers(1, 5))


@given(cases())
@settings(deadline=None)
def test_a_window_is_a_passage(case):
    language, queries, passages, size = case
    step = (size + 1) // 2
    features = TextFeatures([ExtendedFeatures()], language, size)
    features.fit(Lists.of_texts(["x y"], [["x", "y"]]))
    found = features.windowed(Lists.of_texts(queries, passages))
    flat = [(query, passage) for query, part in zip(queries, passages) for passage in part]
    for n, (query, passage) in enumerate(flat):
        mine = found.item == n
        words = written(passage)
        n_windows = 1 + max(0, -(-(len(words) - size) // step))
        assert mine.sum() == n_windows
        parts = [passage] if n_windows == 1 else [passage[a:b] for a, b in found.spans[mine]]
        expected = features.transform(Lists.of_texts([query], [parts]))
        assert found.X[mine].tobytes() == expected.tobytes()
        starts = [min(k * step, max(0, len(words) - size)) for k in range(n_windows)]
        cuts = [passage[a:b] for a, b in found.spans[mine]]
        assert [written(text) for text in cuts] == [words[a : a + size] for a in starts]


@pytest.mark.parametrize("size", [None, 0, 1.5, True])
def test_a_window_has_a_size(size):
    lists = Lists.of_texts(["a"], [["a b c"]])
    reading = Reader.fit(lists).read(lists)
    with pytest.raises(
        DataError, match=f"^window: expected a whole number from 1 on, found {size}"
    ):
        cut_windows(reading, size)


def test_the_first_stage_ranks_passages_not_windows():
    lists = Lists.of_texts(["x"], [["a b c", "e", "f"]], scores=[[3, 2, 1]])
    found = TextFeatures([FirstStage()], window=2).fit(lists).windowed(lists)
    assert found.item.tolist() == [0, 0, 1, 2]
    assert found.X.tolist() == [[3, 1], [3, 1], [2, 1 / 2], [1, 1 / 3]]


def test_windows_stand_in_the_order_of_rows():
    """Whatever list a row belongs to."""
    features = TextFeatures([SmallFeatures()], window=1)
    apart = Lists(["x y", "y", "z x"], qid=np.array([0, 1, 0]), queries=["x", "y"])
    together = Lists.of_texts(["x", "y"], [["x y", "z x"], ["y"]])
    found, expected = (features.fit(together).windowed(lists) for lists in (apart, together))
    assert found.item.tolist() == [0, 0, 1, 2, 2]
    assert found.X.tolist() == expected.X[[0, 1, 4, 2, 3]].tolist()
    assert found.spans.tolist() == expected.spans[[0, 1, 4, 2, 3]].tolist()
    assert features.transform(apart).tolist() == features.transform(together)[[0, 2, 1]].tolist()


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=4))
def test_a_passage_is_as_good_as_its_best_window(scores):
    features = TextFeatures([SmallFeatures()], window=1).fit(Lists.of_texts(["x"], [["x"]]))
    passages = [" ".join("x" * len(part)) for part in scores]
    found = features.windowed(Lists.of_texts(["x"], [passages]))
    best, window = found.best([score for part in scores for score in part])
    assert best.tolist() == [max(part) for part in scores]
    stops = np.cumsum([0, *map(len, scores)])
    assert window.tolist() == [stops[n] + part.index(max(part)) for n, part in enumerate(scores)]


def test_a_long_document_is_found_by_its_best_window():
    document = "nothing here " * 5000 + "who wrote Emma: Jane Austen " + "nothing there " * 5000
    lists = Lists.of_texts(["who wrote Emma"], [[document, "Emma"]])
    found = TextFeatures([SmallFeatures()], window=200).fit(lists).windowed(lists)
    _, window = found.best(found.X[:, 0])
    start, stop = found.spans[window[0]]
    assert "Jane Austen" in document[start:stop]


def test_a_window_has_words():
    lists = Lists.of_texts(["x"], [["x"]])
    with pytest.raises(DataError, match="window: expected a whole number from 1 on, found 0"):
        TextFeatures([SmallFeatures()], window=0).fit(lists).windowed(lists)
