"""Parquet files are read as they are, unless they unpack to more than is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.data import formats, frame
from didyma.data.texts import corpus
from didyma.data.texts import reader as texts
from didyma.errors import DataError

arrow = pytest.importorskip("pyarrow")
writer = pytest.importorskip("pyarrow.parquet")

N = 20_000

# Columns that take little of a file and much of memory, and how they are written.
BOMBS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "equal numbers": (lambda: np.zeros(N), {}),
    "equal numbers, packed": (
        lambda: np.zeros(N),
        {"use_dictionary": False, "compression": "zstd"},
    ),
    "truth": (lambda: np.zeros(N, bool), {}),
    "a text in many rows": (lambda: ["long " * 400] * N, {}),
    "texts, packed": (
        lambda: ["long " * 400] * N,
        {"use_dictionary": False, "compression": "zstd"},
    ),
    "texts with a common beginning": (
        lambda: ["long " * 400] * N,
        {"use_dictionary": False, "column_encoding": {"column": "DELTA_BYTE_ARRAY"}},
    ),
}


def write(path: Path, column: Any, **options: Any) -> Path:
    columns = {
        "label": np.ones(N, np.int8),
        "qid": ["q"] * N,
        "query": ["who?"] * N,
        "text": ["a"] * N,
        "column": column,
    }
    writer.write_table(arrow.table(columns), path, row_group_size=N // 2, **options)
    return path


READERS: dict[str, Callable[[Path], Any]] = {
    "table": frame.read_parquet,
    "blocks": lambda path: list(frame.parquet_blocks(path)),
    "features": lambda path: formats.read(path, qid="column", features=[]),
    "texts": lambda path: texts.read(path, query="column"),
    "passages": lambda path: list(corpus.read(path)),
    "rows": lambda path: list(formats.blocks(path, qid="column", features=[])),
}


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("reader", READERS)
def test_what_unpacks_to_too_much_is_refused(
    kind: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, options = BOMBS[kind]
    path = write(tmp_path / "a.parquet", make(), **options)
    limit = 10_000_000 if "text" in kind else 5 * N * 8 - 1  # what is in five columns of numbers
    assert path.stat().st_size < limit / 8
    monkeypatch.setenv("DIDYMA_UNPACK_LIMIT", str(limit))
    with pytest.raises(DataError, match=rf"a\.parquet: unpacks to more than {limit} bytes"):
        READERS[reader](path)


def test_rows_are_unpacked_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a text that stands in many rows is found to be too much, a limit of it is read."""
    path = write(tmp_path / "a.parquet", ["long " * 400] * N)
    sizes = []
    valid = frame._valid
    monkeypatch.setattr(frame, "_valid", lambda part: sizes.append(part.nbytes) or valid(part))
    monkeypatch.setenv("DIDYMA_UNPACK_LIMIT", "1000000")
    with pytest.raises(DataError, match="unpacks to more than 1000000 bytes"):
        frame.read_parquet(path)
    assert len(sizes) > 1
    assert sum(sizes) <= 1_000_000


def test_texts_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows are read at a time."""
    column = [f"{k} {'long ' * (k % 7)}" for k in range(N)]
    path = write(tmp_path / "a.parquet", column)
    whole = frame.read_parquet(path)
    assert whole.column("column").to_pylist() == column
    monkeypatch.setattr(frame, "ROWS", 999)
    assert frame.read_parquet(path).equals(whole)


def test_a_file_that_is_no_smaller_than_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is about what is unpacked, not about large files."""
    columns = {"label": np.arange(N), "x": np.arange(1.0, N + 1)}
    path = tmp_path / "a.parquet"
    writer.write_table(arrow.table(columns), path, use_dictionary=False, compression="none")
    monkeypatch.setenv("DIDYMA_UNPACK_LIMIT", "1000")
    assert frame.read_parquet(path).num_rows == N
