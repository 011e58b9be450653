"""Indexes on disk: what is found, what is kept, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import didyma
from didyma.data.array_folder import is_folder
from didyma.data.texts import reader as texts
from didyma.errors import DataError, LeftOutWarning
from didyma.ranking.ranked import Ranking
from didyma.text import BM25
from didyma.text import index as cache
from didyma.text.index import KIND, PassageIndex
from tests.text.texts import made

PASSAGES = [
    {"id": "emma", "text": "Jane Austen wrote Emma.", "year": 1815},
    {"id": "faust", "title": "Faust", "text": "Goethe wrote plays."},
    "It is late.",
]


@pytest.fixture
def index(tmp_path) -> PassageIndex:
    return PassageIndex.build(PASSAGES, tmp_path / "index")


def test_what_is_found(index):
    first, second = index.search("who wrote Emma?")
    assert (first.id, first.text, first.metadata) == ("emma", PASSAGES[0]["text"], {"year": 1815})
    assert first.score == first.raw == first.first_score > second.score > 0
    assert [first.first_rank, second.first_rank] == [1, 2]
    assert second.text == "Faust Goethe wrote plays."
    assert index.search("late")[0].id == "3"
    assert len(index.search("who wrote Emma?", 1)) == 1
    assert index.search("nobody knows") == index.search("") == []
    assert (len(index), index.language) == (3, "english")
    [spans] = index.spans("who writes Emma?", [first.text])
    assert [first.text[span.start : span.stop] for span in spans] == ["Emma"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=8),
    st.text(max_size=30),
    st.integers(1, 9),
)
def test_any_texts_are_found_as_by_bm25(tmp_path, passages, query, k):
    passages = [*passages, "rain"]
    index = PassageIndex.build(passages, tmp_path / "index", language="english")
    [(places, scores)] = BM25("english").fit(passages).top([query], k)
    found = index.search(query, k)
    assert [own.index for own in found] == places.tolist()
    assert [own.score for own in found] == scores.tolist()
    assert [own.text for own in found] == [passages[place] for place in places]
    assert [index.passage(n).text for n in range(len(index))] == passages


@pytest.mark.parametrize("uses_scores", [False, True])
def test_a_reranker_orders_candidates(index, uses_scores):
    lists = made(12)
    if uses_scores:
        lists = didyma.Lists(
            lists.items,
            lists.labels,
            lists.qid,
            queries=lists.queries,
            scores=np.arange(len(lists.labels)),
        )
    reranker = didyma.TextReranker(quick=True).fit(lists)
    assert reranker.uses_scores == uses_scores
    texts = [own.text for own in index.search("who wrote Emma?")]
    scores = [own.score for own in index.search("who wrote Emma?")] if uses_scores else None
    wanted = reranker.rank("who wrote Emma?", texts, 1, scores)
    [found] = index.search("who wrote Emma?", 1, reranker=reranker, explain=True)
    assert (found.text, found.score, found.raw) == (wanted[0].text, wanted[0].score, wanted[0].raw)
    assert found.explanation.raw == pytest.approx(found.raw)
    assert found.first_rank == wanted[0].index + 1
    assert index.search("nobody knows", reranker=reranker) == []


def test_candidates_are_never_fewer_than_answers(index):
    seen = []

    def rank(query, documents, top_k, scores, explain):
        seen.append(len(documents))
        return Ranking()

    reranker = SimpleNamespace(uses_scores=False, rank=rank)
    index.search("who wrote Emma?", 5, reranker=reranker, candidates=1)
    index.search("who wrote Emma?", 1, reranker=reranker, candidates=1)
    assert seen == [2, 1]


def test_mistakes(index, tmp_path):
    for arguments, problem in (
        ((7,), "query: expected a text, found 7"),
        (("a", 0), "k: expected a positive number, found 0"),
        (("a", "x"), "k: expected a positive number, found 'x'"),
    ):
        with pytest.raises(DataError, match=problem):
            index.search(*arguments)
    with pytest.raises(DataError, match="expected each id once, found 'a' again"):
        PassageIndex.build([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], tmp_path / "new")
    with pytest.raises(DataError, match=r"half of a surrogate pair .* in '1'"):
        PassageIndex.build(["rain \ud800"], tmp_path / "new")
    with pytest.raises(DataError, match="has words"):
        PassageIndex.build(["…"], tmp_path / "new")
    with pytest.raises(DataError, match="language"):
        PassageIndex.build(["rain"], tmp_path / "new", language="klingon")
    assert not (tmp_path / "new").exists()
    assert len(PassageIndex.open(tmp_path / "index")) == 3


def test_damage_is_noticed(index, tmp_path):
    texts, offsets = (tmp_path / "index" / name for name in ("passages.jsonl", "offsets.npy"))
    text, contents = texts.read_bytes(), offsets.read_bytes()
    texts.write_bytes(b"x" * len(text))
    with pytest.raises(DataError, match=r"passages.jsonl, line 1: is damaged"):
        index.search("Emma")
    with pytest.raises(DataError, match=r"passages.jsonl: is damaged: its checksum"):
        PassageIndex.open(index.path).verify()
    offsets.write_bytes(contents[:-8] + b"\xff" * 8)
    with pytest.raises(DataError, match=r"index: is damaged"):
        PassageIndex.open(index.path)
    manifest = tmp_path / "index" / "manifest.json"
    record = json.loads(manifest.read_text())
    del record["bm25"]["language"]
    manifest.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"index: is damaged"):
        PassageIndex.open(index.path)


# Texts that are indexed when they are asked


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(cache, "cache_home", lambda: tmp_path / "caches")
    return tmp_path / "caches" / "indexes"


def test_an_index_is_made_once_and_again_for_other_texts(tmp_path, kept):
    folder, counts = tmp_path / "notes", []
    folder.mkdir()
    (folder / "a.txt").write_text("rain")
    first = cache.index_of(folder)
    stamp = (first.path / "manifest.json").stat().st_mtime_ns
    assert first.path.parent == kept
    assert kept.stat().st_mode & 0o777 == 0o700
    assert cache.index_of(folder, callback=counts.append).path == first.path
    assert (first.path / "manifest.json").stat().st_mtime_ns == stamp
    (folder / "b.md").write_text("# Sun\n\nIt shines.")
    assert [own.id for own in cache.index_of(folder).search("sun")] == ["b.md#1"]
    (first.path / "passages.npy").unlink()
    assert len(cache.index_of(folder)) == 2
    assert len(list(kept.iterdir())) == 1
    (folder / "c.pdf").write_text("")
    with pytest.warns(LeftOutWarning, match="left out 1 files"):
        assert len(PassageIndex.build(folder, tmp_path / "index")) == 2
    assert cache.index_of(tmp_path / "index").path == tmp_path / "index"
    assert is_folder(tmp_path / "index", KIND)


# As a first stage


def test_an_index_is_a_first_stage(tmp_path):
    texts_by_id = {f"d{n}": f"rain number {n}{' and' * n} sun{n % 3}" for n in range(9)}
    index = PassageIndex.build(
        [{"id": name, "text": text} for name, text in texts_by_id.items()], tmp_path / "index"
    )
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "queries.tsv").write_text("q1\tsun0\nq2\tsun1\n")
    (folder / "qrels.tsv").write_text("q1 0 d3 1\nq1 0 d1 1\nq2 0 d4 1\n")
    with pytest.warns(LeftOutWarning, match="1 relevant passages that are no candidates"):
        found = texts.read(folder, first_stage=index, depth=3)
    (folder / "corpus.tsv").write_text("".join(f"{n}\t{t}\n" for n, t in texts_by_id.items()))
    with pytest.warns(LeftOutWarning, match="1 relevant passages that are no candidates"):
        wanted = texts.read(folder, first_stage=BM25(), depth=3)
    for name in ("items", "queries"):
        assert getattr(found, name) == getattr(wanted, name)
    for name in ("labels", "scores", "qid", "docid"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
    files = {"queries": folder / "queries.tsv", "qrels": folder / "qrels.tsv"}
    with pytest.warns(LeftOutWarning):
        again = texts.read_files(**files, first_stage=index, depth=3)
    assert again.items == found.items
    with pytest.raises(DataError, match="passages: expected passages, or an index of them"):
        texts.read_files(**files)
    with pytest.raises(DataError, match="expected a folder of queries"):
        texts.read(folder / "queries.tsv", first_stage=index)
