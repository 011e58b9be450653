"""Conditional gradients: the simple first-order way over the hull of what an oracle can name.

They serve comparisons; the active set needs far fewer calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from didyma._core.polytope import Method
from didyma.errors import DataError

STEPS = {"vanilla": Method.VANILLA, "away": Method.AWAY, "pairwise": Method.PAIRWISE}


@dataclass(frozen=True)
class ConditionalGradient:
    """Frank-Wolfe with ``step`` "pairwise", "away" or "vanilla".

    Convergence is linear (sublinear for "vanilla"), so without ``max_iter`` it stops after 10,000
    calls.
    """

    step: str = "pairwise"
    max_iter: ClassVar[int] = 10_000
    finite: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.step not in STEPS:
            raise DataError(
                f"expected one of {', '.join(STEPS)}, found {self.step!r}", field="step"
            )

    @property
    def method(self) -> Any:
        """The method with this step."""
        return STEPS[self.step]
