"""What a second thread gains: the time on one thread over that on two, and what has one only."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import didyma
from benchmarks import synthetic
from benchmarks.row import Row
from benchmarks.timing import interleave, ratio, stopwatch
from didyma.data import Lists
from didyma.execution import on_threads
from didyma.formats import letor
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.structures import Tree
from didyma.tasks.losses import AveragePrecision
from didyma.tasks.ranking import RankingProblem

QUERIES = 1_000
C = 100.0
TIMES = 9
PASSAGES = 100


def run(scale: float = 1.0) -> list[Row]:
    data = synthetic.dense(max(20, round(QUERIES * scale)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.txt")
        letor.write(data, path)
        seconds: dict[str, dict[int, list[float]]] = {}
        timers = {
            (name, n): stopwatch(_with_threads(partial(make, data, path), n))
            for name, make in WORK.items()
            for n in (1, 2)
        }
        for timer in timers.values():
            timer()  # compiles
        found = interleave({str(key): timer for key, timer in timers.items()}, TIMES)
        for name, n in timers:
            seconds.setdefault(name, {})[n] = found[str((name, n))]
    return [Row(name, ratio(by[1], by[2]), "x") for name, by in seconds.items()]


def _with_threads(make: Callable[[], Callable[[], Any]], n: int) -> Callable[[], Any]:
    with didyma.threads(n):
        work = make()

    def run() -> None:
        with didyma.threads(n):
            work()

    return run


def _products(data: Lists, path: Path) -> Callable[[], Any]:
    X: Any = data.X
    w, c = np.ones(X.shape[1]), np.ones(X.shape[0])
    return lambda: (X @ w, X.T @ c)


def _problem(data: Lists) -> RankingProblem:
    return RankingProblem(data.X, data.y, data.groups, AveragePrecision(), execute=on_threads())


def _solve(solver: Any) -> Callable[[Lists, Path], Callable[[], Any]]:
    return lambda data, path: partial(solver.solve, _problem(data), C)


def _cut(data: Lists, path: Path) -> Callable[[], Any]:
    w = np.linspace(-1.0, 1.0, data.X.shape[1])
    return partial(_problem(data).cut_all, w)


def _additive(data: Lists, path: Path) -> Callable[[], Any]:
    ranker = didyma.AdditiveSVMRanker()
    return lambda: ranker.fit(data)


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
    return lambda: reranker.rank(asked[0], texts)


WORK: dict[str, Callable[[Lists, Path], Callable[[], Any]]] = {
    "the two products of a pass, by BLAS": _products,
    "a cut of all queries": _cut,
    "fit by one-slack": _solve(OneSlack()),
    "fit by BCFW": _solve(BCFW()),
    "fit of an additive ranker": _additive,
    "SparseMAP of 64 trees of 20 words": _trees,
    "reading a file of rows": lambda data, path: lambda: letor.read(path),
    f"ranking {PASSAGES} passages of 100 words": _rank,
}
