from __future__ import annotations

import csv
import gzip
import io
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from didyma.data import delimited, read, table, write
from didyma.data.lists import Lists
from didyma.data.text_columns import TextBlock
from didyma.errors import DataError, MissingExtraError
from tests.data.same import assert_same

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
        ({"qid": ["a", "", "b"]}, "qid: expected text, found none in row 2"),
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
        (b"label,qid,x\n1,a,2\n0,a,b\n", r"bad\.csv, line 3, x: expected a finite .* found 'b'"),
        (b"label,qid,x\n1,a,2\n\n0,a,\n", r"bad\.csv, line 4, x: expected a finite .* found none"),
        (b"label,qid,x\n1,a,2\n0,a,inf\n", r"bad\.csv, line 3, x: .*found 'inf'"),
        (b"label,qid,x\n1,a,2\n0,a,1_0\n", r"bad\.csv, line 3, x: .*found '1_0'"),
        (b"label,qid,x\n1,a,\xd9\xa1\n", r"bad\.csv, line 2, x: expected a finite number"),
        (b"label,qid,x\n1,a," + b"1" * 5000 + b"\n", r"bad\.csv, line 2, x: .*found '1{39}$"),
        (b'label,qid,x\n1,"a\nb",2\n0,a,"b"\n', r"bad\.csv, line 4, x: .* found 'b'"),
        (b"label,qid,x\n1,a,2\n0,,3\n", r"bad\.csv, line 3, qid: expected text, found none"),
        (b'label,qid,x\n1,"a\nb",2\n0,"",3\n', r"bad\.csv, line 4, qid: expected text, found none"),
        (b"label,qid,x\n1,a,2\n0,a\n", r"bad\.csv, line 3: expected 3 fields, found 2"),
        (b"label,qid,x\n1,a,2,\n", r"bad\.csv, line 2: expected 3 fields, found 4"),
        (b'label,qid,x\n1,"a"b,2\n', r"bad\.csv, line 2: expected separated values"),
        (b'label,qid,x\n1,a,2\n0,"a,2\n', r"bad\.csv, line 3: expected separated values"),
        (b"label,qid,x\n1,a,2\n1,\xff,2\n", r"bad\.csv, line 3: expected UTF-8 text"),
        (b"label,qid,x,x\n1,a,2,3\n", r"bad\.csv, line 1, column 'x': .*different names"),
        (b",label,qid,x\n0,1,a,2\n", r"bad\.csv, header: column 1 has no name"),
        (b"label,qid,x\n", r"bad\.csv: expected at least one row"),
        (b"label,x\n1,2\n", r"bad\.csv, qid: no such column among label, x"),
        (b"", r"bad\.csv: expected a line with the names of the columns"),
    ],
)
@pytest.mark.parametrize("large", [0, 1 << 20])
def test_bad_files_are_named(
    tmp_path: Path, text: bytes, expected: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "LARGE", large)
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


def test_parquet_with_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    columns = {"label": [1.0], "qid": ["query-id"], "x": [1.0]}
    pq.write_table(pa.table(columns), path, compression="none", write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"query-id", b"query-\xff\xff"))
    with pytest.raises(DataError, match=r"bad\.parquet: not a readable Parquet file"):
        table.read(path)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5)
NAMES = TEXTS.filter(bool)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(
    X=hnp.arrays(np.float64, (3, 2), elements=FLOATS),
    y=hnp.arrays(np.float64, 3, elements=FLOATS),
    qid=st.lists(NAMES, min_size=3, max_size=3),
    docid=st.one_of(st.none(), st.lists(TEXTS, min_size=3, max_size=3)),
    suffix=st.sampled_from([".parquet", ".csv", ".tsv.gz", ".jsonl"]),
    sparse=st.booleans(),
)
def test_what_is_written_is_read(
    X: Any, y: Any, qid: list[str], docid: list[str] | None, suffix: str, sparse: bool
) -> None:
    data = Lists(
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
    assert_same(again, data)
    assert again.feature_names == ("a", "b")


def test_features_without_names_are_numbered(tmp_path: Path) -> None:
    data = Lists(np.eye(2), np.ones(2), np.array([1, 2]))
    table.write(data, tmp_path / "a.parquet")
    assert table.read(tmp_path / "a.parquet").feature_names == ("f1", "f2")


def test_names_that_clash_are_not_written(tmp_path: Path) -> None:
    data = Lists(np.eye(2), np.ones(2), np.array([1, 2]), None, ("qid", "b"))
    with pytest.raises(DataError, match=r"a\.parquet, column 'qid': expected columns with diff"):
        table.write(data, tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["narwhals", "pyarrow", "pyarrow.parquet"])
def test_only_parquet_and_frames_need_an_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    table.write(table.read(tmp_path / "a.csv"), tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[tables\]'"):
        table.read(tmp_path / "a.parquet")
    table.write(table.read(tmp_path / "a.csv"), tmp_path / "b.tsv")
    assert table.read(tmp_path / "b.tsv").qid.tolist() == ["007", "007"]


NUMBERS = st.one_of(
    FLOATS.map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["+1", "1e5", "-.5", "5.", "1E-400", "0.1000000000000000055511151231257827"]),
)


@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS, NAMES), min_size=1, max_size=5),
    quoted=st.booleans(),
    marked=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    blank=st.booleans(),
    delimiter=st.sampled_from([",", "\t"]),
)
def test_values_are_those_of_pandas(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str]],
    quoted: bool,
    marked: bool,
    end: str,
    blank: bool,
    delimiter: str,
) -> None:
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end)
    writer.writerow(["label", "x,\ty", "qid"])
    writer.writerows(rows)
    path = tmp_path_factory.mktemp("pandas") / ("a.csv" if delimiter == "," else "a.tsv")
    contents = text.getvalue() + (end if blank else "")
    path.write_bytes((b"\xef\xbb\xbf" if marked else b"") + contents.encode())
    frame = pd.read_csv(
        io.StringIO(contents, newline=""), sep=delimiter, dtype={"qid": str}, keep_default_na=False
    )
    for large in (0, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited, "LARGE", large)
            data = table.read(path)
        assert data.X[:, 0].tolist() == [float(x) for _, x, _ in rows]
        assert data.y.tolist() == [float(y) for y, _, _ in rows]
        np.testing.assert_allclose(data.X[:, 0], frame["x,\ty"].astype(float), rtol=1e-15)
        np.testing.assert_allclose(data.y, frame["label"].astype(float), rtol=1e-15)
        assert data.qid.tolist() == frame["qid"].tolist()


def test_plain_tables_are_read_by_compiled_code(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    header = ["label", "qid", "docid", "x"]
    found = delimited._plain_columns(
        TextBlock.open(tmp_path / "a.csv"), ",", header, ["x"], ["qid", "docid"]
    )
    assert found is not None
    assert found[0].tolist() == [[0.1], [1e-3]]
    assert [column.tolist() for column in found[1]] == [["007", "007"], ["NA", ""]]


def test_truth_is_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,qid,x\nTrue,a,false\n0,a,TRUE\n")
    data = table.read(tmp_path / "a.csv")
    assert (data.y.tolist(), data.X.tolist()) == ([1, 0], [[0], [1]])


def test_text_that_would_end_a_line_is_not_written(tmp_path: Path) -> None:
    data = Lists(np.eye(1), np.ones(1), np.array(["a\rb"]))
    with pytest.raises(DataError, match=r"a\.csv, qid: expected text without a carriage return"):
        table.write(data, tmp_path / "a.csv")


FIELDS = st.sampled_from(["1", "2.5", "-3e2", "true", "x", "", '"7"', '"8\n"', "1_0", "é"])


@settings(deadline=None)
@given(
    st.lists(st.tuples(FIELDS, FIELDS, st.sampled_from(["a", '"b, c"', "é"])), max_size=8),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.integers(1, 30),
)
def test_blocks_of_plain_text_and_others_make_one_table(
    rows: list[tuple[str, ...]], end: str, piece: int
) -> None:
    """Whatever the blocks, and wherever text stops to be plain: as by `csv` alone."""

    def found(large: int) -> Any:
        with mock.patch.multiple(delimited, LARGE=large, PIECE=piece):
            try:
                data = table.read(path)
            except DataError as error:
                return str(error)
        return data.X.tolist(), data.y.tolist(), data.qid.tolist(), data.feature_names

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        text = end.join(",".join(row) for row in [("label", "x", "qid"), *rows]) + end
        path.write_bytes(text.encode())
        assert found(0) == found(1 << 30)


HOLES = pd.DataFrame(
    {
        "label": [1, 0, 1, 0],
        "qid": ["a", "a", "b", "b"],
        "x": [0.5, None, 2.0, None],
        "y": [None, 3, 4, 5],
        "z": [None] * 4,
    }
)
X_WITH_HOLES = HOLES[["x", "y", "z"]].to_numpy(float)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("word", ["", "NULL", "NaN"])
def test_missing_values_of_files(
    suffix: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where they are announced, and never among labels."""
    path = tmp_path / f"holes{suffix}"

    def write_frame(frame: pd.DataFrame) -> None:
        if suffix == ".parquet":
            frame.to_parquet(path)
        elif suffix == ".jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            separator = "\t" if suffix == ".tsv" else ","
            frame.to_csv(path, index=False, sep=separator, na_rep=word)

    write_frame(HOLES)
    with pytest.raises(DataError, match=rf"holes\{suffix}, .*y: expected a .*number, found"):
        table.read(path, features=["y"])
    for large in (delimited.LARGE, 0):
        monkeypatch.setattr(delimited, "LARGE", large)
        data = table.read(path, missing=True)
        np.testing.assert_array_equal(data.X, X_WITH_HOLES)
        np.testing.assert_array_equal(read(path, like=data).X, X_WITH_HOLES)
    write(data, path)
    np.testing.assert_array_equal(table.read(path, missing=True).X, X_WITH_HOLES)
    write_frame(HOLES.assign(label=[1, None, 0, 1]))
    with pytest.raises(DataError, match=r"label: expected a .*number, found"):
        table.read(path, missing=True)


@pytest.mark.parametrize(
    "convert", [pl.from_pandas, pa.Table.from_pandas, pd.DataFrame, pd.DataFrame.convert_dtypes]
)
def test_missing_values_of_frames(convert: Any) -> None:
    data = table.from_frame(convert(HOLES), missing=True)
    np.testing.assert_array_equal(data.X, X_WITH_HOLES)
    with pytest.raises(DataError, match="x: expected a number, found none in row 2"):
        table.from_frame(convert(HOLES))
