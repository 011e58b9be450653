from __future__ import annotations

import gzip
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from didyma.applications.alignment import reader as nli
from didyma.applications.coreference import reader as coreference
from didyma.applications.motif import fasta
from didyma.data import conll, formats, letor, table, trec
from didyma.data import word_vectors as vectors
from didyma.data.lists import Lists
from didyma.data.text_columns import TextBlock
from didyma.data.texts import qa
from didyma.errors import DataError
from didyma.nbest import formats as nbest
from didyma.ranking.svm import SVMRanker
from tests.data.same import assert_same


@pytest.mark.parametrize(
    "name",
    ["a", "a.txt", "a.letor.gz", "a.svm", "a.train", "a.csv", "a.TSV.gz", "a.parquet", "a.npz"],
)
def test_the_name_tells_the_format(tmp_path: Path, name: str) -> None:
    data = Lists(np.array([[0.1, 2.0], [0.0, 1e-3]]), np.array([1.0, 0.0]), np.array(["q", "q"]))
    formats.write(data, tmp_path / name)
    assert_same(formats.read(tmp_path / name), data)


def test_options_reach_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 1:1\n")
    assert formats.read(tmp_path / "a.txt", group=[1], n_features=3, sparse=True).X.shape == (1, 3)
    (tmp_path / "a.csv").write_text("grade,query,x\n1,a,2\n")
    assert formats.read(tmp_path / "a.csv", label="grade", qid="query").X.tolist() == [[2]]


@given(
    st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=1, max_size=4),
    st.lists(st.sets(st.integers(0, 5), max_size=4), min_size=1, max_size=4),
    st.booleans(),
)
def test_the_same_index_is_the_same_column(
    tmp_path_factory: pytest.TempPathFactory,
    train: list[set[int]],
    test: list[set[int]],
    sparse: bool,
) -> None:
    folder = tmp_path_factory.mktemp("like")
    for name, rows in (("train", train), ("test", test)):
        lines = (" ".join(f"{k}:{k + 1}" for k in sorted(row)) for row in rows)
        (folder / name).write_text("".join(f"1 qid:a {line}\n" for line in lines))
    known = formats.read(folder / "train")
    least, greatest = (0 if known.zero_based else 1), known.X.shape[1] - (known.zero_based is True)
    if {k for row in test for k in row} <= set(range(least, greatest + 1)):
        data = formats.read(folder / "test", like=known, sparse=sparse)
        X = data.X.toarray() if sparse else data.X
        for row, listed in zip(X, test):
            assert {int(k) + least for k in np.flatnonzero(row)} == listed
            assert {int(value) - 1 for value in row[row != 0]} == listed
        assert data.features == known.features
    else:
        with pytest.raises(DataError, match=r"test, line [0-9]+, feature"):
            formats.read(folder / "test", like=known)


@pytest.mark.parametrize("zero_based", [False, True, None])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("name", ["a.txt", "a.npz"])
def test_where_indices_begin_is_kept(
    tmp_path: Path, zero_based: bool | None, sparse: bool, width: int, name: str
) -> None:
    X = np.zeros((2, width))
    data = Lists(
        sp.csr_array(X) if sparse else X, np.ones(2), np.array(["a", "a"]), zero_based=zero_based
    )
    formats.write(data, tmp_path / name)
    again = formats.read(tmp_path / name)
    assert again.X.shape == (2, width)
    assert again.zero_based == (bool(zero_based) if name == "a.txt" else zero_based)


def test_names_of_columns_without_names_follow_their_indices(tmp_path: Path) -> None:
    data = Lists(np.eye(2), np.ones(2), np.array(["a", "a"]), zero_based=True)
    formats.write(data, tmp_path / "a.csv")
    assert formats.read(tmp_path / "a.csv").feature_names == ("f0", "f1")


def test_like_a_model(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("1 qid:a 0:1 1:2\n0 qid:a 0:3 1:1\n")
    (tmp_path / "test.txt").write_text("1 qid:a 1:2\n")
    ranker = SVMRanker().fit(formats.read(tmp_path / "train.txt"))
    assert formats.read(tmp_path / "test.txt", like=ranker).X.tolist() == [[0, 2]]
    with pytest.raises(DataError, match="like: expected judged results or a fitted model"):
        formats.read(tmp_path / "test.txt", like=SVMRanker())


def test_like_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,qid,x,y\n1,a,2,3\n")
    (tmp_path / "b.csv").write_text("z,y,qid,x,label\n9,3,a,2,1\n")
    (tmp_path / "c.csv").write_text("label,qid,x\n1,a,2\n")
    known = formats.read(tmp_path / "a.csv")
    assert formats.read(tmp_path / "b.csv", like=known).X.tolist() == [[2, 3]]
    with pytest.raises(DataError, match=r"c\.csv: expected also the features y"):
        formats.read(tmp_path / "c.csv", like=known)


WORD = "\t_\t_\t_\t_\t_\t_\t_\t_\n"
TEXTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "letor": (letor.read, "1 qid:a 1:2 # d1\n0 qid:b 2:3 # d2\n\n1 qid:b 1:1\n"),
    "sizes": (lambda path: letor._read_sizes(path), "2\n1\n"),
    "run": (trec.read_run, "q Q0 d1 1 2.5 tag\nq Q0 d2 2 1.5 tag\n"),
    "qrels": (trec.read_qrels, "q 0 d1 1\nq 0 d2 0\n"),
    "csv": (table.read, "label,qid,x\n1,a,2\n0,b,3\n"),
    "tsv": (lambda path: table.read(path), "label\tqid\tx\n1\ta\t2\n0\tb\t3\n"),
    "conll": (conll.read, f"# text = a b\n1\ta{WORD}2\tb{WORD}\n1\tc{WORD}\n"),
    "coreference": (
        coreference.read,
        "#begin document (d); part 0\nd 0 0 a (1)\nd 0 1 b -\n\nd 0 0 c (1)\n\n#end document\n",
    ),
    "jsonl": (nbest.read, '{"candidates": [{"text": "a"}]}\n{"candidates": [{"text": "b"}]}\n'),
    "moses": (nbest.read, "0 ||| a ||| lm= 1 ||| 2\n1 ||| b ||| lm= 3 ||| 4\n"),
    "snli": (nli.read, '{"sentence1": "a", "sentence2": "b"}\n' * 2),
    "sick": (nli.read, "a b\tc\t0\nd\te\t2\n"),
    "wikiqa": (qa.read_wikiqa, "who ?\tAda .\t1\nwho ?\tNobody .\t0\n"),
    "vectors": (vectors.read, "2 2\na 1 2\nb 3 4\n"),
    "fasta": (fasta.read, ">a one\nACGT\nNN\n>b\nAC\n"),
}


def plain(value: Any) -> Any:
    """What was read, without the name of the file."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "toarray"):
        return value.toarray().tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "__dict__") or hasattr(value, "__slots__"):
        names = [*getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
        return {name: plain(getattr(value, name)) for name in names if name != "path"}
    return value


@pytest.mark.parametrize("end", ["\r", "\r\n"])
@pytest.mark.parametrize("name", TEXTS)
def test_lines_may_end_in_any_way(tmp_path: Path, name: str, end: str) -> None:
    read, text = TEXTS[name]
    path = tmp_path / f"a.{name}"
    path.write_text(text)
    expected = plain(read(path))
    for changed in (text.replace("\n", end), text.replace("\n", end).removesuffix(end)):
        for packed in (False, True):
            contents = changed.encode()
            path.write_bytes(gzip.compress(contents) if packed else contents)
            assert plain(read(path)) == expected


STREAMED = ("a.letor", "a.txt.gz", "a.csv", "a.tsv", "a.parquet", "a.jsonl", "a.lists")
SIZE, N_PARTS = 6, 20


def make(*, sparse: bool = False) -> Lists:
    random = np.random.default_rng(0)
    n_rows = SIZE * N_PARTS
    X: Any = random.normal(size=(n_rows, 4)) * (random.random((n_rows, 4)) < 0.5)
    qid = np.repeat([f"q{k}" for k in range(n_rows // 4)], 4)
    docid = np.array([f"d{k}" for k in range(n_rows)])
    X = sp.csr_array(X) if sparse else X
    return Lists(X, random.integers(0, 3, n_rows).astype(float), qid, docid, zero_based=False)


def parts(data: Lists) -> Iterator[Lists]:
    for start in range(0, len(data), SIZE):
        yield data.select(np.arange(start, start + SIZE))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", [*STREAMED, "a.npz"])
def test_parts_are_written_as_the_whole_is(tmp_path: Path, name: str, sparse: bool) -> None:
    data = make(sparse=sparse)
    formats.write_blocks(parts(data), tmp_path / name)
    assert_same(formats.read(tmp_path / name), data)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", STREAMED)
def test_few_rows_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(table, "GROUP", 4 * SIZE)
    alive = weakref.WeakSet[Any]()

    def watched() -> Iterator[Lists]:
        for part in parts(make()):
            alive.add(part)
            yield part
            del part
            assert len(alive) <= 3

    formats.write_blocks(watched(), tmp_path / name)


@pytest.mark.parametrize("name", STREAMED)
def test_nothing_is_left_where_a_later_part_fails(tmp_path: Path, name: str) -> None:
    def failing() -> Iterator[Lists]:
        yield from parts(make())
        raise DataError("expected another line", path="in.txt", line=7)

    with pytest.raises(DataError, match=r"in\.txt, line 7"):
        formats.write_blocks(failing(), tmp_path / name)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl"])
def test_document_ids_that_begin_late_have_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "in.letor"
    path.write_text("# rows\n" + "1 qid:a 1:1 #\n" * 20 + "0 qid:b 1:2 # d\n")
    monkeypatch.setattr(letor, "_sources", lambda path: lambda: TextBlock.blocks(path, 40))
    formats.write_blocks(formats.blocks(path), tmp_path / name)
    assert formats.read(tmp_path / name).docid.tolist() == [""] * 20 + ["d"]
    path.write_text("# rows\n" + "1 qid:a 1:1 #\n" * 20)
    assert all(part.docid is None for part in formats.blocks(path))


def test_parts_of_other_columns_are_refused(tmp_path: Path) -> None:
    one = Lists(np.ones((2, 1)), np.ones(2), feature_names=("a",))
    other = Lists(np.ones((2, 1)), np.ones(2), feature_names=("b",))
    for name in STREAMED:
        with pytest.raises(DataError, match="expected the columns of the first rows"):
            formats.write_blocks([one, other], tmp_path / name)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.npz", *STREAMED])
@pytest.mark.parametrize("field", ["qid", "docid"])
@pytest.mark.parametrize("code", [0xD800, 0xDFFF, 0x110000, 0x7FFFFFFF])
def test_ids_beyond_unicode_are_not_written(
    tmp_path: Path, name: str, field: str, code: int
) -> None:
    ids = {"qid": np.array(["a", "a"]), "docid": np.array(["b", "c"])}
    ids[field].view(np.uint32)[1] = code
    columns = [ids]
    if code < 0x110000:
        columns.append({**ids, field: ids[field].astype(object)})
    for own in columns:
        lists = Lists(np.eye(2), np.ones(2), own["qid"], own["docid"])
        for write in (formats.write, lambda data, path: formats.write_blocks([data], path)):
            with pytest.raises(DataError, match=rf"{name}, {field}: expected text, found"):
                write(lists, tmp_path / name)
    assert not list(tmp_path.iterdir())
