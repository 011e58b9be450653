"""Whole fits, in units of one pair of products X @ w and X.T @ c, everything on one thread.

Reading is excluded; checking the input and grouping the rows are part of a fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks import synthetic
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
PATH = np.geomspace(0.5, C, 8)
TIMES = 5
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
            rows += [*_estimator(name, data, most), *_solvers(name, data, others)]
    return rows


def _estimator(name: str, data: Lists, most: float) -> list[Row]:
    ranker = SVMRanker(C=C, n_jobs=1)

    def fit() -> None:
        ranker.fit(data.X, data.y, qid=data.qid)
        assert ranker.result_.converged

    def path() -> None:
        rankers = ranker.path(data.X, data.y, PATH, qid=data.qid)
        assert all(each.result_.converged for each in rankers)

    measured = SVMRanker("ndcg@10", n_jobs=1)

    def ramp() -> None:
        measured.fit(data.X, data.y, qid=data.qid)
        assert measured.result_.converged

    fit()  # warms up
    timers = {
        "limit": products(data.X, repeats=3),
        "fit": stopwatch(fit),
        "path": stopwatch(path),
        "ramp": stopwatch(ramp),
    }
    seconds = interleave(timers, TIMES)
    return [
        Row.at_most(f"{name}: fit, C = {C:g}", seconds.ratio("fit", "limit"), PAIRS, most),
        Row.at_most(
            f"{name}: path of {len(PATH)} values up to C = {C:g}",
            seconds.ratio("path", "fit"),
            "fits",
            2,
        ),
        Row.at_most(
            f"{name}: ndcg@10 as by default, the ramp bound",
            seconds.ratio("ramp", "fit"),
            "fits",
            5,
        ),
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
