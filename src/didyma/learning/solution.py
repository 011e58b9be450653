"""What a solver reports while it works, and returns at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.stateful import Stateful

__all__ = [
    *("Callback", "Clock", "Progress", "Result", "Solution", "Status"),
    *("check_C", "check_finite", "overflow", "reached"),
]

ROUNDING = 1e-12  # no relative gap below this means anything
LARGEST_C = 1e100  # so that products of C and features stay within double precision

Status: TypeAlias = Literal["converged", "limit", "stopped", "interrupted"]


@dataclass(frozen=True)
class Progress:
    """State of a run after one iteration, as given to callbacks.

    ``value`` and ``dual`` bound the optimum for ``C``, which solvers may approach in stages.
    """

    n_iter: int
    passes: float
    C: float
    value: float
    dual: float
    certified: bool
    seconds: float
    w: NDArray[np.float64] = field(repr=False)

    @property
    def gap(self) -> float:
        """Primal minus dual objective; an estimate unless `certified`."""
        return self.value - self.dual

    @property
    def relative_gap(self) -> float:
        """Gap as a share of the primal objective."""
        return self.gap / self.value if self.value > 0 else 0.0


# A callback may return True to stop the run; the weights at that point are returned.
Callback: TypeAlias = Callable[[Progress], bool | None]


@dataclass(frozen=True)
class Result:
    """How a run ended: objective value, its lower bound and what it cost.

    ``gap = value − dual`` bounds the distance to the optimum; ``passes`` counts full passes over
    the examples, ``seconds`` is split by stage. ``grades`` is the bound that a ranker chose for a
    loss over more than two grades.
    """

    value: float
    dual: float
    gap: float
    converged: bool
    n_iter: int
    passes: float
    status: Status
    seconds: Mapping[str, float]
    grades: str | None = None

    @classmethod
    def of(cls, progress: Progress, status: Status, clock: Clock) -> Result:
        """Sum up a run by its last progress."""
        return cls(
            value=progress.value,
            dual=progress.dual,
            gap=progress.gap,
            converged=status == "converged",
            n_iter=progress.n_iter,
            passes=progress.passes,
            status=status,
            seconds={**clock.stages, "total": clock.elapsed},
        )


@dataclass(frozen=True)
class Solution:
    """Weights, the report about them, and whatever a next run can start from."""

    w: NDArray[np.float64]
    result: Result
    state: Any = field(default=None, repr=False)

    @classmethod
    def at(cls, w: NDArray[np.float64]) -> Solution:
        """Weights to begin at, of which nothing else is known."""
        return cls(w, Result(np.inf, -np.inf, np.inf, False, 0, 0.0, "stopped", {}))


def check_C(C: Any) -> float:
    """C, if it is a number to train with."""
    if not (isinstance(C, Real) and 1.0 / LARGEST_C <= float(C) <= LARGEST_C):
        raise DataError(
            f"expected a positive number from {1 / LARGEST_C:g} to {LARGEST_C:g}, found {C!r}",
            field="C",
        )
    return float(C)


def reached(tol: float) -> float:
    """The relative gap that a tolerance can mean."""
    return max(tol, ROUNDING)


def check_finite(progress: Progress) -> Progress:
    """Refuse weights and values that are not finite."""
    if not (np.isfinite(progress.value + progress.dual) and np.isfinite(progress.w).all()):
        raise overflow(progress.C)
    return progress


def overflow(C: float) -> DataError:
    """The error where numbers become too large."""
    return DataError(
        f"training at C={C:g} overflows double precision: lower C or scale the features"
    )


class Clock(Stateful):
    """Seconds of a run by stage, which go on where a checkpoint left them."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = {}
        self._start = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._start

    def state(self) -> dict[str, Any]:
        """The time so far."""
        return {"stages": self.stages, "elapsed": self.elapsed}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a time."""
        self.stages = {str(name): float(seconds) for name, seconds in state["stages"].items()}
        self._start = time.perf_counter() - float(state["elapsed"])

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of a block under a name."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start
