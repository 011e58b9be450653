from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from didyma.data import RankingData
from didyma.errors import DataError, MissingExtraError
from didyma.formats import table

COLUMNS: dict[str, Any] = {
    "bm25": [2.5, 1.0, -3.0],
    "label": [1, 0, 2],
    "qid": [7, 8, 7],
    "docid": ["x", "y", "z"],
    "clicks": [3, 0, 9],
    "fresh": [True, False, True],
}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table])
def test_frames(frame: Any) -> None:
    data = table.from_frame(frame(COLUMNS))
    assert data.feature_names == ("bm25", "clicks", "fresh")
    assert data.X.tolist() == [[2.5, 3, 1], [1, 0, 0], [-3, 9, 1]]
    assert data.X.flags.c_contiguous
    assert data.y.tolist() == [1, 0, 2]
    assert data.qid.tolist() == ["7", "8", "7"]
    assert data.docid is not None
    assert data.docid.tolist() == ["x", "y", "z"]


def test_columns_by_name() -> None:
    frame = pd.DataFrame(COLUMNS)
    data = table.from_frame(frame, label="clicks", qid="docid", docid="qid", features=["bm25"])
    assert data.feature_names == ("bm25",)
    assert data.y.tolist() == [3, 0, 9]
    assert data.qid.tolist() == ["x", "y", "z"]
    assert data.docid is not None
    assert data.docid.tolist() == ["7", "8", "7"]


def test_categories_and_single_precision() -> None:
    columns = {"label": [1.0], "qid": pd.Categorical(["a"]), "x": np.ones(1, np.float32)}
    data = table.from_frame(pd.DataFrame(columns))
    assert data.X.dtype == np.float32
    assert data.qid.tolist() == ["a"]
    assert data.docid is None


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"clicks": ["1", "two", "3"]}, "clicks: expected a number, found 'two' in row 2"),
        ({"clicks": ["1", "2", "3"]}, "clicks: expected a column of numbers, found String"),
        ({"clicks": [1, 2, None]}, "clicks: expected a number, found none in row 3"),
        ({"clicks": [1.0, np.inf, 2.0]}, "clicks: expected a finite number, found inf in row 2"),
        ({"label": [1, 0, None]}, "label: expected a number, found none in row 3"),
        ({"qid": ["a", None, "b"]}, "qid: expected text, found none in row 2"),
        ({"qid": [1.0, 2.0, 3.5]}, "qid: expected text or integers, found Float64"),
        ({"docid": [None, "a", "b"]}, "docid: expected text, found none in row 1"),
    ],
)
def test_bad_columns_are_named(frame: Any, columns: dict[str, Any], expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        table.from_frame(frame(COLUMNS | columns))


def test_not_a_number_is_named() -> None:
    with pytest.raises(DataError, match="bm25: expected a finite number, found nan in row 2"):
        table.from_frame(pl.DataFrame(COLUMNS | {"bm25": [1.0, np.nan, 2.0]}))


def test_missing_columns_are_named() -> None:
    frame = pl.DataFrame(COLUMNS)
    with pytest.raises(DataError, match="grade: no such column among bm25, label, qid, docid"):
        table.from_frame(frame, label="grade")
    with pytest.raises(DataError, match="expected also the features tfidf"):
        table.from_frame(frame, features=["bm25", "tfidf"])
    with pytest.raises(DataError, match="expected at least one row"):
        table.from_frame(frame.clear())
    with pytest.raises(DataError, match="expected a dataframe, found dict"):
        table.from_frame(COLUMNS)
    doubled = pd.DataFrame([[1, "a", 1, 2]], columns=["label", "qid", "x", "x"])
    with pytest.raises(DataError, match="unique column names"):
        table.from_frame(doubled)


CSV = "label,qid,docid,x\n1,007,NA,0.1\n0,007,,1e-3\n"


@pytest.mark.parametrize(
    ("name", "delimiter", "packed"),
    [("a.csv", ",", False), ("a.TSV", "\t", False), ("a.csv.gz", ",", True), ("a.csv", ",", True)],
)
def test_separated_values(tmp_path: Path, name: str, delimiter: str, packed: bool) -> None:
    text = CSV.replace(",", delimiter).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if packed else text)
    data = table.read(path)
    assert data.qid.tolist() == ["007", "007"]
    assert data.docid is not None
    assert data.docid.tolist() == ["NA", ""]
    assert data.X.tolist() == [[0.1], [1e-3]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"label,qid,x\n1,a,2\n0,a,b\n", r"bad\.csv, x: expected a number, found 'b' in row 2"),
        (b"label,qid,x\n1,a,2\n0,a,\n", r"bad\.csv, x: expected a number, found none in row 2"),
        (b"label,qid,x\n1,a,2\n0,a,inf\n", r"bad\.csv, x: expected a finite number.* row 2"),
        (b"label,qid,x\n1,a,2\n0,a\n", r"bad\.csv: .*Row #3.*Expected 3 columns, got 2"),
        (b"label,qid,x\n1,\xff,2\n", r"bad\.csv: .*invalid UTF8"),
        (b"label,qid,x\n", r"bad\.csv: expected at least one row"),
        (b"label,x\n1,2\n", r"bad\.csv, qid: no such column among label, x"),
        (b"", r"bad\.csv: Empty CSV file"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: bytes, expected: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(text)
    with pytest.raises(DataError, match=expected):
        table.read(path)


@pytest.mark.parametrize("text", [b"", b"PAR1 and more"])
def test_bad_parquet_is_named(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bad.parquet"
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"bad\.parquet: not a readable Parquet file"):
        table.read(path)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(
    X=hnp.arrays(np.float64, (3, 2), elements=FLOATS),
    y=hnp.arrays(np.float64, 3, elements=FLOATS),
    qid=st.lists(TEXTS, min_size=3, max_size=3),
    docid=st.one_of(st.none(), st.lists(TEXTS, min_size=3, max_size=3)),
    suffix=st.sampled_from([".parquet", ".csv", ".tsv.gz"]),
    sparse=st.booleans(),
)
def test_what_is_written_is_read(
    X: Any, y: Any, qid: list[str], docid: list[str] | None, suffix: str, sparse: bool
) -> None:
    data = RankingData(
        sp.csr_array(X) if sparse else X,
        y,
        np.array(qid),
        None if docid is None else np.array(docid),
        ("a", "b"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data" + suffix)
        table.write(data, path)
        again = table.read(path)
    np.testing.assert_array_equal(again.X, X)
    np.testing.assert_array_equal(again.y, y)
    assert again.qid.tolist() == data.qid.tolist()
    assert again.feature_names == ("a", "b")
    assert (again.docid is None) == (docid is None)
    if again.docid is not None and data.docid is not None:
        assert again.docid.tolist() == data.docid.tolist()


def test_features_without_names_are_numbered(tmp_path: Path) -> None:
    data = RankingData(np.eye(2), np.ones(2), np.array([1, 2]))
    table.write_parquet(data, tmp_path / "a.parquet")
    assert table.read(tmp_path / "a.parquet").feature_names == ("f1", "f2")


def test_names_that_clash_are_not_written(tmp_path: Path) -> None:
    data = RankingData(np.eye(2), np.ones(2), np.array([1, 2]), None, ("qid", "b"))
    with pytest.raises(DataError, match=r"a\.parquet, qid: expected columns with different names"):
        table.write(data, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["narwhals", "pyarrow", "pyarrow.csv"])
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'didyma\[tables\]'"):
        table.read(tmp_path / "a.csv")
