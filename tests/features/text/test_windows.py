"""Windows: their features are those of their texts, and they cover a passage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.errors import DataError
from didyma.features.text.extended import ExtendedFeatures
from didyma.features.text.features import TextFeatures
from didyma.features.text.first_stage import FirstStage
from didyma.features.text.small import SmallFeatures
from tests.features.text.reference import written
from tests.features.text.texts import languages, texts


@st.composite
def cases(draw):
    language = draw(languages)
    queries = draw(st.lists(texts(language), min_size=1, max_size=2))
    passages = [draw(st.lists(texts(language), max_size=3)) for _ in queries]
    size = draw(st.integers(1, 5))
    return language, queries, passages, size, draw(st.integers(1, size))


@given(cases())
@settings(deadline=None)
def test_a_window_is_a_passage(case):
    language, queries, passages, size, step = case
    features = TextFeatures([ExtendedFeatures()], language).fit(["x y"], [["x", "y"]])
    found = features.transform_windows(queries, passages, size=size, step=step)
    flat = [(query, passage) for query, part in zip(queries, passages) for passage in part]
    for n, (query, passage) in enumerate(flat):
        mine = found.passage == n
        words = written(passage)
        n_windows = 1 + max(0, -(-(len(words) - size) // step))
        assert mine.sum() == n_windows
        parts = [passage] if n_windows == 1 else [passage[a:b] for a, b in found.spans[mine]]
        assert found.X[mine].tobytes() == features.transform([query], [parts]).tobytes()
        starts = [min(k * step, max(0, len(words) - size)) for k in range(n_windows)]
        cuts = [passage[a:b] for a, b in found.spans[mine]]
        assert [written(text) for text in cuts] == [words[a : a + size] for a in starts]


def test_the_first_stage_ranks_passages_not_windows():
    features = TextFeatures([FirstStage()]).fit(["x"], [["x"]])
    found = features.transform_windows(["x"], [["a b c d", "e", "f"]], [[3, 2, 1]], size=2, step=2)
    assert found.passage.tolist() == [0, 0, 1, 2]
    assert found.X.tolist() == [[3, 1], [3, 1], [2, 1 / 2], [1, 1 / 3]]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=4))
def test_a_passage_is_as_good_as_its_best_window(scores):
    features = TextFeatures([SmallFeatures()]).fit(["x"], [["x"]])
    passages = [" ".join("x" * len(part)) for part in scores]
    found = features.transform_windows(["x"], [passages], size=1, step=1)
    best, window = found.best([score for part in scores for score in part])
    assert best.tolist() == [max(part) for part in scores]
    stops = np.cumsum([0, *map(len, scores)])
    assert window.tolist() == [stops[n] + part.index(max(part)) for n, part in enumerate(scores)]


def test_a_long_document_is_found_by_its_best_window():
    document = "nothing here " * 5000 + "who wrote Emma: Jane Austen " + "nothing there " * 5000
    features = TextFeatures([SmallFeatures()]).fit(["who wrote Emma"], [[document[:500]]])
    found = features.transform_windows(["who wrote Emma"], [[document, "Emma"]])
    _, window = found.best(found.X[:, 0])
    start, stop = found.spans[window[0]]
    assert "Jane Austen" in document[start:stop]


@pytest.mark.parametrize(("size", "step"), [(0, 0), (3, 0), (3, 4), (-1, -1)])
def test_windows_must_meet(size, step):
    features = TextFeatures([SmallFeatures()]).fit(["x"], [["x"]])
    with pytest.raises(DataError, match="expected 0 < step <= size"):
        features.transform_windows(["x"], [["x"]], size=size, step=step)
