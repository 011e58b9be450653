"""Parts of `TextFeatures`: columns of a reading; and the simplest, the first stage's scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.model import Serialisable
from didyma.text.features.in_lists import places
from didyma.text.features.reading import Reading


class Part(Serialisable, ABC):
    """Columns of features. Most learn nothing; what one learns, it learns from a reading.

    A subclass gives `names` and `columns`, and if it learns, `fit` and the fields that are saved.
    """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Name of each column."""

    @property
    def absolute(self) -> tuple[str, ...]:
        """Names of columns that do not compare a row with others of its list; by default all."""
        return self.names

    def fit(self, reading: Reading) -> Self:
        """Learn from the texts that a model is trained on; labels are never seen."""
        return self

    @abstractmethod
    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Features of each row; shape (n_rows, n_columns)."""


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

    @property
    def absolute(self) -> tuple[str, ...]:
        """The score."""
        return self.names[:1]

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Score and reciprocal rank of each row; shape (n_rows, 2)."""
        scores = reading.lists.scores
        if scores is None:
            raise DataError("expected the first stage's scores, found none", field="scores")
        return np.stack([scores, 1 / (1 + places(scores, reading.lists.groups))], axis=1)[
            reading.document
        ]
