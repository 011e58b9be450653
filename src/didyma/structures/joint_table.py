"""JointTable: a few parts of which every combination has a score of its own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.structures.batches import check_one_each
from didyma.structures.recurrence import Recurrence, either

LARGEST = 12


@dataclass(frozen=True)
class JointTable(Recurrence):
    """Subsets of n parts; ``table`` (2, …, 2) scores each, at index 1 of the parts that are there.

    Scores (B, n); outputs boolean (B, n). O(n 2ⁿ), so n is at most 12. −inf in the table forbids a
    combination.

    >>> import numpy as np
    >>> both = np.array([[0.0, 0.0], [0.0, 1.0]])
    >>> JointTable(2).predict([-0.4, -0.4], table=both)
    array([ True,  True])
    """

    n: int

    def __post_init__(self) -> None:
        if not 1 <= self.n <= LARGEST:
            raise DataError(f"expected from 1 to {LARGEST} parts, found {self.n}", field="n")

    def additional(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """The table."""
        check_one_each(shape, self.n, "part")
        return {"table": (2,) * self.n}

    def recurrence(self, scores: NDArray[Any], **additional: NDArray[Any]) -> Any:
        """The best combination."""
        table = additional["table"]
        return either(
            sum((score for score, there in zip(scores, chosen) if there), table[chosen])
            for chosen in product((0, 1), repeat=self.n)
        )
