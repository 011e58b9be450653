"""Learning on a cluster: rounds to a gap of 0.001, bytes that travel, and work of the driver.

1,000 queries of 100 rows with 136 features. Shards are asked one after the other in this process:
what is counted does not depend on who answers. What does, time on 1, 2 and 4 worker processes, is
predicted from these counts, the work of shards here, and questions that ask for nothing.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.row import Row
from benchmarks.timing import cores
from didyma.cluster.problem import ShardedProblem, ShardState
from didyma.cluster.solvers import CoCoA
from didyma.cluster.workers import Cluster, Workers
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.files import replace_sections
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem

FEATURES = 136
CASES = {"[0, 1]": (1.0, 100.0, 1e4), "standardised": (1.0, 100.0)}  # values of C, by features
SHARDS = (4, 16)
PROCESSES = (1, 2, 4)
MOST = {1.0: 20, 100.0: 60, 1e4: 500}  # rounds, by C
CHECKED = 100.0  # C of the fits that are timed
ANSWER = 1 << 20  # numbers that a shard is asked for, to see how fast they come
PAGE = Path(__file__).parents[1] / "docs" / "SCALING.md"
LARGE_ROWS, LARGE_WORKERS = 10**10, 100  # what the page predicts
PRICE = 0.50  # of an hour of a worker, which is assumed
SOLVERS: dict[str, Callable[[], Any]] = {"bcfw": lambda: CoCoA(BCFW()), "one-slack": OneSlack}


class Counting(Workers):
    """Counts rounds, bytes from and to the driver, and the seconds that shards work."""

    rounds = sent = received = 0
    seconds = 0.0

    def ask(self, question: Any, *common: Any, each: Sequence[Any] = ()) -> list[Any]:
        start = time.perf_counter()
        answers = super().ask(question, *common, each=each)
        self.seconds += time.perf_counter() - start
        self.rounds += 1
        self.sent += len(pickle.dumps((question, common))) + len(pickle.dumps(list(each)))
        self.received += sum(len(pickle.dumps(answer)) for answer in answers)
        return answers


def run(scale: float = 1.0) -> list[Row]:
    uniform = synthetic.dense(max(64, round(1000 * scale)))
    rows = []
    for (name, Cs), data in zip(CASES.items(), (uniform, synthetic.standardise(uniform))):
        for C in Cs:
            for solver in SOLVERS:
                for n_shards in SHARDS if solver == "bcfw" else SHARDS[:1]:
                    title = f"{name}, C = {C:g}, {solver}, {n_shards} shards"
                    rows += _rounds(title, data, n_shards, SOLVERS[solver](), C)
    return [*rows, *(row for n in PROCESSES for row in _check(uniform, n))]


def _rounds(title: str, data: Lists, n_shards: int, solver: Any, C: float) -> list[Row]:
    workers = Counting(_cut(data, n_shards))
    problem = _problem(workers, data, n_shards)
    start = time.perf_counter()
    found = solver.solve(problem, C)
    driver = time.perf_counter() - start - workers.seconds
    assert found.result.converged
    return [
        Row.at_most(f"{title}: rounds", workers.rounds, "rounds", MOST[C]),
        Row(f"{title}: sent", workers.sent / workers.rounds, "bytes a round"),
        Row(f"{title}: received", workers.received / workers.rounds, "bytes a round"),
        Row(f"{title}: driver", 1e3 * driver / workers.rounds, "ms a round"),
    ]


def _check(data: Lists, n: int) -> list[Row]:
    """A fit on so many worker processes, and what the cost model makes of it beforehand."""
    here = Counting(_cut(data, n))
    problem = _problem(here, data, n)
    CoCoA(BCFW()).solve(_problem(Counting(_cut(data, n)), data, n), CHECKED)  # warms up
    CoCoA(BCFW()).solve(problem, CHECKED)
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
        Cluster(client, client.scatter(_cut(data, n))) as workers,
    ):
        problem = _problem(workers, data, n)
        CoCoA(BCFW(max_passes=1)).solve(problem, CHECKED)  # reads, and warms up
        wait = median(_timed(lambda: workers.ask(_nothing)) for _ in range(20))
        slow = median(_timed(lambda: workers.ask(_numbers, ANSWER)) for _ in range(5))
        spent = _timed(lambda: CoCoA(BCFW()).solve(problem, CHECKED))
    speed = 8 * ANSWER * n / max(slow - wait, 1e-9)
    travelling = here.rounds * wait + (here.sent + here.received) / speed
    predicted = here.seconds / min(n, cores()) + travelling
    title = f"{n} processes"
    return [
        Row(f"{title}: rounds", here.rounds, "rounds"),
        Row(
            f"{title}: work of a row in a round", 1e6 * here.seconds / here.rounds / len(data), "µs"
        ),
        Row(f"{title}: a round without work", 1e3 * wait, "ms"),
        Row(f"{title}: into the driver", speed / 1e6, "MB/s"),
        Row(f"{title}: predicted", predicted, "s"),
        Row(f"{title}: measured", spent, "s"),
        Row.at_most(f"{title}: measured over predicted", spent / predicted, "x", 1.5),
    ]


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def write_page(rows: Sequence[Row]) -> None:
    """Put the figures of a run into the page on scaling."""
    replace_sections(PAGE, sections({row.name: row.value for row in rows}))


def sections(found: Mapping[str, float]) -> dict[str, str]:
    """The tables of that page: rounds, what a round costs, the check, and a large problem."""
    rounds = [["C", "features", *(f"`bcfw`, {n} shards" for n in SHARDS), "`one-slack`"]]
    for name, Cs in CASES.items():
        for C in Cs:
            title = f"{name}, C = {C:g}"
            kinds = [*(f"bcfw, {n} shards" for n in SHARDS), f"one-slack, {SHARDS[0]} shards"]
            counts = [f"{found[f'{title}, {kind}: rounds']:.0f}" for kind in kinds]
            rounds.append([f"{C:g}", name, *counts])
    travel = [["shards", "sent a round", "received a round", "driver works"]]
    for n in SHARDS:
        title = f"[0, 1], C = {CHECKED:g}, bcfw, {n} shards"
        sent, received = (found[f"{title}: {what}"] / 1e3 for what in ("sent", "received"))
        travel.append(
            [str(n), f"{sent:.2g} kB", f"{received:.2g} kB", f"{found[f'{title}: driver']:.2g} ms"]
        )
    what = ("rounds", "a round without work", "predicted", "measured", "measured over predicted")
    units = ("", " ms", " s", " s", "")
    checked = [["processes", *what]]
    for n in PROCESSES:
        figures = [f"{found[f'{n} processes: {w}']:.3g}{unit}" for w, unit in zip(what, units)]
        checked.append([str(n), *figures])
    return {
        "rounds": _markdown(rounds),
        "travel": _markdown(travel),
        "check": _markdown(checked),
        "large": _markdown(_large(found)),
    }


def _large(found: Mapping[str, float]) -> list[list[str]]:
    """What the model says of a problem that is too large to try."""
    last, D, K = PROCESSES[-1], FEATURES, LARGE_WORKERS
    row, wait, speed = (
        found[f"{last} processes: {what}"]
        for what in ("work of a row in a round", "a round without work", "into the driver")
    )
    R = found[f"[0, 1], C = {CHECKED:g}, bcfw, {SHARDS[-1]} shards: rounds"]
    work, arrival = 1e-6 * row * LARGE_ROWS / K, 2 * 8 * D * K / (1e6 * speed)
    hours = R * (work + 1e-3 * wait + arrival) / 3600
    return [
        ["", f"{LARGE_ROWS:,} rows, {K} workers of one thread"],
        ["rows of a worker, float32", f"{4e-9 * D * LARGE_ROWS / K:.0f} GB"],
        ["rows of a worker, as bins", f"{1e-9 * D * LARGE_ROWS / K:.0f} GB"],
        ["work in a round", f"{work:.0f} s"],
        ["into the driver in a round", f"{2 * 8e-3 * D * K:.0f} kB, {1e3 * arrival:.2g} ms"],
        [f"rounds, those of {SHARDS[-1]} shards above", f"{R:.0f}"],
        ["a fit", f"{hours:.2g} hours"],
        [f"its price, at {PRICE:.2f} an hour for a worker", f"{PRICE * K * hours:.0f}"],
    ]


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *others = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *others])


def _cut(data: Lists, n_shards: int) -> list[Lists]:
    n_queries = len(data.groups)
    numbers = np.array_split(np.arange(n_queries), n_shards)
    return [data.select_lists(own) for own in numbers]


def _problem(workers: Any, data: Lists, n_shards: int) -> ShardedProblem:
    workers.follow(_part, 0)
    sizes = [len(own) for own in np.array_split(np.arange(len(data.groups)), n_shards)]
    return ShardedProblem(workers, data.X.shape[1], np.array(sizes) / len(data.groups))


def _part(lists: Lists) -> ShardState:
    groups = Groups.from_qid(lists.qid)
    loss = AveragePrecision()
    return ShardState(lists, RankingProblem(lists.X, lists.y, groups, loss, n_jobs=1))


def _nothing(part: ShardState) -> None:
    pass


def _numbers(part: ShardState, count: int) -> Any:
    return np.ones(count)
