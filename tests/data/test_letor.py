from __future__ import annotations

import gzip
import math
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_svmlight_file

import didyma
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.errors import DataError
from tests.data.same import assert_same, dense


def read_text(text: str | bytes, **options: Any) -> Lists:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.letor")
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return letor.read(path, **options)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=8)
QIDS = WORDS.filter(lambda text: "#" not in text)
DOCIDS = st.lists(WORDS, max_size=2).map(" ".join).filter(lambda text: text[:5] != "docid")
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def ranking_data(draw: st.DrawFn) -> Lists:
    n, d = draw(st.integers(1, 8)), draw(st.integers(0, 5))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.one_of(st.just(0.0), FLOATS)))
    y = draw(hnp.arrays(np.float64, n, elements=st.one_of(st.integers(0, 4), FLOATS)))
    qid = np.array(draw(st.lists(QIDS, min_size=n, max_size=n)))
    docid = np.array(draw(st.lists(DOCIDS, min_size=n, max_size=n)))
    return Lists(X, y, qid, docid if any(docid) else None)


@settings(deadline=None)
@given(ranking_data(), st.booleans(), st.sampled_from(["", ".gz"]), st.integers(1, 200))
def test_what_is_written_is_read(data: Lists, sparse: bool, gz: str, piece: int) -> None:
    stored = replace(data, items=sp.csr_array(data.X)) if sparse else data
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(letor, "PIECE", piece):
        path = Path(folder, "data.letor" + gz)
        letor.write(stored, path)
        again = letor.read(path, sparse=sparse)
    assert sp.issparse(again.X) == sparse
    assert sparse or same_bits(again.X, data.X)  # -0.0 is not stored
    assert same_bits(again.y, data.y)
    assert_same(again, data)


NUMBERS = st.one_of(
    FLOATS.map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-9, max_value=9).map(
        str
    ),
    st.from_regex(
        r"[-+]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})([eE][-+]?[0-9]{1,2})?", fullmatch=True
    ),
)


@settings(deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=30), st.booleans(), st.sampled_from(["d", "f"]))
def test_numbers_are_those_of_float(texts: list[str], sparse: bool, dtype: str) -> None:
    values = np.array([float(text) for text in texts])
    if dtype == "f":
        kept = np.abs(values) <= np.finfo(np.float32).max
        texts = [text for text, keep in zip(texts, kept) if keep] or ["0"]
        values = np.array([float(text) for text in texts])
    entries = " ".join(f"{k}:{text}" for k, text in enumerate(texts, 1))
    data = read_text(f"{texts[0]} qid:1 {entries}\n", sparse=sparse, dtype=dtype)
    assert same_bits(dense(data.X)[0], values.astype(dtype)) or (
        sparse and np.array_equal(dense(data.X)[0], values.astype(dtype))
    )
    assert same_bits(data.y, values[:1])


@pytest.mark.parametrize("piece", [1, 100, 10**6])
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_agrees_with_scikit_learn(tmp_path: Path, density: float, piece: int) -> None:
    rng = np.random.default_rng(1)
    lines = []
    for row in range(50):
        columns = np.flatnonzero(rng.random(40) < density) + 1
        entries = " ".join(f"{column}:{rng.normal():.6g}" for column in columns)
        lines.append(f"{rng.integers(3)} qid:{row // 7} {entries} # {row}")
    path = tmp_path / "data.txt"
    path.write_text("# made for a test\n\n" + "\n".join(lines))
    X, y, qid = load_svmlight_file(path, n_features=40, query_id=True)
    with mock.patch.object(letor, "PIECE", piece):
        data = letor.read(path, n_features=40)
    assert sp.issparse(data.X) == (density < letor.DENSE_FROM)
    assert_same(data, Lists(X, y, qid.astype(str), np.arange(50).astype(str)))


NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?")


def parse_plainly(text: str) -> list[tuple[float, str | None, dict[int, float]]] | int:
    """The rows of a text, or the number of its first bad line."""
    rows: list[tuple[float, str | None, dict[int, float]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        qid, entries = None, {}
        for word in words[1:]:
            if word.startswith("qid:") and qid is None and word != "qid:":
                qid = word.removeprefix("qid:")
                continue
            index, _, value = word.partition(":")
            if not re.fullmatch("[0-9]{1,9}", index) or not NUMBER.fullmatch(value):
                return number
            if int(index) in entries or math.isinf(float(value)):
                return number
            entries[int(index)] = float(value)
        if not NUMBER.fullmatch(words[0]) or math.isinf(float(words[0])):
            return number
        rows.append((float(words[0]), qid, entries))
    return rows


LINES = st.lists(
    st.one_of(
        st.sampled_from(["qid:a", "qid:b:1", "1:2", "3:.5", "2:1e2", "12:-7", "1:", "qid:", ":"]),
        st.text("0123456789:.e-+q#\t ", max_size=6),
    ),
    max_size=5,
).map(" ".join)


def read_or_refuse(text: str, **options: Any) -> Lists | DataError:
    try:
        return read_text(text, **options)
    except DataError as error:
        return error


@settings(deadline=None, max_examples=300)
@given(st.lists(LINES, max_size=6).map("\n".join), st.integers(1, 40), st.booleans())
def test_any_text_is_read_or_refused_as_by_a_plain_parser(
    text: str, piece: int, sparse: bool
) -> None:
    rows = parse_plainly(text)
    bad_line = rows if isinstance(rows, int) else None
    rows = rows if isinstance(rows, list) else []
    group = [len(rows)] if rows and rows[0][1] is None else None
    with mock.patch.object(letor, "PIECE", piece):
        data = read_or_refuse(text, sparse=sparse, group=group)
    if isinstance(data, DataError):
        assert len({qid is None for _, qid, _ in rows}) != 1
        if bad_line and not sparse:  # repeated indices in CSR are found last
            assert data.line == bad_line
        return
    assert rows
    base = 0 if any(0 in entries for _, _, entries in rows) else 1
    assert data.y.tolist() == [label for label, _, _ in rows]
    assert data.qid.tolist() == [qid or "0" for _, qid, _ in rows]
    X = sp.coo_array(data.X)
    found = dict(zip(zip(*(axis.tolist() for axis in X.coords)), X.data.tolist()))
    listed = {(r, k - base): v for r, row in enumerate(rows) for k, v in row[2].items()}
    assert {k: v for k, v in found.items() if v} == {k: v for k, v in listed.items() if v}


def test_query_ids_are_text_and_rows_stay_in_place() -> None:
    data = read_text("1 qid:é:7 1:1\n0 qid:a 1:2\n0 qid:a2 1:3\n2 1:4 qid:é:7\n0 qid:007 1:5\n")
    assert data.qid.tolist() == ["é:7", "a", "a2", "é:7", "007"]
    assert data.X.ravel().tolist() == [1, 2, 3, 4, 5]
    assert data.groups.rows.tolist() == [0, 3, 1, 2, 4]


@pytest.mark.parametrize(
    ("comment", "docid"),
    [
        ("#docid = GX008-86-4444840 inc = 1 prob = 0.086622", "GX008-86-4444840"),
        ("# docid=a", "a"),
        ("#  some  text \t", "some  text"),
        ("# docids are fine", "docids are fine"),
        ("# a # b", "a # b"),
        ("#é 漢", "é 漢"),
        ("# 3:4 qid:5", "3:4 qid:5"),
        ("#" + "long" * 100, "long" * 100),
        ("#", ""),
        ("", ""),
        ("#docid = ", ""),
    ],
)
def test_document_ids_are_comments(comment: str, docid: str) -> None:
    data = read_text(f"1 qid:1 1:1 # first\n0 qid:1 1:0{comment}\r\n")
    assert data.docid is not None
    assert data.docid.tolist() == ["first", docid]
    assert data.X.ravel().tolist() == [1, 0]


def test_no_comments_no_document_ids() -> None:
    assert read_text("# head\n1 qid:1 1:1\n0 qid:1 1:2 #\n").docid is None


def test_blank_lines_comments_and_white_space_are_skipped() -> None:
    text = "\ufeff\n  # head\n\t1\tqid:a  1:1 \r\n\n \t \n0 qid:b\t2:2"
    data = read_text(text)
    assert data.y.tolist() == [1, 0]
    assert data.qid.tolist() == ["a", "b"]
    assert dense(data.X).tolist() == [[1, 0], [0, 2]]


def test_rows_without_features() -> None:
    data = read_text("1 qid:a\n0 qid:b\n")
    assert data.X.shape == (2, 0)
    assert read_text("1 qid:a\n0 qid:b\n", n_features=3, sparse=False).X.tolist() == [[0] * 3] * 2


def test_gzip_by_content(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_bytes(gzip.compress(b"1 qid:a 1:2\n") + gzip.compress(b"0 qid:a 1:3\n"))
    assert letor.read(path).X.tolist() == [[2], [3]]


def test_indices_from_zero() -> None:
    text = "1 qid:a 0:5 2:7\n0 qid:a 1:6\n"
    assert dense(read_text(text).X).tolist() == [[5, 0, 7], [0, 6, 0]]
    assert dense(read_text("1 qid:a 1:5\n").X).tolist() == [[5]]
    assert dense(read_text("1 qid:a 1:5\n", zero_based=True).X).tolist() == [[0, 5]]
    assert dense(read_text("1 qid:a 0:5\n", n_features=3).X).tolist() == [[5, 0, 0]]
    with pytest.raises(DataError, match=r"line 1, feature: .*from 1, found '0:5'"):
        read_text(text, zero_based=False)


@pytest.mark.parametrize("sparse", [False, True])
def test_indices_in_any_order(sparse: bool) -> None:
    data = read_text("1 qid:a 3:3 1:1 2:2\n0 qid:a\n0 qid:a 2:2 1:1\n", sparse=sparse)
    assert dense(data.X).tolist() == [[1, 2, 3], [0, 0, 0], [1, 2, 0]]
    if sparse:
        assert data.X.has_sorted_indices


def test_dense_or_sparse_as_suits() -> None:
    assert isinstance(read_text("1 qid:a 4:1\n").X, np.ndarray)
    data = read_text("1 qid:a 5:1\n")
    assert sp.issparse(data.X)
    assert (data.X.data.dtype, data.X.indices.dtype) == (np.float64, np.int32)
    assert read_text("1 qid:a 5:1\n", dtype=np.float32).X.dtype == np.float32
    huge = read_text("1 qid:a 2147483646:1\n")
    assert huge.X.shape == (1, 2147483646)


HEAD = "1 qid:a 1:1 2:1\n# comment\n"


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [
        ("x qid:a 1:1", "label", "expected a finite number, found 'x'"),
        ("nan qid:a 1:1", "label", "expected a finite number, found 'nan'"),
        ("inf qid:a 1:1", "label", "expected a finite number, found 'inf'"),
        ("1e999 qid:a 1:1", "label", "expected a finite number, found '1e999'"),
        ("qid:a 1:1", "label", "expected a finite number, found 'qid:a'"),
        ("1:1 2:1", "label", "expected a finite number, found '1:1'"),
        ("0 qid:a 1:x", "feature 1", "expected a finite number after the colon, found '1:x'"),
        ("0 qid:a 1:1:1", "feature 1", "found '1:1:1'"),
        ("0 qid:a 2:nan", "feature 2", "expected a finite number after the colon, found '2:nan'"),
        ("0 qid:a 2:-inf", "feature 2", "found '2:-inf'"),
        ("0 qid:a 2:1e999", "feature 2", "found '2:1e999'"),
        ("0 qid:a 2:", "feature 2", "found '2:'"),
        ("0 qid:a 2: 5", "feature 2", "found '2:'"),
        ("0 qid:a 2:1_0", "feature 2", "found '2:1_0'"),
        ("0 qid:a -1:1", "feature", "expected index:value with an index from 1, found '-1:1'"),
        ("0 qid:a 1.5:1", "feature", "found '1.5:1'"),
        ("0 qid:a a:1", "feature", "found 'a:1'"),
        ("0 qid:a :1", "feature", "found ':1'"),
        ("0 qid:a 5", "feature", "found '5'"),
        ("0 qid:a 1:1 word", "feature", "found 'word'"),
        ("0 qid:a 2147483647:1", "feature", "found '2147483647:1'"),
        ("0 qid:a 99999999999999999999:1", "feature", "found '99999999999999999999:1'"),
        ("0 qid:a 00000000001:1", "feature", "found '00000000001:1'"),
        ("0 qid:a 1:1 1:2", "feature 1", "expected each index once a line"),
        ("0 qid:a 2:1 1:1 2:1", "feature 2", "expected each index once a line"),
        ("0 qid: 1:1", "qid", "expected text after the colon, found 'qid:'"),
        ("0 qid:a qid:b 1:1", "qid", "expected one query id a line, found also 'qid:b'"),
        ("0 1:1", "qid", "missing, but line 1 has one"),
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("piece", [1, 10**6])
def test_bad_lines_are_named(
    line: str, place: str, expected: str, sparse: bool, piece: int
) -> None:
    with pytest.raises(DataError) as caught, mock.patch.object(letor, "PIECE", piece):
        read_text(f"{HEAD}{line}\n{HEAD}", sparse=sparse or "2147483647" in line)
    assert caught.value.line == 3
    assert caught.value.field == place
    assert "data.letor, line 3, " in str(caught.value)
    assert expected in str(caught.value)


def test_the_first_bad_line_is_reported() -> None:
    lines = ["1 qid:a 1:1"] * 30
    lines[7] = lines[25] = "bad"
    with mock.patch.object(letor, "PIECE", 1), pytest.raises(DataError, match=r"line 8, label"):
        read_text("\n".join(lines))
    with pytest.raises(DataError, match=r"line 1, feature 1: .*'1:1e999'"):
        read_text("1 qid:a 1:1e999\nbad\n")


@pytest.mark.parametrize("line", [":", ":1", "1:1", "12:1 3:4", "-", "x"])
def test_a_bad_first_line_is_named(line: str) -> None:
    with pytest.raises(DataError, match=r"line 1, (label|qid)"):
        read_text(f"{line}\n1 qid:a 1:1")


def test_a_query_id_that_comes_late_is_named() -> None:
    with pytest.raises(DataError, match="line 3, qid: unexpected, as line 1 has none"):
        read_text("0 1:1\n0 1:1\n0 qid:a 1:1\n")


def test_an_index_beyond_the_width_is_named() -> None:
    with pytest.raises(DataError, match="line 2, feature 3: expected an index up to 2"):
        read_text("0 qid:a 1:1\n0 qid:a 3:1\n", n_features=2)
    with pytest.raises(DataError, match="line 1, feature 2: expected an index up to 1"):
        read_text("0 qid:a 0:1 2:1\n", n_features=2)


def test_numbers_too_large_for_single_precision_are_named() -> None:
    assert read_text("0 qid:a 1:1e39\n").X[0, 0] == 1e39
    for value in ("1e39", "-1e39", "1000000000000000000000000000000000000000.5"):
        with pytest.raises(DataError, match=r"line 1, feature 1: expected a finite number"):
            read_text(f"0 qid:a 1:{value}\n", dtype=np.float32)
    with pytest.raises(DataError, match="dtype: expected float64 or float32, found int64"):
        read_text("0 qid:a 1:1\n", dtype=np.int64)


@pytest.mark.parametrize("text", ["", "\n", "# only\n \n"])
def test_an_empty_file_is_named(text: str) -> None:
    with pytest.raises(DataError, match=r"data\.letor: expected lines 'label qid:TEXT"):
        read_text(text)


@pytest.mark.parametrize(
    ("line", "field"),
    [(b"0 qid:\xff 1:1", "qid"), (b"0 qid:a 1:1 # \xff", "docid"), (b"\xff 1:1", "label")],
)
def test_text_that_is_not_utf8_is_named(line: bytes, field: str) -> None:
    with pytest.raises(DataError, match=f"line 2, {field}: expected UTF-8 text"):
        read_text(b"1 qid:a 1:1\n" + line + b"\n")


def test_truncated_gzip_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(b"1 qid:a 1:1\n" * 1000)[:-12])
    with pytest.raises(DataError, match=r"data\.gz: damaged or truncated gzip"):
        letor.read(path)


ROWS = "1 1:1\n0 1:2\n0 1:3\n"


def test_groups_as_sizes(tmp_path: Path) -> None:
    path = tmp_path / "rank.train"
    path.write_text(ROWS)
    sizes = tmp_path / "sizes"
    sizes.write_text("1\n\n2\r\n")
    assert letor.read(path, group=[1, 2]).qid.tolist() == ["0", "1", "1"]
    assert letor.read(path, group=sizes).qid.tolist() == ["0", "1", "1"]
    with pytest.raises(DataError, match=r"rank\.train, qid: no line has a query id.*train\.query"):
        letor.read(path)
    (tmp_path / "rank.train.query").write_text("2\n1\n")
    assert letor.read(path).qid.tolist() == ["0", "0", "1"]
    assert letor.read(path, group=np.array([3])).qid.tolist() == ["0"] * 3
    (tmp_path / "rank.train.gz").write_bytes(gzip.compress(ROWS.encode()))
    assert letor.read(tmp_path / "rank.train.gz").qid.tolist() == ["0", "0", "1"]


def test_bad_groups_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rank.train"
    path.write_text(ROWS)
    (tmp_path / "rank.train.query").write_text("1\n1\n")
    with pytest.raises(DataError, match=r"train\.query, group: sizes add up to 2 but .* 3 rows"):
        letor.read(path)
    with pytest.raises(DataError, match=r"rank\.train, group: sizes add up to 7"):
        letor.read(path, group=[3, 4])
    (tmp_path / "rank.train.query").write_text("1\nx\n")
    with pytest.raises(DataError, match=r"train\.query, line 2, group: .*rows, found 'x'"):
        letor.read(path)
    path.write_text("1 qid:a 1:1\n")
    with pytest.raises(DataError, match="expected no group sizes, as the lines have qid"):
        letor.read(path, group=[1])


def one_row(**columns: Any) -> Lists:
    row: dict[str, Any] = {"X": np.ones((1, 1)), "y": np.ones(1), "qid": np.array(["a"])}
    row |= {name: np.array(value) for name, value in columns.items()}
    return Lists(row.pop("X"), row.pop("y"), **row)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"qid": ["a b"]}, "qid: expected text without white space"),
        ({"qid": ["a#b"]}, "qid: expected text without white space or '#', found 'a#b'"),
        ({"docid": ["a\nb"]}, "docid: expected text that can stand in a comment"),
        ({"docid": [" a"]}, "docid: expected text that can stand in a comment"),
        ({"docid": ["docid = a b"]}, "docid: expected text that can stand in a comment"),
        ({"X": [[np.nan]]}, "X: expected finite numbers"),
        ({"y": [np.inf]}, "y: expected finite numbers"),
    ],
)
def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, columns: dict[str, Any], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        letor.write(one_row(**columns), tmp_path / "out.txt")
    assert not list(tmp_path.iterdir())


def test_written_text_is_plain(tmp_path: Path) -> None:
    data = Lists(
        np.array([[0.5, 0], [2, 1e-9]]), np.array([2.0, 0.5]), np.array([7, 8]), np.array([3, 4])
    )
    letor.write(data, tmp_path / "out.txt")
    expected = "2 qid:7 1:0.5 2:0.0 # 3\n0.5 qid:8 1:2.0 2:1e-09 # 4\n"
    assert (tmp_path / "out.txt").read_text() == expected
    repeated = sp.csr_array((np.array([1.0, 2, 4]), [0, 0, 1], [0, 3]), shape=(1, 4))
    letor.write(Lists(repeated, np.ones(1), np.array(["a"])), tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "1 qid:a 1:3.0 2:4.0 4:0\n"


def test_mq2008(shared_data: Path) -> None:
    parts = [letor.read(shared_data / "mq2008" / f"S{k}.txt") for k in range(1, 6)]
    assert sum(len(part) for part in parts) == 15211
    assert sum(len(part.groups) for part in parts) == 784
    assert {part.X.shape[1] for part in parts} == {46}
    assert {label for part in parts for label in part.y.tolist()} == {0, 1, 2}
    X, y, qid = load_svmlight_file(shared_data / "mq2008" / "S1.txt", query_id=True)
    np.testing.assert_array_equal(parts[0].X, X.toarray())
    np.testing.assert_array_equal(parts[0].y, y)
    np.testing.assert_array_equal(parts[0].qid, qid.astype(str))
    assert parts[0].docid is not None
    assert parts[0].docid[0] == "GX008-86-4444840"


def test_lightgbm_example(shared_data: Path) -> None:
    folder = shared_data / "lightgbm_lambdarank"
    train, test = letor.read(folder / "rank.train"), letor.read(folder / "rank.test")
    assert (len(train.groups), len(test.groups)) == (201, 50)
    sizes = np.loadtxt(folder / "rank.train.query", dtype=int)
    assert train.groups.sizes.tolist() == sizes.tolist()
    X, y = load_svmlight_file(folder / "rank.train")
    np.testing.assert_array_equal(dense(train.X), X.toarray())
    np.testing.assert_array_equal(train.y, y)


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_document_id_that_would_end_the_line_is_not_written(tmp_path: Path, end: str) -> None:
    data = Lists(np.eye(1), np.ones(1), np.array(["a"]), np.array([f"d{end}e"]))
    with pytest.raises(DataError, match="docid: expected text that can stand in a comment"):
        letor.write(data, tmp_path / "a.txt")


def test_threads_read_the_same(tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    path.write_text("".join(f"{n % 3} qid:{n // 7} 1:{n}.25 3:{n / 7}\n" for n in range(500)))
    with didyma.threads(1):
        alone = letor.read(path)
    with didyma.threads(4):
        together = letor.read(path)
    assert_same(together, alone)
