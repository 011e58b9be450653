"""Additive rankers over binned rows, in units of one pair of products of the unbinned matrix.

The pair is X @ w and X.T @ c in double precision; everything runs on one thread. A fit checks its
input, chooses 32 bins for each feature, bins all rows and solves to a gap of 0.1 %. At a large C
and few queries passes stop paying, with monotone columns and without.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import clone

from benchmarks import synthetic
from benchmarks.row import Row
from benchmarks.timing import blas_threads, interleave, products, stopwatch
from didyma.learning.row_bcfw import RowBCFW
from didyma.ranking.additive import AdditiveSVMRanker
from didyma.ranking.bins import Bins
from didyma.ranking.interactions import rank_pairs
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem

BINS, C = 32, 4.0
LARGE_C, FEW, MONOTONE = 1e5, 60, 40  # queries, and columns each way
TIMES = 5
PAIRS = "pairs of products"


def run(scale: float = 1.0) -> list[Row]:
    data = synthetic.dense(max(10, round(1000 * scale)))
    ranker = AdditiveSVMRanker(C=C, bins=BINS, line="quantile", interactions=0, n_jobs=1)
    bins = ranker.fit(data).bins_
    binned = ranker._design_rows(data.X)
    problem = RankingProblem(binned, data.y, data.groups, AveragePrecision(), n_jobs=1)
    w = RowBCFW().solve(problem, C).w
    levels = bins.levelled(binned.counts()).coarse(binned.bins)
    left, _ = problem.respond(problem.scores(w))
    allowed = np.ones(levels.shape[1], bool)
    work = {
        "fit": partial(ranker.fit, data.X, data.y, qid=data.qid),
        "bins": lambda: Bins.of(data.X, BINS).transform(data.X),
        "cut of all queries": partial(problem.cut_all, w),
        "solve": partial(RowBCFW().solve, problem, C),
        "pairs": partial(rank_pairs, levels, left, allowed),
    }
    with blas_threads(1):
        for each in work.values():
            each()  # warms up
        timers = {"limit": products(data.X, repeats=3)}
        seconds = interleave(timers | {name: stopwatch(each) for name, each in work.items()}, TIMES)
    pairs = partial(seconds.ratio, other="limit")
    return [
        Row.at_most(f"fit, {BINS} bins, C = {C:g}", pairs("fit"), PAIRS, 15),
        Row("choosing bins and binning", pairs("bins"), PAIRS),
        Row("solving alone", pairs("solve"), PAIRS),
        Row("solving alone", ranker.result_.passes, "passes"),
        Row("cut of all queries: scores, oracles, histograms", pairs("cut of all queries"), PAIRS),
        Row(
            f"all {levels.shape[1] * (levels.shape[1] - 1) // 2:,} pairs of features",
            float(np.median(seconds["pairs"])),
            "s",
        ),
        *_large_C(max(10, round(FEW * scale))),
    ]


def _large_C(n_queries: int) -> list[Row]:
    data, columns = synthetic.dense(n_queries), list(range(2 * MONOTONE))
    free = AdditiveSVMRanker(C=LARGE_C, bins=BINS, line="quantile", interactions=0, n_jobs=1)
    signs = {"increasing": columns[::2], "decreasing": columns[1::2]}
    rankers = {"any": free, "monotone": clone(free).set_params(**signs)}
    work = {name: partial(ranker.fit, data) for name, ranker in rankers.items()}
    with blas_threads(1):
        seconds = interleave({name: stopwatch(each) for name, each in work.items()}, TIMES)
    name = f"{n_queries} queries, C = {LARGE_C:g}"
    few = f"{name}, {len(columns)} monotone columns"
    return [
        Row(f"{name}: fit", float(np.median(seconds["any"])), "s"),
        Row(f"{few}: fit", float(np.median(seconds["monotone"])), "s"),
        Row(f"{few}: gap", float(100 * rankers["monotone"].result_.relative_gap), "%"),
    ]
