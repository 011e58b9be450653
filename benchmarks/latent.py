"""Latent structures: rankings, CCCP with and without its cuts, motifs and coreference."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import synthetic
from benchmarks.row import Row
from benchmarks.timing import blas_threads, interleave, products, stopwatch
from didyma.applications.coreference.task import CoreferenceTask, MentionPairs
from didyma.applications.motif.task import scan
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.learning.cccp import CCCP
from didyma.learning.perceptron import Perceptron
from didyma.ranking.feature_maps import Positional, Truncated
from didyma.ranking.latent_problem import LatentRankingProblem
from didyma.ranking.losses import AveragePrecision

ROWS, POSITIVES, FEATURES = 100, 5, 136
QUESTIONS, EPOCHS = 857, 100  # WikiQA's training questions; about 10 candidates, 7 features


def run(scale: float = 1.0) -> list[Row]:
    with blas_threads(1):
        return [*_inference(scale), *_epochs(scale), *_rounds(scale), *_applications(scale)]


def _lists(queries: int) -> Lists:
    rng = np.random.default_rng(0)
    y = np.tile((np.arange(ROWS) < POSITIVES).astype(np.float64), queries)
    X = rng.random((queries * ROWS, FEATURES)) + 0.1 * y[:, None]
    return Lists(X, y, np.repeat(np.arange(queries), ROWS))


def _problem(data: Lists, inference: str, online: bool) -> LatentRankingProblem:
    return LatentRankingProblem(
        data.X,
        data.y,
        data.groups,
        AveragePrecision(),
        Positional(),
        inference=inference,
        online=online,
        n_jobs=1,
    )


def _inference(scale: float) -> list[Row]:
    queries = max(2, round(1_000 * scale))
    data = _lists(queries)
    rng = np.random.default_rng(1)
    w = 0.1 * rng.normal(size=FEATURES)
    exact, greedy = (_problem(data, inference, online=False) for inference in ("exact", "greedy"))
    scores = exact.scores(w)
    value = {}
    for name, problem in {"exact": exact, "greedy": greedy}.items():  # warms up
        problem.complete(w)
        problem.cut_all(w)
        coefficients, loss = problem.respond(scores)
        value[name] = loss + coefficients @ scores
    assert value["exact"] >= value["greedy"] - 1e-9
    timers = {
        "exact": stopwatch(lambda: exact.respond(scores), 5),
        "greedy": stopwatch(lambda: greedy.respond(scores), 5),
        "pass": stopwatch(lambda: exact.cut_all(w)),
        "products": products(data.X),
    }
    seconds = interleave(timers, 9)
    name = f"{queries:,} lists of {ROWS} with {POSITIVES} positives"
    return [
        Row.at_most(f"{name}: exact over greedy", seconds.ratio("exact", "greedy"), "x", 3),
        Row("one exact inference", seconds.best("exact") / queries * 1e6, "µs"),
        Row.at_most(
            f"{name}: a pass over two matrix products",
            seconds.ratio("pass", "products"),
            "x",
            2,
        ),
    ]


def _questions(queries: int) -> Lists:
    rng = np.random.default_rng(2)
    sizes = rng.integers(5, 16, size=queries)
    groups = Groups.from_sizes(sizes, int(sizes.sum()))
    y = np.zeros(len(groups.rows))
    y[groups.starts[:-1]] = 1.0
    several = groups.starts[:-1][rng.random(queries) < 0.2]
    y[several + 1] = 1.0
    X = rng.random((len(y), 7)) + 0.2 * y[:, None]
    return Lists(X, y, groups.codes)


def _epochs(scale: float) -> list[Row]:
    data = _questions(max(3, round(QUESTIONS * scale)))
    epochs = max(2, round(EPOCHS * scale))
    problem = _problem(data, "exact", online=True)
    Perceptron(1).solve(problem)  # warms up
    start = time.perf_counter()
    Perceptron(epochs).solve(problem)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    found = starred_epoch(data.X, data.y, data.groups, 1.0)
    plain = time.perf_counter() - start
    np.testing.assert_allclose(
        Perceptron(1, random_state=None).solve(problem).state.w, found, atol=1e-8
    )
    name = f"LSP-AP*, {len(data.groups)} questions"
    return [
        Row(f"{name}, {epochs} epochs", seconds, "s"),
        Row.at_least(
            f"{name}: an epoch of plain Python over ours", plain / (seconds / epochs), "x", 100
        ),
    ]


def starred_epoch(X: Any, y: Any, groups: Groups, C: float) -> NDArray[np.float64]:
    """One epoch of Haponchyk & Moschitti's starred perceptron: it tries every interleaving."""
    w = np.zeros(X.shape[1])
    for q in range(len(groups)):
        rows = groups.rows[groups.starts[q] : groups.starts[q + 1]]
        scores = X[rows] @ w
        order = np.argsort(-scores, kind="stable")
        positives = [r for r in order if y[rows[r]] > 0]
        negatives = [r for r in order if y[rows[r]] == 0]
        n, P = len(rows), len(positives)
        v = 1.0 / np.arange(1, n + 1)
        best, best_loss, violating = -np.inf, 0.0, positives + negatives
        for places in itertools.combinations(range(n), P):
            rest = [rank for rank in range(n) if rank not in places]
            value = sum(v[rank] * scores[r] for rank, r in zip(places, positives))
            value += sum(v[rank] * scores[r] for rank, r in zip(rest, negatives))
            loss = 1.0 - sum((i + 1) / (rank + 1) for i, rank in enumerate(places)) / P
            if value + C * loss > best:
                best, best_loss = value + C * loss, loss
                violating = [0] * n
                for rank, r in zip((*places, *rest), positives + negatives):
                    violating[rank] = r
        if best_loss > 1e-12:
            gold = rows[positives + negatives]
            w += v @ X[gold] - v @ X[rows[violating]]
    return w


def _rounds(scale: float) -> list[Row]:
    """Passes of CCCP from a perceptron's weights, with and without the cuts of old rounds."""
    data = synthetic.dense(max(20, round(300 * scale)))

    def problem(online: bool) -> LatentRankingProblem:
        return LatentRankingProblem(
            data.X,
            data.y,
            data.groups,
            AveragePrecision(),
            Truncated(),
            inference="exact",
            online=online,
            n_jobs=1,
        )

    start = Perceptron(10).solve(problem(True)).w
    passes = {True: 0.0, False: 0.0}
    for C in (10.0, 100.0):
        for reuse in passes:
            found = CCCP(reuse=reuse).solve(problem(False), C, start=start)
            passes[reuse] += found.result.passes
    return [
        Row("CCCP with shifted cuts, C = 10 and 100", passes[True], "passes"),
        Row.at_least(
            "CCCP without them, passes over passes", passes[False] / passes[True], "x", 1.8
        ),
    ]


def _applications(scale: float) -> list[Row]:
    rng = np.random.default_rng(0)
    genome = rng.integers(0, 4, max(100_000, round(10_000_000 * scale))).astype(np.uint8)
    matrix, background = rng.standard_normal((17, 4)), rng.standard_normal(4**3)
    scan(genome, matrix, background)
    seconds = min(stopwatch(lambda: scan(genome, matrix, background))() for _ in range(5))
    mentions = max(50, round(500 * scale))
    x = MentionPairs(mentions, rng.standard_normal((mentions * (mentions - 1) // 2, 30)))
    task, w = CoreferenceTask(30), rng.standard_normal(30)
    task.argmax(w, x)
    clustered = min(stopwatch(lambda: task.argmax(w, x))() for _ in range(5))
    return [
        Row.at_least("motif scan, length 17, one core", len(genome) / seconds / 1e6, "Mb/s", 50),
        Row.at_most(f"coreference of {mentions} mentions", 1e3 * clustered, "ms", 50),
    ]
