"""A part of the features of texts: some columns that one reading of the texts gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from didyma.model import Serialisable
from didyma.text.features.reading import Reading

__all__ = ["Part"]


class Part(Serialisable, ABC):
    """Columns of features. Most learn nothing; what one learns, it learns from a reading.

    A subclass gives `names` and `columns`, and if it learns, `fit` and the fields that are saved.
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each column."""

    def fit(self, reading: Reading) -> Self:
        """Learn from the texts that a model is trained on; labels are never seen."""
        return self

    @abstractmethod
    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Features of each row; shape (n_rows, n_columns)."""
