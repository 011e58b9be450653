"""Features of the windows of long items; an item has the score of its best window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.matrix import Matrix


@dataclass(frozen=True, eq=False)
class Windowed:
    """Features of windows, in the order of their items.

    Attributes
    ----------
    X : matrix of shape (n_windows, n_columns)
    item : array of shape (n_windows,)
        Number of each window's item among all rows of the lists, ascending.
    spans : array of shape (n_windows, 2), or None
        Where the window stands in the item, in code points; None if each item is one window.

    >>> windowed = Windowed(np.zeros((3, 0)), np.array([0, 0, 1]))
    >>> windowed.best([0.5, 2.0, 1.0])
    (array([2., 1.]), array([1, 2]))
    """

    X: Matrix
    item: NDArray[np.int64]
    spans: NDArray[np.int32] | None = None

    def best(self, scores: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Score of each item, that of its best window, and which window that is."""
        values = np.asarray(scores, np.float64)
        # Of equal scores the first window is best.
        order = np.lexsort((-values, self.item))
        first = order[np.flatnonzero(np.diff(self.item, prepend=-1))]
        return values[first], first
