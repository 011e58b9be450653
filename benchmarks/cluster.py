"""Learning on a cluster: rounds to a gap of 0.001, bytes that travel, and work of the driver.

1,000 queries of 100 rows with 136 features. Shards are asked one after the other in this process:
what is counted does not depend on who answers. Only the last rows, seconds of a round on worker
processes, do.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import synthetic
from benchmarks.row import Row
from didyma.data import Groups, Lists
from didyma.distributed.cocoa import CoCoA
from didyma.distributed.problem import ShardedProblem, ShardState
from didyma.distributed.workers import Cluster, Here
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.tasks.losses import AveragePrecision
from didyma.tasks.ranking import RankingProblem

CS = (1.0, 100.0, 1e4)
SHARDS = (4, 16)
PROCESSES = (1, 2, 4)
MOST = {1.0: 20, 100.0: 60, 1e4: 500}  # rounds, by C
SOLVERS: dict[str, Callable[[], Any]] = {"bcfw": lambda: CoCoA(BCFW()), "one-slack": OneSlack}


class Counting(Here):
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
    for name, data in (
        ("features in [0, 1]", uniform),
        ("standardised features", synthetic.standardise(uniform)),
    ):
        for C in CS:
            for solver in SOLVERS:
                for n_shards in SHARDS if solver == "bcfw" else SHARDS[:1]:
                    title = f"{name}, C = {C:g}, {solver}, {n_shards} shards"
                    rows += _rounds(title, data, n_shards, SOLVERS[solver](), C)
    return [*rows, *_seconds(uniform)]


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


def _seconds(data: Lists) -> list[Row]:
    """A round of three passes on so many worker processes, less what the work itself takes."""
    from distributed import Client, LocalCluster

    rows = []
    for n in PROCESSES:
        with (
            LocalCluster(
                n_workers=n, threads_per_worker=1, processes=True, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
            Cluster(client, client.scatter(_cut(data, n))) as workers,
        ):
            problem = _problem(workers, data, n)
            problem.risks(np.zeros(problem.n_features))  # reads and compiles
            waits = []
            for _ in range(20):
                start = time.perf_counter()
                workers.ask(_nothing)
                waits.append(time.perf_counter() - start)
            start = time.perf_counter()
            found = CoCoA(BCFW()).solve(problem, 100.0)
            spent = time.perf_counter() - start
            rows += [
                Row(f"{n} processes: a round without work", 1e3 * min(waits), "ms"),
                Row(f"{n} processes: fit, C = 100", spent, "s"),
                Row(f"{n} processes: iterations", found.result.n_iter, "iterations"),
            ]
    return rows


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
    return ShardState(lists, RankingProblem(lists.X, lists.y, groups, AveragePrecision()))


def _nothing(part: ShardState) -> None:
    pass
