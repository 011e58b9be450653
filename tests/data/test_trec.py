from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.data import trec
from didyma.data.trec import Qrels, Run
from didyma.errors import DataError

RUN = "q1 Q0 d1 1 2.5 bm25\nq2\tQ0\td9\t1\t-1e-3\tbm25\n\n q1 Q0 é 2 0.1 bm25 \r\n"
QRELS = "q1 0 d1 1\nq1 0 d3 2\nq2 0 d1 -1"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "file"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_columns_stay_in_the_order_of_the_file(tmp_path: Path, packed: bool) -> None:
    pack = gzip.compress if packed else bytes
    run = trec.read_run(write(tmp_path, pack(RUN.encode())))
    assert run.qid.tolist() == ["q1", "q2", "q1"]
    assert run.docid.tolist() == ["d1", "d9", "é"]
    assert run.score.tolist() == [2.5, -1e-3, 0.1]
    assert (run.tag, len(run)) == ("bm25", 3)
    qrels = trec.read_qrels(write(tmp_path, pack(QRELS.encode())))
    assert qrels.qid.tolist() == ["q1", "q1", "q2"]
    assert qrels.docid.tolist() == ["d1", "d3", "d1"]
    assert qrels.relevance.tolist() == [1, 2, -1]
    assert (qrels.relevance.dtype, len(qrels)) == (np.int64, 3)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 Q0 d7 1 2.5", "line 4: expected 6 fields 'qid Q0 docid rank score tag', found 5"),
        ("q1 Q0 d7 1 2.5 a b", "line 4: expected 6 fields .*, found 7"),
        ("q1", "line 4: expected 6 fields .*, found 1"),
        ("q1 Q0 d7 1 high a", "line 4, score: expected a finite number, found 'high'"),
        ("q1 Q0 d7 1 nan a", "line 4, score: expected a finite number, found 'nan'"),
        ("q1 Q0 d7 1 1e999 a", "line 4, score: expected a finite number, found '1e999'"),
        ("q1 Q0 d1 1 1 a", "line 4, docid: expected each document once a query, found 'd1' again"),
        (b"q1 Q0 \xff 1 1 a", "line 4, docid: expected UTF-8 text"),
    ],
)
def test_bad_runs_are_named(tmp_path: Path, line: str | bytes, expected: str) -> None:
    encoded = line.encode() if isinstance(line, str) else line
    text = b"q1 Q0 d1 1 2.5 a\n\nq1 Q0 d2 1 2.5 a\n" + encoded + b"\nq1 Q0 d5 1 x a\n"
    with pytest.raises(DataError, match=f"file, {expected}"):
        trec.read_run(write(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("q1 0 d7", "line 2: expected 4 fields 'qid iteration docid relevance', found 3"),
        ("q1 0 d7 0.5", "line 2, relevance: expected an integer, found '0.5'"),
        ("q1 0 d7 yes", "line 2, relevance: expected a finite number, found 'yes'"),
        ("q1 0 d1 0", "line 2, docid: expected each document once a query, found 'd1' again"),
    ],
)
def test_bad_judgements_are_named(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(DataError, match=f"file, {expected}"):
        trec.read_qrels(write(tmp_path, f"q1 0 d1 1\n{line}\n"))


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_empty_files_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="file: expected lines 'qid Q0 docid rank score tag'"):
        trec.read_run(write(tmp_path, text))
    with pytest.raises(DataError, match="file: expected lines 'qid iteration docid relevance'"):
        trec.read_qrels(write(tmp_path, text))


def test_a_run_is_sorted_by_score_and_then_by_falling_document_id(tmp_path: Path) -> None:
    path = tmp_path / "out.run"
    trec.write_run(["b", "a", "b", "b", "a"], [1, 2, 3, 4, 5], [1, 0.1, 2, 1, 7], path, "mine")
    assert path.read_text() == (
        "b Q0 3 1 2.0 mine\nb Q0 4 2 1.0 mine\nb Q0 1 3 1.0 mine\n"
        "a Q0 5 1 7.0 mine\na Q0 2 2 0.1 mine\n"
    )


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=5)
KEYS = st.lists(st.tuples(WORDS, WORDS), unique=True, min_size=1, max_size=20)
SCORES = st.one_of(st.integers(0, 2), st.floats(allow_nan=False, allow_infinity=False))


@settings(deadline=None)
@given(keys=KEYS, data=st.data())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[str, str]], data: st.DataObject
) -> None:
    score = data.draw(st.lists(SCORES, min_size=len(keys), max_size=len(keys)))
    qid, docid = zip(*keys)
    path = tmp_path_factory.getbasetemp() / "written.run.gz"
    trec.write_run(qid, docid, score, path, "tag")
    run = trec.read_run(path)
    found = list(zip(run.qid.tolist(), run.docid.tolist(), run.score.tolist()))
    assert sorted(found) == sorted((q, d, float(s)) for (q, d), s in zip(keys, score))
    order = {name: k for k, name in enumerate(dict.fromkeys(qid))}
    by_rule = sorted(found, key=lambda row: row[1], reverse=True)
    assert found == sorted(by_rule, key=lambda row: (order[row[0]], -row[2]))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((["a b"], ["d"], [1], "t"), "qid: expected text without white space, found 'a b'"),
        ((["a"], [""], [1], "t"), "docid: expected text without white space, found ''"),
        ((["a"], ["d"], [1], "t t"), "tag: expected text without white space"),
        ((["a"], ["d"], [np.nan], "t"), "score: expected finite numbers"),
        ((["a"], ["d", "e"], [1], "t"), "expected columns of one length"),
    ],
)
def test_what_could_not_be_read_is_not_written(
    tmp_path: Path, columns: tuple[list[str], list[str], list[float], str], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        trec.write_run(*columns[:3], tmp_path / "out.run", columns[3])
    assert not list(tmp_path.iterdir())


def run_of(tag: str, rows: dict[tuple[str, str], float]) -> Run:
    qid, docid = (
        (np.array(column, dtype="U2") for column in zip(*rows))
        if rows
        else 2 * (np.array([], "U1"),)
    )
    return Run(qid, docid, np.array(list(rows.values()), float), tag)


IDS = st.tuples(st.sampled_from("abc"), st.sampled_from("uvwxyz"))
TABLES = st.dictionaries(IDS, st.integers(-9, 9).map(float), min_size=1)


@settings(deadline=None)
@given(st.lists(TABLES, min_size=1, max_size=4), TABLES, st.sampled_from([None, -99.0]))
def test_join_is_the_union_of_the_runs(
    tables: list[dict[tuple[str, str], float]],
    judged: dict[tuple[str, str], float],
    missing: float | None,
) -> None:
    queries = list(dict.fromkeys(qid for qid, _ in judged))
    keys = {key for table in tables for key in table if key[0] in queries}
    runs = [run_of(f"run{k}", table) for k, table in enumerate(tables)]
    qid, docid = (np.array(column) for column in zip(*judged))
    qrels = Qrels(qid, docid, np.array(list(judged.values()), np.int64))
    if not keys:
        with pytest.raises(DataError, match="documents of judged queries, found none"):
            trec.join(runs, qrels, missing=missing)
        return
    data = trec.join(runs, qrels, missing=missing)
    assert data.docid is not None
    found = list(zip(data.qid.tolist(), data.docid.tolist()))
    assert len(found) == len(keys)
    assert set(found) == keys
    assert [queries.index(q) for q, _ in found] == sorted(queries.index(q) for q, _ in found)
    assert data.feature_names == tuple(run.tag for run in runs)
    for key, x, y in zip(found, data.X, data.y):
        assert y == judged.get(key, 0)
        for value, table in zip(x, tables):
            same_query = [score for (q, _), score in table.items() if q == key[0]]
            least = min(same_query or table.values()) if missing is None else missing
            assert value == table.get(key, least)


def test_runs_to_join_have_different_tags() -> None:
    run = run_of("a", {("q", "d"): 1})
    with pytest.raises(DataError, match="expected runs with different tags, found 'a' again"):
        trec.join([run, run], Qrels(run.qid, run.docid, np.array([1])))


def test_robust03(shared_data: Path) -> None:
    folder = shared_data / "robust03"
    runs = [trec.read_run(path) for path in sorted((folder / "runs").iterdir())]
    qrels = trec.read_qrels(folder / "qrels.txt")
    assert len(runs) == 17
    assert [f"input.{run.tag}.gz" for run in runs] == sorted(
        p.name for p in (folder / "runs").iterdir()
    )
    data = trec.join(runs, qrels)
    assert data.docid is not None
    assert data.X.shape == (440632, 17)
    assert len(data.groups) == 100
    assert np.isfinite(data.X).all()
    here, judged = data.qid == "303", qrels.qid == "303"
    retrieved = np.unique(np.concatenate([run.docid[run.qid == "303"] for run in runs]))
    np.testing.assert_array_equal(np.sort(data.docid[here]), retrieved)
    relevant = qrels.relevance[judged][np.isin(qrels.docid[judged], retrieved)]
    assert data.y[here].sum() == relevant.sum() > 0
    row = int(np.flatnonzero((data.qid == "303") & (data.docid == "LA071090-0047"))[0])
    assert data.X[row, 0] == 49.19109429178723


def test_shorter_lines(tmp_path: Path) -> None:
    """Judgements as BEIR has them, runs as MS MARCO has them."""
    path = tmp_path / "short.tsv"
    for header in ("", "query-id\tcorpus-id\tscore\n"):
        path.write_text(header + "q\td1\t2\n\nq\td2\t0\n")
        qrels = trec.read_qrels(path)
        assert qrels.docid.tolist() == ["d1", "d2"]
        assert qrels.relevance.tolist() == [2, 0]
    path.write_text("query-id\tcorpus-id\tscore\nq\td1\tx\n")
    with pytest.raises(DataError, match=r"short\.tsv, line 2, relevance: .* found 'x'"):
        trec.read_qrels(path)
    path.write_text("q\td1\t1\nq\td2\t2\n")
    run = trec.read_run(path)
    assert (run.score.tolist(), run.tag) == ([-1.0, -2.0], "short.tsv")
    path.write_text("q\td1\t1\t.5\nq\td2\t2\t.25\n")
    assert trec.read_run(path).score.tolist() == [0.5, 0.25]
    path.write_text("q\td1\t1\nq\td2\t2\t.25\n")
    with pytest.raises(DataError, match="line 2: expected 3 fields 'qid docid rank', found 4"):
        trec.read_run(path)


def test_judgements_that_are_written_are_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, QRELS)
    qrels = trec.read_qrels(path)
    trec.write_qrels(qrels, tmp_path / "again.gz")
    again = trec.read_qrels(tmp_path / "again.gz")
    for name in ("qid", "docid", "relevance"):
        assert getattr(again, name).tolist() == getattr(qrels, name).tolist()
    wrong = Qrels(np.array(["a b"]), np.array(["d"]), np.array([1]))
    with pytest.raises(DataError, match="qid: expected text without white space, found 'a b'"):
        trec.write_qrels(wrong, path)
    assert path.read_text() == QRELS
