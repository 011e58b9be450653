"""Vectors that items come with, as features."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.model import Saved
from didyma.protocol import check_is_fitted
from didyma.ranking.learned_featuriser import LearnedFeatures

__all__ = ["GivenVectors"]


class GivenVectors(LearnedFeatures):
    """The entries of the vector that each item has, all of one length.

    >>> from didyma.nbest.formats import Output
    >>> lists = Lists([Output("NN", vector=np.array([1.0, 2.0]))])
    >>> GivenVectors().fit(lists).transform(lists).tolist()
    [[1.0, 2.0]]
    """

    length_: Annotated[int, Saved()]

    @property
    def names(self) -> tuple[str, ...]:
        """The number of each entry."""
        check_is_fitted(self, "length_")
        return tuple(map(str, range(self.length_)))

    def fit(self, lists: Lists) -> Self:
        """Learn their length."""
        self.length_ = _stacked(lists).shape[1]
        return self

    def transform(self, lists: Lists) -> NDArray[np.float64]:
        """The vector of each item; shape (n_rows, length)."""
        check_is_fitted(self, "length_")
        found = _stacked(lists)
        if len(found) and found.shape[1] != self.length_:
            raise DataError(
                f"expected vectors of length {self.length_}, found {found.shape[1]}",
                field="vectors",
            )
        return found.reshape(len(found), self.length_)


def _stacked(lists: Lists) -> NDArray[np.float64]:
    vectors = [item.vector for item in lists.items]
    lengths = {0 if vector is None else len(vector) for vector in vectors}
    if 0 in lengths or len(lengths) > 1:
        raise DataError(f"expected vectors of one length, found {sorted(lengths)}", field="vectors")
    return np.array(vectors, dtype=np.float64).reshape(len(vectors), max(lengths, default=0))
