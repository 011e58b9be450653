"""What reading holds beyond its result; arrays are counted as they are allocated."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from didyma.data import delimited, formats, frame, letor
from didyma.data.lists import Lists
from didyma.data.text_columns import TextBlock

N_ROWS, N_FEATURES = 6_000, 40


def make() -> Lists:
    X = np.random.default_rng(0).random((N_ROWS, N_FEATURES)).round(4)
    qid = np.repeat([f"q{k}" for k in range(N_ROWS // 20)], 20)
    return Lists(X, np.zeros(N_ROWS), qid, feature_names=tuple(f"f{k}" for k in range(N_FEATURES)))


@pytest.mark.parametrize("name", ["a.letor", "a.csv", "a.parquet"])
def test_reading_needs_little_more_than_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Blocks are as small beside the file as they are beside one that is worth counting."""
    monkeypatch.setattr(delimited, "PIECE", 1 << 14)
    monkeypatch.setattr(frame, "BLOCK", 1 << 16)
    monkeypatch.setattr(letor, "_sources", lambda path: lambda: TextBlock.blocks(path, 1 << 15))
    formats.write(make(), tmp_path / name)
    found = formats.read(tmp_path / name)
    size = found.X.nbytes + found.y.nbytes + found.qid.nbytes
    del found
    tracemalloc.start()
    try:
        found = formats.read(tmp_path / name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == N_ROWS
    assert peak <= 1.3 * size


@pytest.mark.parametrize("rows_of_group", [7, 100, 1000])
def test_pieces_of_parquet_are_small_and_make_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_of_group: int
) -> None:
    """PyArrow's memory cannot be counted so, but the pieces that it is asked for can."""
    writer = pytest.importorskip("pyarrow.parquet")
    block = 800
    monkeypatch.setattr(frame, "BLOCK", block)
    path, names = tmp_path / "a.parquet", [f"f{k}" for k in range(9)]
    table = np.arange(9.0 * 500).reshape(500, 9)
    arrow = pytest.importorskip("pyarrow")
    columns = dict(zip(names, table.T))
    writer.write_table(arrow.table(columns), path, row_group_size=rows_of_group)
    seen = np.zeros_like(table)
    with frame.open_parquet(path) as file:
        for before, piece in file.pieces(names):
            own = [names.index(name) for name in piece.column_names]
            assert 8 * piece.num_rows * len(own) <= 2 * block or len(own) == 1
            rows = slice(before, before + piece.num_rows)
            np.testing.assert_array_equal(piece.to_pandas().to_numpy(), table[rows, own])
            seen[rows, own] += 1
    assert (seen == 1).all()
    parts = list(frame.parquet_blocks(path))
    assert max(8 * part.num_rows * part.num_columns for part in parts) <= block
    np.testing.assert_array_equal(np.vstack([part.to_pandas() for part in parts]), table)
