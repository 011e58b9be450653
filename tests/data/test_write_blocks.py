"""Rows that are written some at a time: those that all at once would be, and no more are held."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from didyma.data import formats, letor, table
from didyma.data.lists import Lists
from didyma.data.text_columns import TextBlock
from didyma.errors import DataError

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


def dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", [*STREAMED, "a.npz"])
def test_parts_are_written_as_the_whole_is(tmp_path: Path, name: str, sparse: bool) -> None:
    data = make(sparse=sparse)
    formats.write_blocks(parts(data), tmp_path / name)
    found = formats.read(tmp_path / name)
    np.testing.assert_array_equal(dense(found.X), dense(data.X))
    for column in ("y", "qid", "docid"):
        np.testing.assert_array_equal(getattr(found, column), getattr(data, column))
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
