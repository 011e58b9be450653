"""A point of a local polytope, as its solvers give it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from didyma.structures.layout import Floats

FEASIBLE = 1e-9  # largest error of a constraint


@dataclass(frozen=True)
class LocalPoint:
    """The optimum of one instance, with its certificate and its derivative."""

    parts: Floats
    """Expectations of all parts, those of additional ones last."""
    value: float
    gap: float
    """No point has a higher objective than ``value + gap``."""
    converged: bool
    n_iter: int
    move: Callable[[Floats], Floats]
    """How the expectations move with the scores of all parts: a linear and symmetric map."""
    prices: Floats | None = None
    """Where another solve of the same instance can start."""
    exact: bool = False
    """Whether it is known to be an expectation over outputs of the whole graph."""


def is_optimal(value: float, gap: float, broken: float, tol: float) -> bool:
    """Whether a point is within the tolerance, and breaks no constraint by more than rounding."""
    return gap <= tol * max(1.0, abs(value)) and broken <= FEASIBLE
