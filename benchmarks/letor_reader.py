"""Reading a LETOR file: didyma against scikit-learn's ``load_svmlight_file``, in one run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from didyma.formats import letor

ROWS, FEATURES, ROWS_PER_QUERY = 40_000, 136, 100


def generate(path: Path, digits: str, comments: bool) -> None:
    """Write dense rows of Gaussian numbers with integer query ids, the only ones both can read."""
    rng = np.random.default_rng(0)
    names = [f" {index}:%{digits}" for index in range(1, FEATURES + 1)]
    with path.open("w") as file:
        for row in range(ROWS):
            label, query = rng.integers(5), row // ROWS_PER_QUERY + 1
            values = tuple(rng.normal(size=FEATURES).tolist())
            comment = f" #docid = GX{row:03d}-86-{row:07d} inc = 1 prob = 0.08" if comments else ""
            file.write(f"{label} qid:{query}{''.join(names) % values}{comment}\n")


def best_of(times: int, function: Callable[[], Any]) -> tuple[float, Any]:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def run() -> list[dict[str, Any]]:
    """Rows (name, seconds, rows per second, ratio to scikit-learn's), for three kinds of file."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.letor")
        for kind, digits, comments in (
            ("6 decimals", ".6f", False),
            ("6 decimals, document ids", ".6f", True),
            ("17 digits", ".17g", False),
        ):
            generate(path, digits, comments)
            letor.read(path)  # compiles
            ours, data = best_of(2, lambda: letor.read(path))
            theirs, (X, y, qid) = best_of(2, lambda: load_svmlight_file(path, query_id=True))
            np.testing.assert_array_equal(data.X, X.toarray())
            np.testing.assert_array_equal(data.y, y)
            np.testing.assert_array_equal(data.qid, qid.astype(str))
            for name, seconds in (("didyma", ours), ("scikit-learn", theirs)):
                rows.append(
                    {
                        "name": f"{name}, {kind}",
                        "seconds": seconds,
                        "rows/s": ROWS / seconds,
                        "ratio": theirs / seconds,
                    }
                )
    return rows


if __name__ == "__main__":
    for row in run():
        print(
            f"{row['name']:40} {row['seconds']:8.3f} s {row['rows/s']:12,.0f} rows/s"
            f" {row['ratio']:6.1f}x"
        )
