"""How shards of work are run: one injected map, so that a sum over shards never knows by whom."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

__all__ = ["Executor", "n_cores", "serial", "threads"]

T = TypeVar("T")


class Executor(Protocol):
    """A map over shards that keeps their order."""

    def __call__(self, function: Callable[[Any], T], shards: Sequence[Any]) -> list[T]:
        """Apply `function` to each shard."""
        ...


def serial(function: Callable[[Any], T], shards: Sequence[Any]) -> list[T]:
    """One shard after the other.

    >>> serial(abs, [-1, 2])
    [1, 2]
    """
    return [function(shard) for shard in shards]


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads(n_jobs: int | None = None) -> Executor:
    """Shards on threads: kernels release the GIL. None means every core this process may use.

    >>> threads(2)(abs, [-1, 2])
    [1, 2]
    """
    if n_jobs is None or n_jobs < 0:
        n_jobs = n_cores()
    if n_jobs == 1:
        return serial

    def run(function: Callable[[Any], T], shards: Sequence[Any]) -> list[T]:
        if len(shards) == 1:
            return serial(function, shards)
        with ThreadPoolExecutor(n_jobs) as pool:
            return list(pool.map(function, shards))

    return run
