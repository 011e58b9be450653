"""Reading a LETOR file: didyma against scikit-learn's ``load_svmlight_file``, in one run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.row import Row
from benchmarks.timing import measure
from didyma.data import letor

ROWS, FEATURES, ROWS_PER_QUERY = 20_000, 136, 100
TIMES = 3
KINDS = (
    ("6 decimals", ".6f", False),
    ("6 decimals, document ids", ".6f", True),
    ("17 digits", ".17g", False),
)


def run(scale: float = 1.0) -> list[Row]:
    rows = max(ROWS_PER_QUERY, round(ROWS * scale))
    result = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.letor")
        for kind, digits, comments in KINDS:
            generate(path, rows, digits, comments)
            _check_equal(path)  # warms up too
            timers = {
                "ours": lambda: letor.read(path),
                "theirs": lambda: _scikit_learn(path),
            }
            seconds = measure(timers, TIMES)
            name = f"scikit-learn's time over ours, {kind}"
            result.append(Row.at_least(name, seconds.ratio("theirs", "ours"), "x", 10))
    return result


def generate(path: Path, rows: int, digits: str, comments: bool) -> None:
    """Write dense rows of Gaussian numbers with integer query ids, the only ones both can read."""
    rng = np.random.default_rng(0)
    names = [f" {index}:%{digits}" for index in range(1, FEATURES + 1)]
    with path.open("w") as file:
        for row in range(rows):
            label, query = rng.integers(5), row // ROWS_PER_QUERY + 1
            values = tuple(rng.normal(size=FEATURES).tolist())
            comment = f" #docid = GX{row:03d}-86-{row:07d} inc = 1 prob = 0.08" if comments else ""
            file.write(f"{label} qid:{query}{''.join(names) % values}{comment}\n")


def _scikit_learn(path: Path) -> Any:
    return load_svmlight_file(path, query_id=True)


def _check_equal(path: Path) -> None:
    data, (X, y, qid) = letor.read(path), _scikit_learn(path)
    np.testing.assert_array_equal(data.X, X.toarray())
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, qid.astype(str))
