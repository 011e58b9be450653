"""One pass over the data against the two matrix-vector products that it cannot do without.

A pass of BCFW (scores, argmax, update, query by query) runs on one thread, and so do its products;
`cut_all` and its products use every core. The products of dense data are those in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.row import Row
from benchmarks.timing import Timer, blas_threads, cores, interleave, products, stopwatch
from didyma._core.learning import sweep as sweep_cuts
from didyma.data.lists import Lists
from didyma.learning.bcfw import BCFW, PlaneDual
from didyma.ranking.losses import NDCG, AveragePrecision, ItemwiseLoss
from didyma.ranking.problem import RankingProblem

C = 100.0
TIMES = 15
WARM = 3  # passes that warm up and fill the cache of planes
TARGET = 1.2
PASS = {"float64": 0.5, "float32": 0.4}  # of a pair of float64 products
GRADED = 2.0
LONG = 100_000  # rows of one query


def run(scale: float = 1.0) -> list[Row]:
    queries = max(10, round(1000 * scale))
    double = synthetic.dense(queries)
    single = Lists(np.asarray(double.X, dtype=np.float32), double.y, double.qid)
    sparse = synthetic.indicators(max(2, round(200 * scale)))
    rows = []
    for data, name in ((double, "float64"), (single, "float32")):
        for kind, value in _ratios(data, double.X).items():
            if "BCFW" in kind:
                rows.append(Row.at_most(f"{kind}, {name}", value, "x", PASS[name]))
            elif name == "float64" and kind != "cut_all, 1 thread":
                rows.append(Row.at_most(f"{kind}, {name}", value, "x", TARGET))
            else:
                rows.append(Row(f"{kind}, {name}", value, "x"))
    # SciPy's sparse products know one thread only, so there is nothing to set `cut_all`'s against.
    for kind, value in _ratios(sparse, sparse.X, most_threads=1).items():
        rows.append(Row.at_most(f"{kind}, CSR (SciPy's products)", value, "x", 2.0))
    return rows + _graded(queries, max(100, round(LONG * scale)))


def _graded(queries: int, longest: int) -> list[Row]:
    """Grades 0 to 4: passes, and one long query."""
    data, long = synthetic.graded(queries), synthetic.graded(1, rows=longest)
    losses = (NDCG(), NDCG(k=10), AveragePrecision())
    rows = []
    with blas_threads(1):
        timers = {"limit": products(data.X)}
        for loss in losses:
            timers[str(loss)] = sweep(_problem(data, 1, loss))
        seconds = interleave(timers, TIMES)
        for loss in losses:
            value = seconds.ratio(str(loss), "limit")
            rows.append(Row.at_most(f"BCFW pass, five grades, {loss}", value, "x", GRADED))
        for loss in losses[:2]:
            timer = _cut_all(_problem(long, 1, loss))
            name = f"one query of {longest:,} rows, five grades, {loss}"
            rows.append(Row.at_most(name, min(timer() for _ in range(3)), "s", 1.0))
    return rows


def _ratios(data: Lists, X: Any, most_threads: int | None = None) -> dict[str, float]:
    """Times in units of the products with X."""
    ratios = {}
    with blas_threads(1):
        timers = {  # a problem each: it remembers the orders of its last visit
            "limit": products(X),
            "sweep": sweep(_problem(data, 1)),
            "cut_all": _cut_all(_problem(data, 1)),
        }
        seconds = interleave(timers, TIMES)
        ratios["BCFW pass, 1 thread"] = seconds.ratio("sweep", "limit")
        ratios["cut_all, 1 thread"] = seconds.ratio("cut_all", "limit")
    if (n := most_threads or cores()) > 1:
        with blas_threads(n):
            timers = {"limit": products(X), "cut_all": _cut_all(_problem(data, n))}
            seconds = interleave(timers, TIMES)
            ratios[f"cut_all, {n} threads"] = seconds.ratio("cut_all", "limit")
    return ratios


def _problem(data: Lists, n_jobs: int, loss: ItemwiseLoss | None = None) -> RankingProblem:
    return RankingProblem(data.X, data.y, data.groups, loss or AveragePrecision(), n_jobs=n_jobs)


def sweep(problem: RankingProblem) -> Timer:
    """BCFW's visit to every query in its random order, each pass continuing the one before.

    The solver's own passes may leave queries out, so the pass is called here without the solver.
    """
    n_planes = BCFW()._planes_for(problem)
    dual = PlaneDual.zero(C * problem.weights, problem.n_features, n_planes, C)
    gaps, all_alike = np.empty(problem.n_examples), np.zeros(problem.n_examples)
    rng = np.random.default_rng(0)

    def visit_all() -> None:
        order = BCFW._choose(all_alike, rng)
        sweep_cuts(problem.kernel, order, dual.planes, dual.scales, gaps, dual.w)

    for _ in range(WARM):
        visit_all()
    return stopwatch(visit_all)


def _cut_all(problem: RankingProblem) -> Timer:
    w = BCFW().solve(problem, C).w
    problem.cut_all(w)  # with pages in memory
    return stopwatch(lambda: problem.cut_all(w))
