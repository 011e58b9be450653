"""Dense retrieval in an index: against all products, with its encoder and no other."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma import PassageIndex, TextReranker
from didyma.data.texts import reader as texts
from didyma.errors import DataError
from didyma.text import VectorStore, dense
from didyma.text import index as cache
from didyma.text.encoders import ObjectEncoder, resolve
from tests.text.encoders.models import vectors_of
from tests.text.texts import Counting, yes_or_no

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
        places, scores, stages = index.candidates(QUERY, k)
        assert list(stages) == ["bm25", "dense"]
        np.testing.assert_allclose(stages["dense"], cosines[places], atol=1e-3)
        [(matching, weights)] = index.top([QUERY], 10)
        bm25 = dict(zip(matching.tolist(), weights.tolist()))
        assert stages["bm25"].tolist() == [bm25.get(place, 0.0) for place in places.tolist()]
        found = [matching[:k].tolist(), np.argsort(-cosines, kind="stable")[:k].tolist()]
        fused = {
            place: sum(1 / (61 + stage.index(place)) for stage in found if place in stage)
            for stage in found
            for place in stage
        }
        assert dict(zip(places.tolist(), scores)) == pytest.approx(fused)
        assert (np.diff(scores) <= 0).all()
        assert [own.index for own in index.search(QUERY, k)] == places[:k].tolist()


class Neighbours:
    """Stands for `usearch.index.Index`, and looks at all vectors."""

    def __init__(self, ndim, metric, dtype):
        assert (metric, dtype) == ("ip", "f16")
        self.ndim = ndim

    def add(self, keys, vectors):
        self.keys, self.vectors = keys, vectors

    def save(self, path):
        with open(path, "wb") as file:
            np.savez(file, keys=self.keys, vectors=self.vectors)

    @classmethod
    def restore(cls, path, view):
        with np.load(path) as found:
            graph = cls(found["vectors"].shape[1], "ip", "f16")
            graph.add(found["keys"], found["vectors"])
        return graph

    def __len__(self):
        return len(self.keys)

    def search(self, query, count, threads):
        nearest = np.argsort(self.vectors @ query)[::-1][:count]
        return SimpleNamespace(keys=self.keys[nearest].astype(np.uint64))


@pytest.mark.parametrize("package", ["a stand-in", "usearch"])
def test_neighbours_of_many_passages_are_looked_up(package, tmp_path, monkeypatch):
    if package == "usearch":
        pytest.importorskip("usearch", reason="the extra ann is not installed")
    else:
        module = SimpleNamespace(Index=Neighbours)
        monkeypatch.setattr(dense, "is_installed", lambda name: name == "usearch")
        monkeypatch.setitem(sys.modules, "usearch", SimpleNamespace(index=module))
        monkeypatch.setitem(sys.modules, "usearch.index", module)
    passages = [f"Passage {n} of {n % 7} {chr(97 + n % 26) * (n % 5)}." for n in range(200)]
    options = {"encoder": vectors_of, "store": tmp_path / "store"}
    exact = PassageIndex.build(passages, tmp_path / "exact", **options).attach(vectors_of)
    assert not (tmp_path / "exact" / dense.GRAPH).exists()
    monkeypatch.setattr(dense, "EXACT", 199)
    graph = PassageIndex.build(passages, tmp_path / "graph", **options).attach(vectors_of)
    graph.verify()
    assert graph.dense._graph is not None
    assert exact.dense._graph is None
    assert graph.n_bytes > exact.n_bytes
    for query in (QUERY, "Passage 5 of 5", "uou"):
        vector = exact.dense.encode(query)
        own = exact.dense.cosines(vector, graph.dense.nearest(vector, 10))
        best = exact.dense.cosines(vector, exact.dense.nearest(vector, 10))
        np.testing.assert_allclose(own, best, atol=2e-3)  # the same but for equal ones
    monkeypatch.setattr(dense, "is_installed", lambda name: False)
    without = PassageIndex.open(tmp_path / "graph").attach(vectors_of)
    assert without.search(QUERY) == exact.search(QUERY)


def test_a_reranker_is_given_both_stages_and_all_fields(tmp_path):
    """As it was trained: from an index, too."""
    lists = yes_or_no()
    passages = [
        {"id": f"d{n}", "text": text, "clicks": float(n % 4)} for n, text in enumerate(lists.items)
    ]
    index = PassageIndex.build(passages, tmp_path / "i", encoder=Counting(), store=tmp_path / "s")
    index.attach(Counting())
    (tmp_path / "queries.tsv").write_text(
        "".join(f"q{n}\t{query}\n" for n, query in enumerate(lists.queries))
    )
    codes = lists.groups.codes.tolist()
    judged = [f"q{codes[n]} 0 d{n} {int(lists.y[n])}\n" for n in range(len(lists))]
    (tmp_path / "qrels.txt").write_text("".join(judged))
    files = {"queries": tmp_path / "queries.tsv", "qrels": tmp_path / "qrels.txt"}
    read = texts.read_files(**files, first_stage=index, depth=5)
    assert read.scores is None
    assert read.attributes.first_stages == ("bm25", "dense")
    for n, query in enumerate(read.queries):
        rows = read.groups.rows_of(n)
        places, _, stages = index.candidates(query, 5)
        assert read.docid[rows].tolist() == [f"d{place}" for place in places.tolist()]
        for name, scores in stages.items():
            assert read.attributes.signals[name][rows].tolist() == scores.tolist()
        assert read.attributes.signals["clicks"][rows].tolist() == (places % 4.0).tolist()
    reranker = TextReranker(quick=True).fit(read)
    assert {"signal.bm25", "signal.dense", "signal.clicks"} <= {
        order.name for order in reranker.gate_.opponents
    }
    query = read.queries[0]
    places, _, stages = index.candidates(query, 5)
    documents = [
        {**passages[place], "bm25": stages["bm25"][n], "dense": stages["dense"][n]}
        for n, place in enumerate(places.tolist())
    ]
    expected = reranker.rank(query, documents)
    assert expected.notes == ()
    found = index.search(query, 5, reranker=reranker, candidates=5)
    assert [one.id for one in found] == [one.id for one in expected][:5]
    assert [one.raw for one in found] == [one.raw for one in expected][:5]


def test_a_folder_is_indexed_with_vectors_once(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "cache_home", lambda: tmp_path / "caches")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("yes, it sails")
    encoder = Counting()
    first = cache.index_of(tmp_path / "notes", encoder=encoder)
    assert [one.text for one in first.search("does it?")] == ["yes, it sails"]
    encoder.asked.clear()
    again = cache.index_of(tmp_path / "notes", encoder=encoder)
    assert again.path == first.path
    assert "yes, it sails" not in encoder.asked
    plain = cache.index_of(tmp_path / "notes")
    assert plain.dense is None
    assert plain.path != first.path
    other = cache.index_of(tmp_path / "notes", encoder=vectors_of)
    assert other.dense.name == "vectors_of"
    with pytest.raises(DataError, match="another"):
        cache.index_of(first.path, encoder=vectors_of)


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
