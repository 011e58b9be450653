"""Tables of texts: TSV without quotes, CSV with them, Parquet and data frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.data.texts import reader as texts
from didyma.errors import DataError, LeftOutWarning
from tests.data.texts.test_json_lines import contents

COLUMNS = {
    "query": ["who?", "who?", 'say "why"?'],
    "passage": ["a, b", '"b" is', "c"],
    "label": [1, 0, 2],
    "score": [2.5, 1.0, 0.0],
    "docid": ["d1", "d2", "d1"],
}
WANTED = {
    "who?": [("a, b", 1.0, 2.5, "d1"), ('"b" is', 0.0, 1.0, "d2")],
    'say "why"?': [("c", 2.0, 0.0, "d1")],
}


def test_tabs_know_no_quotes(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    rows = ["\t".join(COLUMNS), *("\t".join(map(str, row)) for row in zip(*COLUMNS.values()))]
    path.write_text("\n".join(rows) + "\n")
    assert contents(texts.read(path)) == WANTED
    long = "\n".join([rows[0], *rows[1:] * 30_000])  # so large that compiled code reads it
    path.write_text(long + "\n")
    lists = texts.read(path)
    assert len(lists) == 90_000
    assert lists.items[:2] == COLUMNS["passage"][:2]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "lazy", "csv", "parquet"])
def test_data_frames(kind: str, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame: Any = polars.DataFrame(COLUMNS)
    if kind in ("csv", "parquet"):
        path = tmp_path / f"data.{kind}"
        frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
        assert contents(texts.read(path)) == WANTED
        return
    if kind == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(COLUMNS)
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(COLUMNS)
    elif kind == "lazy":
        frame = frame.lazy()
    assert contents(texts.from_frame(frame)) == WANTED


def test_columns_by_other_names(tmp_path: Path) -> None:
    path = tmp_path / "wiki.tsv"
    path.write_text(
        "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
        "Q1\twho ?\tD1\tEmma\tD1-0\tAda .\t1\nQ1\twho ?\tD1\tEmma\tD1-1\tNobody .\t0\n"
    )
    with pytest.warns(LeftOutWarning, match=r"DocumentTitle \(the same in all documents\)"):
        lists = texts.read(path)
    assert contents(lists) == {
        "who ?": [("Ada .", 1.0, None, "D1-0"), ("Nobody .", 0.0, None, "D1-1")]
    }
    assert lists.qid.tolist() == ["Q1", "Q1"]
    path.write_text("frage\tsatz\tnote\nwer?\tAda.\t1\n")
    lists = texts.read(path, query="frage", passage="satz", label="note")
    assert contents(lists) == {"wer?": [("Ada.", 1.0, None, None)]}


@pytest.mark.parametrize(
    ("name", "table", "problem"),
    [
        ("a.csv", "query,label\nwho?,1\n", r"a\.csv, line 1: expected a column 'passage' among"),
        ("a.csv", "query,text,label\nwho?,a,x\n", r"line 2, label: expected a finite number"),
        ("a.csv", "query,text,label\nwho?,a\n", r"line 2: expected 3 fields, found 2"),
        ("a.csv", "query,text,qid\nwho?,a,1\nwhy?,b,1\n", r"line 3, query: .* before"),
        ("a.tsv", "query\ttext\tlabel\nwho?\ta\n", r"line 2: expected 3 fields, found 2"),
        ("a.tsv", "query\ttext\n", r"a\.tsv: expected at least one row"),
        ("a.tsv", "a\tb\n", r"a\.tsv, line 1: expected JSON lines, a table"),
        ("a.tsv", "", r"a\.tsv: expected JSON lines, a table .* found an empty file"),
        ("a.tsv", "\n \n", r"a\.tsv: expected JSON lines, a table .* found an empty file"),
        ("a.parquet", "nothing", r"a\.parquet: not a readable Parquet file"),
    ],
)
def test_mistakes_are_named(name: str, table: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(table)
    with pytest.raises(DataError, match=problem):
        texts.read(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"passage": ["a", None, "c"]}, "passage: expected text, found none in row 2"),
        ({"passage": [1, 2, 3]}, "passage: expected a text, found 1 in row 1"),
        ({"label": [1.0, np.nan, 0.0]}, "label: expected a finite number, found nan in row 2"),
        ({"docid": [0.5, 1.0, 2.0]}, "docid: expected text or integers"),
    ],
)
def test_mistakes_in_frames(change: dict[str, list[Any]], problem: str) -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=problem):
        texts.from_frame(polars.DataFrame({**COLUMNS, **change}))
    with pytest.raises(DataError, match="expected a dataframe, found list"):
        texts.from_frame([1])
