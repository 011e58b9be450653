"""Parts of `TextFeatures`: columns of a reading; the first stage, and ranks within lists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.model import Serialisable
from didyma.text.features.reading import Reading

IN_LIST = " in list"  # ends the names of columns that compare passages with those beside them
RRF = " rrf"  # ends the names of columns to add up for reciprocal rank fusion
RRF_CONSTANT = 60  # of Cormack, Clarke and Büttcher (2009)

Vector = NDArray[np.float64]


class Part(Serialisable, ABC):
    """Columns of features. Most learn nothing; what one learns, it learns from a reading.

    A subclass gives ``descriptions`` or ``names``, and ``columns``; if it learns, ``fit`` and the
    fields that are saved.
    """

    descriptions: ClassVar[Mapping[str, str]] = {}
    """Columns in words, by their names, for those who read why a passage has its score."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each column."""
        return tuple(self.descriptions)

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

    descriptions: ClassVar = {
        "first_score": "score of the first stage",
        "first_reciprocal_rank": "place in the first stage's order",
    }
    absolute = ("first_score",)

    def columns(self, reading: Reading) -> NDArray[np.float64]:
        """Score and reciprocal rank of each row; shape (n_rows, 2)."""
        scores = reading.lists.scores
        if scores is None:
            raise DataError("expected the first stage's scores, found none", field="scores")
        ranks = 1 + places(scores, reading.lists.groups)
        return np.stack([scores, 1 / ranks], axis=1)[reading.document]


def places(values: Vector, groups: Groups) -> NDArray[np.int64]:
    """How many values of its list are greater than each.

    >>> places(np.array([1.0, 3.0, 3.0, 2.0]), Groups.from_lists([3, 1])).tolist()
    [2, 0, 0, 0]
    """
    codes = groups.codes
    order = np.lexsort((-values, codes))
    ranked, query = values[order], codes[order]
    is_new = np.ones(len(order), np.bool_)  # neither the value nor the list of before
    is_new[1:] = (ranked[1:] != ranked[:-1]) | (query[1:] != query[:-1])
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    result = np.empty(len(order), np.int64)
    result[order] = first - groups.starts[query]
    return result


def reciprocal_ranks(values: Vector, document: NDArray[np.int64], groups: Groups) -> Vector:
    """1 / (60 + rank) of each window's value among the best values of the list's documents.

    ``document`` is that of each window, in the order of their lists, and ``groups`` are of
    documents.

    >>> windows, document = np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1])
    >>> (1 / reciprocal_ranks(windows, document, Groups.from_lists([2]))).round().tolist()
    [63.0, 61.0, 62.0]
    """
    if len(document) == len(groups.rows):
        return 1 / (RRF_CONSTANT + 1 + places(values, groups))
    best = np.maximum.reduceat(values, np.flatnonzero(np.diff(document, prepend=-1)))
    rank = np.empty(len(values))
    bounds = np.searchsorted(document, groups.starts)
    for q in range(len(groups)):
        of_list = slice(bounds[q], bounds[q + 1])
        ranked = np.sort(best[groups.starts[q] : groups.starts[q + 1]])
        rank[of_list] = 1 + len(ranked) - np.searchsorted(ranked, values[of_list], side="right")
    return 1 / (RRF_CONSTANT + rank)
