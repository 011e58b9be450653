"""Peak memory of a fit over that of its data; run by `benchmarks.scaling` in a process of its own.

python -m benchmarks.memory QUERIES FEATURES PRECISION
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import numpy as np

from benchmarks import synthetic
from didyma.data import Lists
from didyma.estimators.svm import SVMRanker

STATUS = Path("/proc/self/status")


def peak() -> int:
    """Most bytes this process ever held."""
    if STATUS.exists():  # on Linux a process inherits ru_maxrss from the one that started it
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fill(queries: int, features: int, precision: str) -> Lists:
    """Results written block by block into their final place, so that the data is the peak."""
    rows, block = 100, 100
    X = np.empty((rows * queries, features), dtype=precision)
    y = np.empty(len(X))
    for first in range(0, queries, block):
        part = synthetic.dense(min(block, queries - first), rows, features, seed=first)
        place = slice(rows * first, rows * first + len(part))
        X[place], y[place] = part.X, part.y
    return Lists(X, y, np.repeat(np.arange(queries), rows))


def main() -> None:
    queries, features, precision = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    warm = fill(5, features, precision)
    ranker = SVMRanker(C=100.0).fit(warm.X, warm.y, qid=warm.qid)  # compiles
    data = fill(queries, features, precision)
    before = peak()
    ranker.fit(data.X, data.y, qid=data.qid)
    size = data.X.nbytes + data.y.nbytes + data.qid.nbytes
    print(json.dumps({"data": size, "extra": peak() - before}))


if __name__ == "__main__":
    main()
