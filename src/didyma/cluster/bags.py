"""Dask bags of the examples of any task, as a sum of problems that workers keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from didyma.cluster.problem import ShardedProblem, ShardState
from didyma.cluster.solvers import MixedPerceptron
from didyma.cluster.workers import Cluster, active_client, refuse_on_cluster
from didyma.errors import DataError
from didyma.learning.solution import Solution
from didyma.protocol import check_is_fitted, seed_of


def solve(
    learner: Any, examples: Any, labels: Any, sample_weight: Any, watch: Any, **start: Any
) -> Solution:
    """Learn where the examples are, as perceptrons can: weights are mixed after each epoch."""
    refuse_on_cluster(sample_weight=sample_weight, warm_start=learner.warm_start or None)
    if not hasattr(learner, "epochs"):
        name = type(learner).__name__
        raise DataError(f"{name} does not learn on a cluster: give it a list", field="examples")
    with posed(learner._pose(), learner.task.n_features, examples, labels) as problem:
        perceptron = MixedPerceptron(learner.epochs, seed_of(learner.random_state))
        return perceptron.solve(problem, callback=watch)


def predict(learner: Any, examples: Any) -> Any:
    """The bag of the outputs."""
    check_is_fitted(learner)
    return examples.map(partial(learner._task().argmax, learner.coef_))


def score(learner: Any, examples: Any, labels: Any) -> float:
    """Outputs are inferred where the examples are, and judged here."""
    learner._check_parameters()
    measure: float = learner._measured(labels.compute(), learner.predict(examples).compute())
    return measure


@contextmanager
def posed(
    pose: Callable[..., Any], n_features: int, examples: Any, labels: Any
) -> Iterator[ShardedProblem]:
    """The sum of what ``pose(examples, labels, weights)`` makes of the partitions of two Dask bags.

    In the end all is released.
    """
    parts = [_partitions(examples, "examples"), _partitions(labels, "labels")]
    if len(parts[0]) != len(parts[1]):
        raise DataError(
            f"expected {len(parts[0])} partitions as the examples have, found {len(parts[1])}",
            field="labels",
        )
    from dask.delayed import delayed

    client, paired = active_client(), delayed(_paired)
    pairs = [paired(k, *pair) for k, pair in enumerate(zip(*parts))]
    with Cluster(client, client.compute(pairs)) as workers:
        workers.follow(partial(_posed, pose), 0)
        counts = np.array(workers.ask(_count))
        if not counts.any():
            raise DataError("there is nothing to learn from: no partition has an example")
        workers.keep(np.flatnonzero(counts).tolist())
        yield ShardedProblem(workers, n_features, counts[counts > 0] / counts.sum())


def _partitions(collection: Any, name: str) -> list[Any]:
    if not hasattr(collection, "to_delayed"):
        kind = type(collection).__name__
        raise DataError(f"expected a collection of Dask, found {kind}", field=name)
    return list(np.ravel(collection.to_delayed()))


def _paired(number: int, examples: Iterable[Any], labels: Iterable[Any]) -> tuple[list[Any], ...]:
    pair = list(examples), list(labels)
    if len(pair[0]) != len(pair[1]):
        problem = f"{len(pair[1])} labels for {len(pair[0])} examples"
        raise DataError(problem, field=f"partition {number}")
    return pair


def _posed(pose: Callable[..., Any], pair: tuple[list[Any], list[Any]]) -> ShardState:
    n = len(pair[0])
    return ShardState(n, pose(*pair, np.full(n, 1.0 / n)) if n else None)


def _count(part: ShardState) -> int:
    return int(part.data)
