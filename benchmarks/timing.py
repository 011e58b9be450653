"""Time things next to each other: a busy neighbour then slows all of them alike."""

from __future__ import annotations

import ctypes
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

Timer: TypeAlias = Callable[[], float]


def stopwatch(function: Callable[[], Any], repeats: int = 1) -> Timer:
    """Mean seconds of some calls of the function."""

    def seconds() -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            function()
        return (time.perf_counter() - start) / repeats

    return seconds


def fastest(function: Callable[[], Any], seconds: float) -> float:
    """The best time of a call, among those of some seconds, after one that compiles."""
    function()
    once = stopwatch(function)
    return min(once() for _ in range(max(5, round(seconds / max(once(), 1e-6)))))


class Seconds(dict[str, list[float]]):
    """Seconds of things that were timed in turns, by name."""

    def best(self, name: str) -> float:
        """The least."""
        return min(self[name])

    def ratio(self, name: str, other: str) -> float:
        """Median of the ratios of neighbouring calls."""
        return statistics.median(a / b for a, b in zip(self[name], self[other]))


def interleave(timers: Mapping[str, Timer], times: int) -> Seconds:
    """Seconds of each timer, all of them called in turns."""
    seconds = Seconds({name: [] for name in timers})
    for _ in range(times):
        for name, timer in timers.items():
            seconds[name].append(timer())
    return seconds


def measure(functions: Mapping[str, Callable[[], Any]], times: int, repeats: int = 1) -> Seconds:
    """Seconds of a call of each function, in turns."""
    timers = {name: stopwatch(function, repeats) for name, function in functions.items()}
    return interleave(timers, times)


def compiled(source: Path) -> Any:
    """The library of a C++ file, compiled for this machine."""
    with TemporaryDirectory() as folder:
        library = Path(folder, "library.so")
        compiler = [os.environ.get("CXX", "c++"), "-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([*compiler, "-std=c++17", str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def products(X: Any, repeats: int = 1) -> Timer:
    """The limit: X @ w and X.T @ c, in the precision of X."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=X.shape[1]).astype(X.dtype)
    c = rng.normal(size=X.shape[0]).astype(X.dtype)
    return stopwatch(lambda: (X @ w, X.T @ c), repeats)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """A context in which PyTorch, BLAS and OpenMP use so many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with blas_threads(count):
            yield
    finally:
        torch.set_num_threads(before)


def blas_threads(count: int) -> Any:
    """A context in which BLAS and OpenMP use so many threads."""
    return threadpool_limits(limits=count)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
