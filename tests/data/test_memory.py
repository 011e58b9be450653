"""What reading holds beyond its result, and data that are larger than memory."""

from __future__ import annotations

import os
import subprocess
import sys
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


ROWS_MB, ROOM_MB = 96, 64

# Everything is done with little data first: libraries and compiled code do not count. From then on
# the process may take ROOM_MB more, and every array that is not mapped counts.
CODE = """
import resource, sys
from pathlib import Path
import numpy as np
from didyma import formats
from didyma.cli import app
from didyma.data.lists import Lists
from didyma.data.lists_folder import write_blocks

folder, megabytes, room = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
FEATURES = 64

def parts(n_blocks):
    random = np.random.default_rng(0)
    for block in range(n_blocks):
        X = random.normal(size=(4096, FEATURES)).astype(np.float32)
        y = (X[:, :4].sum(axis=1) > 2.0).astype(float)
        names = np.array([f"{block}-{row // 64}" for row in range(4096)])
        order = random.permutation(4096)  # rows of a query do not stand together
        yield Lists(X[order], y[order], names[order], zero_based=False)

def command(*words):
    try:
        app([str(word) for word in words])
    except SystemExit as end:
        assert not end.code, words

def all_of_it(lists, n_blocks):
    write_blocks(parts(n_blocks), lists)
    model = folder / "model"
    common = ("--tol", 0.2, "--C", 0.01, "--jobs", 1)
    command("fit", lists, "-o", model, *common)
    command("fit", lists, "--scale", "query-minmax", "-o", model, *common)
    command("predict", model, lists, "-o", folder / "scores")
    command("eval", model, lists, "--measures", "AP")
    command("inspect", lists)

all_of_it(folder / "small.lists", 2)
status = Path("/proc/self/status").read_text().split()
taken = 1024 * int(status[status.index("VmData:") + 1])
resource.setrlimit(resource.RLIMIT_DATA, (taken + (room << 20),) * 2)
try:
    np.ones(megabytes << 20, np.uint8)
    sys.exit("the limit is none")
except MemoryError:
    pass
lists = folder / "large.lists"
all_of_it(lists, megabytes * 2**20 // (4096 * FEATURES * 4))
assert formats.read(lists).X.nbytes >= megabytes << 20
assert len((folder / "scores").read_text().splitlines()) == len(formats.read(lists))
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of this kind are Linux's")
def test_data_larger_than_memory(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path), str(ROWS_MB), str(ROOM_MB)],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.endswith("done\n")
