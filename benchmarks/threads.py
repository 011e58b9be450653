"""What a second thread gains: the time on one thread over that on two, and what has one only.

A library of linear algebra (BLAS) has threads of its own, which wait for their next call on a core
that other threads could use. So there are two figures: with BLAS on two threads, and on one. How
many it has is settled when a process begins; to change it later would wake them.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import didyma
from benchmarks import synthetic
from benchmarks.process import child
from benchmarks.row import Row
from benchmarks.timing import Seconds, stopwatch
from didyma.data import letor
from didyma.data.lists import Lists
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from didyma.structures import Tree

QUERIES = 1_000
C = 100.0
ROUNDS, TIMES = 3, 9
REST = 0.3  # seconds, in which threads of BLAS that the work before woke go to sleep
PASSAGES = 100
SHARED = {"a cut of all queries": 1.3, "fit by one-slack": 1.3}  # what should gain, and by how much
BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WAYS = {
    "one": {"OMP_NUM_THREADS": "1"},
    "two threads": dict.fromkeys(BLAS, "2"),
    "two threads, BLAS on one": dict.fromkeys(BLAS, "1"),
}


def run(scale: float = 1.0) -> list[Row]:
    seconds: dict[str, Seconds] = defaultdict(lambda: Seconds({way: [] for way in WAYS}))
    for _ in range(ROUNDS if scale == 1.0 else 1):
        for way, variables in WAYS.items():
            for name, taken in _measured(scale, variables).items():
                seconds[name][way].append(taken)
    rows = []
    for name, of_work in seconds.items():
        for way in list(WAYS)[1:]:
            row: Any = partial(Row.at_least, limit=SHARED[name]) if name in SHARED else Row
            rows.append(row(f"{name}: {way}", of_work.ratio("one", way), "x"))
    return rows


def _measured(scale: float, variables: dict[str, str]) -> dict[str, float]:
    """Seconds of each work in a process of its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    seconds: dict[str, float] = child("threads", scale, environment=inherited | variables)
    return seconds


def measure(scale: float) -> dict[str, float]:
    """Seconds of each work in this process, the median of some calls."""
    data = synthetic.dense(max(20, round(QUERIES * scale)))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        letor.write(data, path)
        for name, make in WORK.items():
            work = make(data, path)
            work()  # warms up
            time.sleep(REST)
            found[name] = median(stopwatch(work)() for _ in range(TIMES))
    return found


def _products(data: Lists, path: Path) -> Callable[[], Any]:
    X: Any = data.X
    w, c = np.ones(X.shape[1]), np.ones(X.shape[0])
    return lambda: (X @ w, X.T @ c)


def _problem(data: Lists) -> RankingProblem:
    return RankingProblem(data.X, data.y, data.groups, AveragePrecision())


def _solve(solver: Any) -> Callable[[Lists, Path], Callable[[], Any]]:
    return lambda data, path: partial(solver.solve, _problem(data), C)


def _cut(data: Lists, path: Path) -> Callable[[], Any]:
    w = np.linspace(-1.0, 1.0, data.X.shape[1])
    return partial(_problem(data).cut_all, w)


def _additive(data: Lists, path: Path) -> Callable[[], Any]:
    return partial(didyma.AdditiveSVMRanker().fit, data)


def _trees(data: Lists, path: Path) -> Callable[[], Any]:
    scores = np.random.default_rng(0).standard_normal((64, 21, 21))
    return partial(didyma.sparsemap, scores, Tree())


def _rank(data: Lists, path: Path) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{k}" for k in rng.zipf(1.3, 100) % 5_000) for _ in range(PASSAGES)]
    judged = [rng.permutation(np.arange(10) < 2) for _ in range(10)]
    asked = [" ".join(texts[k].split()[:6]) for k in range(10)]
    lists = Lists.of_texts(asked, [texts[10 * k : 10 * k + 10] for k in range(10)], judged)
    reranker = didyma.TextReranker(quick=True).fit(lists)
    return partial(reranker.rank, asked[0], texts)


WORK: dict[str, Callable[[Lists, Path], Callable[[], Any]]] = {
    "the two products of a pass, by BLAS": _products,
    "a cut of all queries": _cut,
    "fit by one-slack": _solve(OneSlack()),
    "fit by BCFW": _solve(BCFW()),
    "fit of an additive ranker": _additive,
    "SparseMAP of 64 trees of 20 words": _trees,
    "reading a file of rows": lambda data, path: partial(letor.read, path),
    f"ranking {PASSAGES} passages of 100 words": _rank,
}


if __name__ == "__main__":  # python -m benchmarks.threads SCALE
    print(json.dumps(measure(float(sys.argv[1]))))
