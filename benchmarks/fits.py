"""Whole fits, in units of one pair of products X @ w and X.T @ c, everything on one thread.

Reading is excluded; checking the input and grouping the rows are part of a fit. Of real collections
the training queries are fitted, as for an equal measure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks import synthetic
from benchmarks.equal_measure import absent, collections
from benchmarks.row import Row
from benchmarks.timing import blas_threads, interleave, products, stopwatch
from didyma.data.lists import Lists
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.learning.solution import Solution
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from didyma.ranking.svm import SVMRanker

C = 100.0
RAMP_C = SVMRanker("ndcg@10").weight()  # by default
PATH, RAMP_PATH = np.geomspace(0.5, C, 8), np.geomspace(0.1 * RAMP_C, RAMP_C, 8)
TIMES, TIMES_REAL = 5, 15
ROUNDS = 3  # of what only informs
PAIRS = "pairs of products"


def run(scale: float = 1.0) -> list[Row]:
    uniform = synthetic.dense(max(10, round(1000 * scale)))
    rows = []
    with blas_threads(1):
        for name, data, most, others in (
            ("features in [0, 1]", uniform, 4.5, (10.0, 1e3, 1e4)),
            ("standardised features", synthetic.standardise(uniform), 7, (10.0, 1e3)),
            ("normal features", synthetic.normal(max(10, round(1000 * scale))), 7, ()),
        ):
            limit, *ratios = _estimator(name, data, TIMES)
            rows += [Row.at_most(limit.name, limit.value, limit.unit, most), *ratios]
            rows += _solvers(name, data, others)
        for name, split in collections() if scale >= 1 else ():
            rows += [absent(name)] if split is None else _estimator(name, split[0], TIMES_REAL)
    return rows


def _estimator(name: str, data: Lists, times: int) -> list[Row]:
    ranker, measured = SVMRanker(C=C, n_jobs=1), SVMRanker("ndcg@10", n_jobs=1)

    def fit(ranker: SVMRanker) -> None:
        ranker.fit(data)
        assert ranker.result_.converged

    def path(ranker: SVMRanker, values: NDArray[np.float64]) -> None:
        rankers = ranker.path(data, None, values)
        assert all(each.result_.converged for each in rankers)

    fit(ranker)  # warms up
    timers = {
        "limit": products(data.X, repeats=3),
        "fit": stopwatch(partial(fit, ranker)),
        "path": stopwatch(partial(path, ranker, PATH)),
        "ramp": stopwatch(partial(fit, measured)),
        "ramps": stopwatch(partial(path, measured, RAMP_PATH)),
    }
    seconds = interleave(timers, times)
    several = f"path of {len(PATH)} values up to C ="
    ramp = f"{name}: ndcg@10 as by default, the ramp bound"
    return [
        Row(f"{name}: fit, C = {C:g}", seconds.ratio("fit", "limit"), PAIRS),
        Row.at_most(f"{name}: {several} {C:g}", seconds.ratio("path", "fit"), "fits", 2),
        Row.at_most(ramp, seconds.ratio("ramp", "fit"), "fits", 5),
        Row(f"{ramp}, {several} {RAMP_C:g}", seconds.ratio("ramps", "ramp"), "of its fits"),
    ]


def _solvers(name: str, data: Lists, others: tuple[float, ...]) -> list[Row]:
    """What the solvers cost without the estimator around them, and how C and the cache matter."""
    problem = RankingProblem(data.X, data.y, data.groups, AveragePrecision(), n_jobs=1)
    limit = products(data.X, repeats=3)

    def rows(what: str, solve: Callable[[], Solution]) -> list[Row]:
        solutions: list[Solution] = []
        timers = {"limit": limit, "solve": stopwatch(lambda: solutions.append(solve()))}
        seconds = interleave(timers, ROUNDS)
        result = solutions[0].result
        label = f"{name}: {what}" + ("" if result.converged else f" ({result.status})")
        return [
            Row(label, seconds.ratio("solve", "limit"), PAIRS),
            Row(label, result.passes, "passes"),
        ]

    OneSlack(max_iter=1).solve(problem, C)  # warms up
    result = rows(f"BCFW alone, C = {C:g}", partial(BCFW().solve, problem, C))
    steep = np.geomspace(0.5, 1e4, 8)
    result += rows(
        f"BCFW alone, path of 8 values up to C = {steep[-1]:g}", partial(_path, problem, steep)
    )
    result += rows(f"one-slack, C = {C:g}", partial(OneSlack().solve, problem, C))
    for other in others:
        result += rows(f"BCFW alone, C = {other:g}", partial(BCFW().solve, problem, other))
        if other >= 1e3:
            uncached = BCFW(n_planes=2)
            label = f"BCFW without cache of planes, C = {other:g}"
            result += rows(label, partial(uncached.solve, problem, other))
    return result


def _path(problem: RankingProblem, values: NDArray[np.float64]) -> Solution:
    """The last solution of a path, with the passes of all of them."""
    solution, passes = None, 0.0
    for value in values:
        solution = BCFW().solve(problem, value, start=solution)
        passes += solution.result.passes
    return replace(solution, result=replace(solution.result, passes=passes))
