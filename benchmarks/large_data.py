"""Data larger than the memory that a process may take: converted, learned from and scored.

Each step is a process of its own, which has done the same with little data before, and may from
then on take no more memory than half of the rows would fill: ``python -m benchmarks.large_data STEP
FOLDER``. What it reads is on the disk alone, and its time is told over that of reading just that.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.judged_file import FEATURES, write_file
from benchmarks.process import STATUS, child, status
from benchmarks.row import Row

__all__ = ["compare", "do"]

QUERIES, FEW = 14_000, 300
PIECE = 1 << 24  # bytes
LEAST = 1 << 26  # bytes, of any process
TOL = 0.01


def compare(scale: float = 1.0) -> list[Row]:
    """The time of each step over that of reading; nothing where memory cannot be limited."""
    if not STATUS.exists():
        return []
    rows, speed = list[Row](), list[Row]()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # /tmp may be memory
        for name, queries in (("small", FEW), ("large", QUERIES)):
            write_file(Path(folder, f"{name}.letor"), "LETOR", max(2, round(queries * scale)))
        for step in STEPS:
            told = _measured(step, folder)
            rows.append(
                Row(
                    f"{step} of {told['bytes'] / 1e6:,.0f} MB with {told['room'] / 1e6:,.0f} MB, "
                    f"{told['passes']:.2g} passes: time, over reading once",
                    told["seconds"] / told["reading"],
                    "x",
                )
            )
            alone = told["bytes"] / told["reading"] / 1e6
            speed = [Row("reading the folder alone, from the disk", alone, "MB/s")]
    return rows + speed


def _measured(step: str, folder: str) -> dict[str, float]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    figures: dict[str, float] = child("large_data", step, folder, environment=environment)
    return figures


def convert(folder: Path, name: str) -> float:
    """Its text is read twice, for the width must be known first."""
    _command("convert", folder / f"{name}.letor", folder / f"{name}.lists", "--dtype", "float32")
    return 2.0


def fit(folder: Path, name: str) -> float:
    """Learn from the folder, which is mapped."""
    from didyma import SVMRanker, read
    from didyma.model import Model

    ranker = SVMRanker(C=1.0, tol=TOL).fit(read(folder / f"{name}.lists"))
    Model.of(ranker).write(folder / "model")
    return ranker.result_.passes


def predict(folder: Path, name: str) -> float:
    """Score the folder."""
    _command("predict", folder / "model", folder / f"{name}.lists", "-o", folder / "scores")
    return 1.0


STEPS: dict[str, tuple[Callable[[Path, str], float], str]] = {
    "convert": (convert, "letor"),
    "fit": (fit, "lists"),
    "predict": (predict, "lists"),
}


def _command(*words: object) -> None:
    from didyma.cli import app

    try:
        app([str(word) for word in words])
    except SystemExit as end:
        if end.code:
            raise


def _files(path: Path) -> list[Path]:
    return [*path.iterdir()] if path.is_dir() else [path]


def _forget(path: Path) -> None:
    """Leave nothing of a file, or of those in a folder, in the system's memory."""
    for file in _files(path):
        with open(file, "rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _seconds_to_read(path: Path) -> float:
    _forget(path)
    start = time.perf_counter()
    for file in _files(path):
        with open(file, "rb", buffering=0) as opened:
            while opened.read(PIECE):
                pass
    return time.perf_counter() - start


def _limit(room: int) -> None:
    """Let this process take so many bytes more, and make sure that it cannot take many others."""
    resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + room,) * 2)
    try:
        np.ones(2 * room, np.uint8)  # as large as the rows
    except MemoryError:
        return
    raise SystemExit("there is no limit")


def do(step: str, folder: str) -> dict[str, float]:
    """Do a step with little data, then within its limits with all: what it took."""
    work, kind = STEPS[step]
    place = Path(folder)
    work(place, "small")
    path, text = place / f"large.{kind}", place / "large.letor"
    with open(text, "rb") as file:
        n_rows = text.stat().st_size // len(file.readline())
    room = max(LEAST, 4 * FEATURES * n_rows // 2)
    reading = _seconds_to_read(path)
    _forget(path)
    _limit(room)
    start = time.perf_counter()
    passes = work(place, "large")
    seconds = time.perf_counter() - start
    size = sum(file.stat().st_size for file in _files(path))
    return {
        "bytes": size,
        "room": room,
        "reading": reading,
        "passes": passes,
        "seconds": seconds,
    }


if __name__ == "__main__":
    print(json.dumps(do(*sys.argv[1:])))
