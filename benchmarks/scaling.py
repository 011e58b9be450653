"""Does cost grow linearly in rows and in features?

Times at 1x, 4x and 16x the data are divided by as many times the time at 1x; beside them stands how
the two products of a pass grow, since 1x may fit into a cache that 16x does not.
"""

from __future__ import annotations

from functools import partial

from benchmarks import synthetic
from benchmarks.passes import sweep
from benchmarks.row import Row
from benchmarks.timing import Timer, blas_threads, interleave, products, stopwatch
from didyma.data.lists import Lists
from didyma.learning.bcfw import BCFW
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem

ROWS = 100  # a query
QUERIES, FEATURES = 100, 64
FACTORS = (1, 4, 16)
C = 100.0
TIMES = 7
LINEAR = 1.25  # what a growth may exceed its factor by and still be called linear


def run(scale: float = 1.0) -> list[Row]:
    queries = max(10, round(QUERIES * scale))
    rows = []
    with blas_threads(1):
        by_rows = {k: synthetic.dense(k * queries, ROWS, FEATURES) for k in FACTORS}
        rows += _growth("rows", by_rows)
        by_features = {k: synthetic.dense(queries, ROWS, k * FEATURES) for k in FACTORS}
        rows += _growth("features", by_features)
    return rows


def _growth(what: str, data: dict[int, Lists]) -> list[Row]:
    timers: dict[str, Timer] = {}
    for k, each in data.items():
        problem = RankingProblem(each.X, each.y, each.groups, AveragePrecision(), n_jobs=1)
        timers[f"products {k}"] = products(each.X)
        timers[f"BCFW pass {k}"] = sweep(problem)
        timers[f"fit {k}"] = stopwatch(partial(BCFW().solve, problem, C))
    seconds = interleave(timers, TIMES)
    rows = []
    for kind in ("products", "BCFW pass", "fit"):
        for k in FACTORS[1:]:
            value = seconds.ratio(f"{kind} {k}", f"{kind} 1") / k
            name = f"{kind}, {k}x the {what}, over linear"
            if kind == "fit":
                rows.append(Row.at_most(name, value, "x", LINEAR))
            else:
                rows.append(Row(name, value, "x"))
    return rows
