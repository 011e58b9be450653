"""What is known of a solver that may stop before it has proved its answer the best."""

from __future__ import annotations

from typing import Any, ClassVar

from didyma.errors import DataError, warn
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.structure import Structure


class LimitedSolver(Structure):
    """A structure whose argmax has a time limit, and then a gap.

    With an argmax that is g short of the best output, a loss is up to g too low, and the true gap
    of SparseMAP is up to g larger than the one that is reported.

    Attributes:
        worst_gap: the largest difference so far between the bound on the best score and the score
            of the answer; 0 if every answer was proved to be the best.
        n_inexact: answers that were not proved.
    """

    reads_infinity: ClassVar[bool] = True

    worst_gap: float = 0.0
    n_inexact: int = 0
    time_limit: float | None

    def _limit(self, time_limit: float | None) -> None:
        if time_limit is not None and not time_limit > 0:
            raise DataError(f"expected seconds above 0, found {time_limit}", field="time_limit")
        self.time_limit = time_limit

    def _note(self, gap: float) -> None:
        """Remember an answer that was not proved to be the best, and warn of it."""
        self.n_inexact += 1
        self.worst_gap = max(self.worst_gap, gap)
        warn(
            f"{type(self).__name__} stopped after {self.time_limit:g} seconds with an output that "
            f"may be {gap:.2g} short of the best: what is computed from it is as inexact",
            ToleranceWarning,
        )

    def _refuse_contradictions(self, forbidden: Any) -> None:
        """No output is possible, and that is not because parts are forbidden."""
        if not forbidden:
            raise DataError(f"{self!r} has no output: its constraints contradict each other")

    def _late(self) -> DataError:
        return DataError(
            f"{self!r} found no output within {self.time_limit:g} seconds", field="time_limit"
        )
