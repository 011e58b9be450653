"""How shards of work are run: one injected map, so that a sum over shards never knows by whom."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Protocol, TypeVar

__all__ = ["Executor", "limit_cores", "n_cores", "serial", "threads"]

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


_limit: int | None = None


def limit_cores(count: int) -> None:
    """From now on use so many cores at most; libraries that are not loaded yet do likewise."""
    global _limit
    _limit = count
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ[f"{library}_NUM_THREADS"] = str(count)


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        present = len(os.sched_getaffinity(0))
    else:
        present = os.cpu_count() or 1
    return present if _limit is None else min(present, _limit)


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
        if len(shards) == 1 or _WORKER.busy:  # a worker that waited for workers could wait forever
            return serial(function, shards)
        return list(_pool(n_jobs).map(function, shards))

    return run


class _Worker(threading.local):
    busy = False


_WORKER = _Worker()


def _become_worker() -> None:
    _WORKER.busy = True


@cache
def _pool(n_jobs: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_jobs, "didyma", initializer=_become_worker)


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
