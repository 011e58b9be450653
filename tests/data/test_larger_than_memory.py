"""Data larger than the memory that a process may take: converted, learned from, scored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
