"""A part of the features of texts: some columns that one reading of the texts gives."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from didyma.ranking.featuriser import State
from didyma.text.features.reading import Reading

__all__ = ["Part"]


class Part:
    """Columns of features. Most learn nothing; what one learns, it learns from a reading.

    A subclass gives `names` and `columns`, and if it learns, `fit`, `state` and `from_state`.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        raise NotImplementedError

    def fit(self, reading: Reading) -> Self:
        """Learn from the texts that a model is trained on; labels are never seen."""
        return self

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Features of each row; shape (n_rows, n_columns)."""
        raise NotImplementedError

    def state(self) -> State:
        """What was chosen and learned, as arrays and plain values."""
        return {}, {}

    @classmethod
    def from_state(cls, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> Self:
        """The part that has this state."""
        return cls()
