"""Dense retrieval in an index: against all products, with its encoder and no other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma import PassageIndex
from didyma.errors import DataError
from didyma.text import VectorStore, dense
from didyma.text.encoders import ObjectEncoder, resolve
from tests.text.encoders.models import vectors_of

PASSAGES = ["Jane Austen wrote Emma.", "It is late: go.", "A play a day.", "Oboe and tuba.", "Io"]
QUERY = "who wrote a play?"


@pytest.fixture
def index(tmp_path) -> PassageIndex:
    store = VectorStore(tmp_path / "store")
    return PassageIndex.build(PASSAGES, tmp_path / "index", encoder=vectors_of, store=store)


def test_both_stages_give_exact_scores_and_are_fused(index, monkeypatch):
    monkeypatch.setattr(dense, "BLOCK", 2)
    index.attach(vectors_of)
    encoder = resolve(vectors_of)
    cosines = encoder.encode_documents(PASSAGES) @ encoder.encode_queries([QUERY])[0]
    for k in (1, 2, 10):
        places, scores = index.candidates(QUERY, k)
        np.testing.assert_allclose(scores["dense"], cosines[places], atol=1e-3)
        [(matching, weights)] = index.top([QUERY], 10)
        bm25 = dict(zip(matching.tolist(), weights.tolist()))
        assert scores["bm25"].tolist() == [bm25.get(place, 0.0) for place in places.tolist()]
        stages = [matching[:k].tolist(), np.argsort(-cosines, kind="stable")[:k].tolist()]
        fused = {
            place: sum(1 / (61 + stage.index(place)) for stage in stages if place in stage)
            for stage in stages
            for place in stage
        }
        assert dict(zip(places.tolist(), scores["fused"])) == pytest.approx(fused)
        assert (np.diff(scores["fused"]) <= 0).all()
        assert [own.index for own in index.search(QUERY, k)] == places[:k].tolist()


def test_what_shares_no_word_is_found(index):
    index.attach(vectors_of)
    assert not len(index.top(["uou"], 5)[0][0])
    assert index.search("uou", 3)


def test_vectors_are_kept_and_another_encoder_is_refused(index, tmp_path):
    again = PassageIndex.open(index.path)
    with pytest.raises(DataError, match="made with the encoder vectors_of, which has to be att"):
        again.search(QUERY)
    with pytest.raises(DataError, match="expected the encoder vectors_of of the model, found ano"):
        again.attach(ObjectEncoder(vectors_of, query_prefix="query: "))
    assert again.attach(vectors_of).search(QUERY) == index.attach(vectors_of).search(QUERY)
    again.verify()
    plain = PassageIndex.build(PASSAGES, tmp_path / "plain")
    assert plain.dense is None
    with pytest.raises(DataError, match="has no vectors"):
        plain.attach(vectors_of)


def test_what_was_encoded_once_is_not_encoded_again(tmp_path):
    asked = []

    def encode(texts):
        asked.extend(texts)
        return vectors_of(texts)

    encoder = resolve(encode)
    _ = encoder.fingerprint
    for passages in (PASSAGES, [*PASSAGES, "new"]):
        asked.clear()
        store = tmp_path / "store"
        PassageIndex.build(passages, tmp_path / "index", encoder=encoder, store=store)
    assert asked == ["new"]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20), st.integers(0, 25))
def test_the_largest_come_first(values, k):
    scores = np.array(values, np.float64)
    expected = np.argsort(-scores, kind="stable")[:k]
    assert dense.largest(scores, k).tolist() == expected.tolist()
