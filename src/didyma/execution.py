"""How shards of work are run: one injected map, so that a sum over shards never knows by whom.

There is one budget of threads: that of our own, which kernels run on, is also that of BLAS, OpenMP
and PyTorch. Results do not depend on it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from didyma.errors import DataError

__all__ = ["Executor", "n_cores", "on_threads", "serial", "threads"]

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
LIBRARIES = ("OMP", "OPENBLAS", "MKL")


class threads:
    """From now on, or for a block, use so many threads at most, whoever computes.

    Kernels, BLAS, OpenMP and PyTorch keep to it; what is not loaded yet will, if it is loaded while
    the limit holds. None is every core that this process may use. A limit is the whole process's.

    >>> with threads(1):
    ...     n_cores()
    1
    """

    def __init__(self, count: int | None) -> None:
        if count is not None and not (isinstance(count, int) and count >= 1):
            raise DataError(f"expected 1 or more, or None, found {count!r}", field="threads")
        global _limit
        self._before = _limit, {name: os.environ.get(name) for name in _variables()}
        _limit = count
        for name in _variables():
            _set(name, None if count is None else str(count))
        torch = sys.modules.get("torch")
        self._torch = None if torch is None else torch.get_num_threads()
        self._pools = _limit_pools(n_cores())
        if torch is not None:
            torch.set_num_threads(n_cores())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _limit
        _limit, environment = self._before
        for name, value in environment.items():
            _set(name, value)
        if self._pools is not None:
            self._pools.restore_original_limits()
        if self._torch is not None:
            sys.modules["torch"].set_num_threads(self._torch)


def _variables() -> list[str]:
    return [f"{library}_NUM_THREADS" for library in LIBRARIES]


def _set(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def _limit_pools(count: int) -> Any:
    """Limit the libraries of others that are loaded; they come with NumPy."""
    if "numpy" not in sys.modules:
        return None
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    return threadpool_limits(count)


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        present = len(os.sched_getaffinity(0))
    else:
        present = os.cpu_count() or 1
    return present if _limit is None else min(present, _limit)


def on_threads(n_jobs: int | None = None) -> Executor:
    """Shards on threads: kernels release the GIL. None means every core this process may use.

    >>> on_threads(2)(abs, [-1, 2])
    [1, 2]
    """
    if n_jobs is None or n_jobs < 0:
        n_jobs = n_cores()
    elif _limit is not None:
        n_jobs = min(n_jobs, _limit)
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
