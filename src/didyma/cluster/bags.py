"""Dask bags of the examples of any task, as a sum of problems that workers keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from didyma.cluster.problem import ShardedProblem, ShardState
from didyma.cluster.workers import Cluster, active_client
from didyma.errors import DataError

__all__ = ["posed"]


@contextmanager
def posed(
    pose: Callable[..., Any], n_features: int, examples: Any, labels: Any
) -> Iterator[ShardedProblem]:
    """The sum of what ``pose(examples, labels, weights)`` makes of the partitions of two Dask bags.

    In the end all is released.
    """
    parts = [
        _partitions(given, name) for name, given in (("examples", examples), ("labels", labels))
    ]
    if len(parts[0]) != len(parts[1]):
        raise DataError(
            f"expected {len(parts[0])} partitions as the examples have, found {len(parts[1])}",
            field="labels",
        )
    from dask.delayed import delayed

    client, paired = active_client(), delayed(_paired)
    pairs = [paired(k, *own) for k, own in enumerate(zip(*parts))]
    with Cluster(client, client.compute(pairs)) as workers:
        workers.follow(partial(_posed, pose), 0)
        counts = np.array(workers.ask(_count))
        if not counts.any():
            raise DataError("there is nothing to learn from: no partition has an example")
        workers.keep(np.flatnonzero(counts).tolist())
        yield ShardedProblem(workers, n_features, counts[counts > 0] / counts.sum())


def _partitions(given: Any, name: str) -> list[Any]:
    if not hasattr(given, "to_delayed"):
        found = type(given).__name__
        raise DataError(f"expected a collection of Dask, found {found}", field=name)
    return list(np.ravel(given.to_delayed()))


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
