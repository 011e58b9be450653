"""What the first stage thinks of a passage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.text.features.part import Part
from didyma.text.features.reading import Reading

__all__ = ["FirstStage"]


class FirstStage(Part):
    """The first stage's score, and 1 / rank by it; of equal scores all have the best rank.

    >>> from didyma import Lists
    >>> from didyma.text import TextFeatures
    >>> lists = Lists.of_texts(["who?"], [["Ida.", "Nobody."]], scores=[[1.5, 2.5]])
    >>> features = TextFeatures([FirstStage()]).fit(lists)
    >>> features.names, features.transform(lists)[0].tolist()
    (('first_score', 'first_reciprocal_rank'), [1.5, 0.5])
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return ("first_score", "first_reciprocal_rank")

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Score and reciprocal rank of each row; shape (n_rows, 2)."""
        if reading.first_stage is None:
            raise DataError("expected the first stage's scores, found none", field="scores")
        return reading.first_stage
