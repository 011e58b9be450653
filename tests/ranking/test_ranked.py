"""Rankings as files, which the reader of texts takes again."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from didyma.data.texts import reader as texts
from didyma.data.trec import read_run
from didyma.errors import DataError
from didyma.ranking.ranked import PassageRanking, Ranked, write, write_table

RANKINGS = [
    PassageRanking(
        "q1",
        "who wrote\tEmma?",
        [
            Ranked(1, 0.75, "d1", "Jane\nAusten.", {"year": 1815}, raw=2.5, probability=0.6),
            Ranked(0, 0.25, None, "It is late.", raw=-1.0, probability=0.7),
        ],
    ),
    PassageRanking("q2", "why?", []),
    PassageRanking("q3", "how?", [Ranked(0, 0.5, 7, "So.", raw=0.0, probability=0.2)]),
]


@pytest.mark.parametrize("name", ["ranked.jsonl", "ranked.jsonl.gz"])
def test_json_lines(name: str, tmp_path: Path) -> None:
    write(RANKINGS, tmp_path / name)
    with pytest.warns(UserWarning, match="1 queries without passages"):
        lists = texts.read(tmp_path / name)
    assert lists.queries == ["who wrote\tEmma?", "how?"]
    assert lists.items == ["Jane\nAusten.", "It is late.", "So."]
    assert lists.docid is not None
    assert lists.docid.tolist() == ["d1", "q1-1", "7"]
    assert lists.scores is not None
    assert lists.scores.tolist() == [0.75, 0.25, 0.5]
    if not name.endswith(".gz"):
        first = json.loads((tmp_path / name).read_text().splitlines()[0])
        assert first["passages"][0] == {
            "rank": 1,
            "score": 0.75,
            "probability": 0.6,
            "id": "d1",
            "text": "Jane\nAusten.",
            "year": 1815,
        }


def test_tables(tmp_path: Path) -> None:
    write(RANKINGS, tmp_path / "ranked.tsv")
    lists = texts.read(tmp_path / "ranked.tsv")
    assert lists.queries == ["who wrote Emma?", "how?"]
    assert lists.items == ["Jane Austen.", "It is late.", "So."]
    assert lists.qid.tolist() == ["q1", "q1", "q3"]
    file = io.StringIO()
    write_table(RANKINGS[:1], file, ("rank", "passage"))
    assert file.getvalue() == "rank\tpassage\n1\tJane Austen.\n2\tIt is late.\n"


def test_runs(tmp_path: Path) -> None:
    write(RANKINGS, tmp_path / "ranked.run")
    found = read_run(tmp_path / "ranked.run")
    assert found.qid.tolist() == ["q1", "q1", "q3"]
    assert found.docid.tolist() == ["d1", "q1-1", "7"]
    assert found.score.tolist() == [2.5, -1.0, 0.0]  # by which the order is known
    spaced = [PassageRanking("q 1", "who?", RANKINGS[0].passages)]
    with pytest.raises(DataError, match="without white space"):
        write(spaced, tmp_path / "other.run")
    assert not (tmp_path / "other.run").exists()


def test_cuts() -> None:
    first = RANKINGS[0]
    assert [own.id for own in first.cut(1).passages] == ["d1"]
    assert [own.id for own in first.cut(None, 0.6).passages] == ["d1", None]
    assert [own.id for own in first.cut(None, 0.65).passages] == [None]  # not by the order's scores
    assert first.cut(5, 0.8).passages == []
    unknown = PassageRanking("q", "why?", [Ranked(0, 0.9, text="So.")])
    assert unknown.cut(1).passages == unknown.passages
    with pytest.raises(DataError, match="threshold: expected probabilities"):
        unknown.cut(None, 0.5)


def test_a_ranking_without_probabilities_has_no_column_of_them(tmp_path: Path) -> None:
    unknown = [PassageRanking("q", "why?", [Ranked(0, 0.9, text="So.")])]
    write(unknown, tmp_path / "ranked.tsv")
    assert "probability" not in (tmp_path / "ranked.tsv").read_text()
    write(unknown, tmp_path / "ranked.jsonl")
    assert "probability" not in (tmp_path / "ranked.jsonl").read_text()
