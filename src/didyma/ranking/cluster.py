"""Rankers that learn on a cluster.

The ranker is sent to the workers, each of which reads its shard with it and answers for its rows;
the answers of all shards are summed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from didyma.cluster.problem import ShardedLatentProblem, ShardedProblem, ShardState
from didyma.cluster.shards import shards_of
from didyma.cluster.solvers import CoCoA
from didyma.cluster.workers import Cluster, Workers, active_client, refuse_on_cluster
from didyma.data.lists import Lists
from didyma.data.matrix import Columns, dense
from didyma.errors import NothingLearnedWarning, warn
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.learning.monitor import EvalSets
from didyma.learning.solution import Callback, Solution
from didyma.ranking.bins import Bins, categories_of
from didyma.ranking.fitters import Fitter, HingeFitter, RampFitter, RankingResult
from didyma.ranking.ramp import RampProblem
from didyma.ranking.training_input import count_trainable

__all__ = [
    *("ReadShard", "ShardedHinge", "ShardedRamp"),
    *("bin_counts", "categories", "check_learned", "fit_on_cluster", "for_worker"),
    *("path_on_cluster", "sample_of", "sharded", "sharded_fitter"),
]

AnyShardedProblem = TypeVar("AnyShardedProblem", bound=ShardedProblem)

READ, SOLVE = 0, 1  # places in the recipe of a shard's state


@dataclass(frozen=True, eq=False)
class ReadShard:
    """The lists of a shard as its ranker has read them, and which of them it can learn from."""

    lists: Lists
    trainable: NDArray[np.bool_]


def fit_on_cluster(ranker: Any, *rows: Any, **options: Any) -> Any:
    """`Ranker.fit` where the rows are, with the active Dask client."""
    with reading(ranker, *rows, **options) as (workers, weights, n_jobs, evaluation):
        ranker._fit_shards(workers, weights, n_jobs, evaluation)
        check_learned(ranker, workers)
    return ranker


def path_on_cluster(ranker: Any, X: Any, y: Any, Cs: Any = None, **options: Any) -> list[Any]:
    """`SVMRanker.path` where the rows are."""
    with ranker._on_path(Cs) as ascending, reading(ranker, X, y, **options) as shards:
        fitter, evaluation = sharded_fitter(ranker, *shards)
        paths: list[Any] = ranker._path(
            fitter, evaluation, ascending, lambda one: check_learned(one, shards[0])
        )
        return paths


def sharded_fitter(
    ranker: Any,
    workers: Workers,
    weights: NDArray[np.float64],
    n_jobs: int,
    evaluation: EvalSets,
) -> tuple[Fitter, EvalSets]:
    """`SVMRanker._fitter` over shards, and the rows to evaluate on as `_design` makes them."""
    n_features, signs, evaluation = ranker._design_shards(workers, evaluation)
    sent = for_worker(ranker, n_jobs)

    def pose(problem: Any, *loss_and_map: Any) -> ShardedProblem:
        ramp = problem is RampProblem
        kind = ShardedLatentProblem if ramp else ShardedProblem
        shards = workers if ramp or ranker._bound() == "hinge" else workers.branch()
        make = partial(_problem_of_rows, sent, problem, *loss_and_map)
        return sharded(kind, shards, weights, make, n_features, signs)

    return ranker._fitter(pose, ShardedHinge, ShardedRamp), evaluation


def _problem_of_rows(
    ranker: Any, kind: Any, loss: Any, feature_map: Any, lists: Lists, **grades: Any
) -> Any:
    design = lists.with_items(ranker._design_rows(lists.X))
    return ranker._problem(design, kind, loss, feature_map, **grades)


@contextmanager
def reading(
    ranker: Any,
    X: Any,
    y: Any = None,
    qid: Any = None,
    group: Any = None,
    eval_set: Any = None,
    eval_qid: Any = None,
    eval_group: Any = None,
    sample_weight: Any = None,
    coef_init: Any = None,
    eval_names: Any = None,
) -> Iterator[tuple[Cluster, NDArray[np.float64], int, EvalSets]]:
    """Workers that have read their shards, the shards' weights, threads for each, the `eval_set`.

    The ranker then knows the columns and how many queries there are. On exit the workers' state is
    released.
    """
    ranker._check_parameters()
    warm = getattr(ranker, "warm_start", False) or None
    refuse_on_cluster(
        group=group, sample_weight=sample_weight, coef_init=coef_init, warm_start=warm
    )
    client = active_client()
    with Cluster(client, shards_of(client, X, y, qid)) as workers:
        n_jobs = max(1, sum(client.nthreads().values()) // workers.n_shards)
        workers.follow(partial(_read, for_worker(ranker, n_jobs)), READ)
        features, trainable = zip(*workers.ask(_summary))
        features[0].remember(ranker)
        ranker.n_queries_ = count_trainable(np.concatenate(trainable), None)
        counts = np.array([int(flags.sum()) for flags in trainable])
        workers.keep(np.flatnonzero(counts).tolist())
        evaluation = ranker._read_evaluation(eval_set, eval_qid, eval_group, eval_names)
        yield workers, counts[counts > 0] / counts.sum(), n_jobs, evaluation


def for_worker(ranker: Any, n_jobs: int) -> Any:
    """A copy of a ranker that can be sent to workers."""
    sent = copy(ranker)
    sent.callback = None
    sent._takes_categories = False  # shards could differ in what is one
    if hasattr(ranker, "n_jobs"):
        sent.n_jobs = n_jobs
    return sent


def sharded(
    kind: type[AnyShardedProblem],
    workers: Workers,
    weights: NDArray[np.float64],
    make: Any,
    n_features: int,
    signs: NDArray[np.float64] | None = None,
) -> AnyShardedProblem:
    """The sum of the problems that ``make(lists)`` makes of each shard's lists.

    Shards must agree on the bound over grades. Where they would not choose the same one, it is the
    one by thresholds, which is never slow.
    """
    workers.follow(partial(_with_problem, make), SOLVE)
    chosen = {grades for grades in workers.ask(_grades) if grades is not None}
    if len(chosen) > 1:
        workers.follow(partial(_with_problem, partial(make, grades="thresholds")), SOLVE)
        chosen = {"thresholds"}
    return kind(workers, n_features, weights, grades=next(iter(chosen), None), weight_signs=signs)


class ShardedHinge(HingeFitter):
    """`HingeFitter` over shards, on which BCFW is CoCoA+."""

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """See `HingeFitter`."""
        if isinstance(solver, BCFW):
            solver = CoCoA(solver)
        return super().solve(solver, C, callback)


class ShardedRamp(RampFitter):
    """`RampFitter` over shards: by one-slack, whose cuts move from round to round at no cost."""

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """See `RampFitter`."""
        if isinstance(solver, BCFW):
            solver = OneSlack(solver.tol, solver.max_passes)
        return super().solve(solver, C, callback)


def sample_of(workers: Workers, size: int) -> NDArray[np.float64]:
    """A sample of about ``size`` rows: of each shard as many as its share of all rows."""
    n_rows = np.array(workers.ask(_n_rows))
    wanted = np.ceil(size * n_rows / n_rows.sum()).astype(int)
    return np.concatenate(workers.ask(_sample, each=wanted.tolist()))


def categories(workers: Workers, nominal: NDArray[np.bool_]) -> dict[int, NDArray[Any]]:
    """The values of nominal columns in all shards."""
    columns = np.flatnonzero(nominal).tolist()
    values = workers.ask(_categories, columns) if columns else []
    return {j: np.unique(np.concatenate([shard[j] for shard in values])) for j in columns}


def bin_counts(workers: Workers, bins: Bins) -> NDArray[np.float64]:
    """The share of the rows of all shards in each bin of each column."""
    counts = np.sum(workers.ask(_counts, bins), axis=0)
    return np.asarray(counts / counts[:, 0].sum())


def _n_rows(part: ShardState) -> int:
    return len(part.data.lists)


def _sample(part: ShardState, size: int) -> NDArray[Any]:
    X = part.data.lists.X
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:size])
    return dense(X[rows])


def _categories(part: ShardState, columns: list[int]) -> dict[int, NDArray[Any]]:
    return {j: categories_of(part.data.lists.X, j) for j in columns}


def _counts(part: ShardState, bins: Bins) -> NDArray[np.float64]:
    return bins.transform(part.data.lists.X).counts()


def _with_problem(make: Any, part: ShardState) -> ShardState:
    return ShardState(part.data, make(part.data.lists))


def _read(ranker: Any, lists: Lists) -> ShardState:
    reader = copy(ranker)
    X, y = reader._read_numbers(lists, lists.y)
    lists = replace(lists, items=X, labels=y)
    return ShardState(ReadShard(lists, reader._trainable(lists)))


def _summary(part: ShardState) -> tuple[Columns, NDArray[np.bool_]]:
    return part.data.lists.features, part.data.trainable


def _grades(part: ShardState) -> str | None:
    return getattr(part.problem, "grades", None)


def check_learned(ranker: Any, workers: Workers) -> None:
    """Warn if on no shard the fit was worth anything."""
    doubts = workers.ask(_doubts, for_worker(ranker, 1))
    if all(doubts):
        warn(doubts[0], NothingLearnedWarning)


def _doubts(part: ShardState, ranker: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker._check_learned(part.data.lists)
    return "".join(str(one.message) for one in caught[:1])
