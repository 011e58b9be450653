"""How work is run: shards by one injected map, threads within one budget, until a deadline.

There is one budget of threads: that of our own, which kernels run on, is also that of BLAS, OpenMP
and PyTorch. Whoever starts several processes tells each its share by ``OMP_NUM_THREADS``, as Dask
and joblib do. Results do not depend on it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from importlib import import_module
from itertools import pairwise
from math import inf
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from didyma.errors import DataError
from didyma.values import is_whole

MOST = 1024  # threads: whoever asks for more has these

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])


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


_solving = threading.Lock()
_solves: list[Any] = []  # under way, each with nothing; the first with what was before


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While this lasts, BLAS works on one thread: its others wait for work on a core of ours.

    >>> with one_blas_thread():
    ...     pass
    """
    with _solving:
        _solves.append(None if _solves else _blas().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _solving:
            if len(_solves) > 1:
                del _solves[-1]
            else:
                _solves.pop().restore_original_limits()


@cache
def _blas() -> Any:
    """The linear algebra of NumPy and SciPy in this process, which scikit-learn controls so too."""
    import_module("numpy")  # only what is loaded can be found
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


class Remote:
    """Data that stay on the workers of a cluster."""


def is_sharded(data: Any) -> bool:
    """Whether data are on a cluster: `Remote` or a Dask collection, which is not imported."""
    return isinstance(data, Remote) or type(data).__module__.partition(".")[0] == "dask"


def on_cluster(function: str) -> Callable[[Method], Method]:
    """Decorate a method: with data on a cluster as its first argument, ``function`` is called.

    ``function`` is "module:name" of one with the same arguments, which is imported then.

    >>> class Sum:
    ...     @on_cluster("builtins:repr")
    ...     def of(self, data):
    ...         return sum(data)
    >>> Sum().of([1, 2])
    3
    """
    module, name = function.split(":")

    def decorate(method: Method) -> Method:
        parameter = method.__code__.co_varnames[1]

        @wraps(method)
        def dispatch(self: Any, *args: Any, **options: Any) -> Any:
            if is_sharded(args[0] if args else options.get(parameter)):
                return getattr(import_module(module), name)(self, *args, **options)
            return method(self, *args, **options)

        return cast(Method, dispatch)

    return decorate


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
        if count is not None and not (is_whole(count) and count >= 1):
            raise DataError(f"expected 1 or more, or None, found {count!r}", field="threads")
        global _limit
        self._before = _limit, {name: os.environ.get(name) for name in _variables()}
        _limit = count = None if count is None else min(int(count), MOST)
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
    from threadpoolctl import threadpool_limits

    return threadpool_limits(count)


def n_cores() -> int:
    """Cores that this process may use, at most as many as `threads` or ``OMP_NUM_THREADS`` says."""
    limit = _share() if _limit is None else _limit
    return present_cores() if limit is None else min(present_cores(), limit)


def present_cores() -> int:
    """Cores that the system lets this process use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _share() -> int | None:
    """What the environment says: a number, or a list of which the first counts."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isascii() and first.isdecimal() and int(first) else None


def on_threads(n_jobs: int | None = None) -> Executor:
    """Shards on threads: kernels release the GIL. `n_threads` says on how many.

    >>> on_threads(2)(abs, [-1, 2])
    [1, 2]
    """
    n_jobs = n_threads(n_jobs)
    return serial if n_jobs == 1 else _Threads(n_jobs)


def n_threads(n_jobs: int | None = None) -> int:
    """The number of threads that ``n_jobs`` asks for; None means every core that `n_cores` counts.

    >>> n_threads(1)
    1
    """
    if n_jobs is None or n_jobs < 0:
        return n_cores()
    return min(int(n_jobs), MOST if _limit is None else _limit)


def shards(n: int, n_jobs: int) -> list[slice]:
    """The numbers below n in one run for each thread.

    >>> shards(3, 2)
    [slice(0, 1, None), slice(1, 3, None)]
    """
    count = max(min(n, n_jobs), 1)
    bounds = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


@dataclass(frozen=True)
class _Threads:
    n_jobs: int

    def __call__(self, function: Callable[[Any], T], shards: Sequence[Any]) -> list[T]:
        if len(shards) == 1 or _WORKER.busy:  # a worker that waited for workers could wait forever
            return serial(function, shards)
        return _share_out(function, shards, self.n_jobs)


def _share_out(function: Callable[[Any], T], shards: Sequence[Any], n_jobs: int) -> list[T]:
    """Whoever is free takes the next shard; this thread works too, as to be woken takes time."""
    values: list[Any] = [None] * len(shards)
    left = iter(range(len(shards)))

    def work() -> None:
        for n in left:
            values[n] = function(shards[n])

    helpers = [_pool(n_jobs).submit(work) for _ in range(min(n_jobs, len(shards)) - 1)]
    _WORKER.busy = True
    try:
        work()
    finally:
        _WORKER.busy = False
        for _ in left:  # after an error nobody begins another shard
            pass
        running = [helper for helper in helpers if not helper.cancel()]
        wait(running)
    for helper in running:
        helper.result()
    return values


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


_check: ContextVar[Callable[[], object] | None] = ContextVar("check", default=None)
_until: ContextVar[float] = ContextVar("until", default=inf)


@contextmanager
def interruptible(check: Callable[[], object], until: float = inf) -> Iterator[None]:
    """Call ``check`` now and then in this block, on this thread; what it raises ends the work.

    At ``until``, by the clock of `time.monotonic`, work ends that can be done without.

    Texts are read in chunks of some hundred thousand characters, and it is called before each,
    and before each part of the features.

    >>> from didyma.text.features.lexicon import Lexicon
    >>> with interruptible(lambda: print("read on")):
    ...     tokens = Lexicon(None).read(["a few words"])
    read on
    """
    tokens = _check.set(check), _until.set(until)
    try:
        yield
    finally:
        _check.reset(tokens[0])
        _until.reset(tokens[1])


def time_left() -> float:
    """Seconds for work that can be done without; infinite but in a block that says otherwise."""
    return _until.get() - time.monotonic()


def check_interruption() -> None:
    """Call what `interruptible` was given, if there is something."""
    check = _check.get()
    if check is not None:
        check()
