"""BM25 as a first stage: the same scores as the feature, the best passages in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma._core.text import set_hash_bits
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.text import BM25
from didyma.text.features import SmallFeatures
from didyma.text.features.reading import Reader

WORDS = ["the", "does", "do", "doing", "lists", "list", "sorted", "sort", "of", "北京市", "rain"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)


@given(st.lists(TEXTS, min_size=1, max_size=12), st.lists(TEXTS, min_size=1, max_size=4))
def test_scores_are_the_feature(passages: list[str], queries: list[str]) -> None:
    passages = [*passages, "rain"]  # some word there must be
    index = BM25("english").fit(passages)
    reader = Reader.fit(Lists.of_texts([""], [passages]), "english")
    reading = reader.read(Lists.of_texts(queries, [passages] * len(queries)))
    column = SmallFeatures().columns(reading)[:, SmallFeatures().names.index("stem_bm25")]
    for (places, scores), wanted in zip(
        index.top(queries, len(passages)), column.reshape(len(queries), -1), strict=True
    ):
        assert set(places) == set(np.flatnonzero(wanted))
        np.testing.assert_allclose(scores, wanted[places], rtol=1e-12)
        order = sorted(range(len(places)), key=lambda k: (-scores[k], places[k]))
        assert order == list(range(len(places)))


@given(st.lists(TEXTS, min_size=1, max_size=12), TEXTS, st.integers(1, 5))
def test_a_cut_keeps_the_first(passages: list[str], query: str, k: int) -> None:
    index = BM25("english").fit([*passages, "rain"])
    (places, scores), (every, all_scores) = (index.top([query], n)[0] for n in (k, 99))
    assert places.tolist() == every[:k].tolist()
    assert scores.tolist() == all_scores[:k].tolist()


@given(st.lists(TEXTS, min_size=1, max_size=12), TEXTS, st.integers(0, 3))
def test_words_are_told_apart_by_their_characters(
    passages: list[str], query: str, bits: int
) -> None:
    def found() -> list[bytes]:
        index = BM25("english").fit([*passages, "rain"])
        return [part.tobytes() for part in index.top([query], 99)[0]]

    expected = found()
    set_hash_bits(bits)
    try:
        assert found() == expected
    finally:
        set_hash_bits(32)


def test_scripts_without_spaces() -> None:
    index = BM25().fit(["北京是中国的首都。", "上海在海边。"])
    assert index.top(["中国首都"], 5)[0][0].tolist() == [0]


def test_mistakes() -> None:
    with pytest.raises(DataError, match="fit first"):
        BM25().top(["rain"], 1)
    with pytest.raises(DataError, match="has words"):
        BM25().fit(["…"])
    assert BM25().fit(["rain"]).top([""], 1)[0][0].tolist() == []


@given(st.lists(TEXTS, min_size=1, max_size=12), st.lists(TEXTS, min_size=1, max_size=4))
def test_a_state_answers_as_the_index_did(passages: list[str], queries: list[str]) -> None:
    index = BM25("english").fit([*passages, "rain"])
    again = BM25.from_state(*index.state())
    for found, wanted in zip(again.top(queries, 5), index.top(queries, 5), strict=True):
        assert [part.tolist() for part in found] == [part.tolist() for part in wanted]


def test_damaged_states_are_refused() -> None:
    arrays, values = BM25("english").fit(["rain and rain", "sun and rain", "and"]).state()
    for name, wrong in (
        ("starts", arrays["starts"][:-1]),
        ("starts", arrays["starts"][::-1].copy()),
        ("passages", arrays["passages"][:-1]),
        ("passages", arrays["passages"].astype(np.int64)),
        ("counts", arrays["counts"].astype(np.int8)),
        ("lengths", -1 - arrays["lengths"]),
    ):
        with pytest.raises(ValueError):
            BM25.from_state({**arrays, name: wrong}, values)
    for wrong in (-1, 3):
        damaged = BM25.from_state({**arrays, "passages": arrays["passages"] * 0 + wrong}, values)
        with pytest.raises(DataError, match="damaged"):
            damaged.top(["rain"], 5)


def test_passages_are_texts_and_may_be_a_stream() -> None:
    assert BM25().fit(iter(["rain", "rain", "sun"])).top(["rain"], 5)[0][0].tolist() == [0, 1]
    with pytest.raises(DataError, match="passages: expected texts, found 7"):
        BM25().fit(["rain", 7])  # type: ignore[list-item]
