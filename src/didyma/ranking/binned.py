"""Binned rows: the third storage of a ranking problem, beside dense and CSR.

One byte a feature stands for the indicators of `didyma.ranking.binning.ScoreBinner`, of which
there is one for each bin, without any of them being stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma._core.rows import BinnedRows

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Binned:
    """The matrix Z of indicators of bins, as bins.

    ``bins`` (n_rows × n_columns) are below ``height``, and the last one is for missing values.
    Column j has height − 1 features, 1[b_j ≥ m] where it runs (``running[j]``) and 1[b_j = m] where
    it does not, times ``units[m, j]``; feature m of column j has the index (m − 1)·n_columns + j.
    ``signs[j]`` is 1 or −1 if the weights of column j must not be negative or not be positive.

    With ``rises`` r (height × n_columns) each column has a slope, a weight before the others: its
    step at bin m is u_m w_m + r_m w_0, and so ½‖w‖² shrinks it towards a line, not towards nothing.

    >>> Z = Binned(np.array([[0], [1], [2], [3]], np.uint8), 4, np.array([True]))
    >>> (Z @ np.array([1.0, 10.0, 100.0])).tolist()
    [0.0, 1.0, 11.0, 100.0]
    >>> (replace(Z, rises=np.ones((4, 1))) @ np.array([0.5, 1.0, 10.0, 100.0])).tolist()
    [0.0, 1.5, 12.0, 100.5]
    """

    bins: NDArray[np.uint8]
    height: int
    running: NDArray[np.bool_]
    units: Vector | None = None
    signs: NDArray[np.int8] | None = None
    rises: Vector | None = None

    ndim: ClassVar[int] = 2
    dtype: ClassVar[np.dtype[Any]] = np.dtype(np.float64)
    """Of Z, as every matrix tells."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features of Z."""
        weights = self.height - (self.rises is None)
        return len(self.bins), weights * self.bins.shape[1]

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], Vector, Vector, Vector, Vector]:
        """What kernels take for X."""
        n = len(self.running)
        units = np.ones((self.height, n)) if self.units is None else self.units
        signs = np.zeros(n) if self.signs is None else self.signs
        rises = np.empty((0, n)) if self.rises is None else self.rises
        return self.bins, self.running.astype(np.float64), units, signs.astype(np.float64), rises

    @property
    def rows(self) -> BinnedRows:
        """Products with the rows."""
        return BinnedRows(*self.arrays, self.height)

    def __getitem__(self, rows: Any) -> Binned:
        """Some of the rows."""
        return replace(self, bins=np.ascontiguousarray(self.bins[rows]))

    def __matmul__(self, w: Vector) -> Vector:
        """Scores of the rows."""
        scores = np.empty(len(self.bins))
        self.rows.score(np.arange(len(self.bins)), w, scores)
        return scores

    def tables(self, w: Vector) -> Vector:
        """What each bin adds to a score, (height, n_columns).

        >>> Z = Binned(np.empty((0, 1), np.uint8), 4, np.array([True]))
        >>> Z.tables(np.array([1.0, 10.0, 100.0])).ravel().tolist()
        [0.0, 1.0, 11.0, 100.0]
        """
        n = len(self.running)
        weights = w.reshape(-1, n)
        tables = np.zeros((self.height, n))
        tables[1:] = weights[1 - self.height :] * (1.0 if self.units is None else self.units[1:])
        if self.rises is not None:
            tables[1:] += self.rises[1:] * weights[0]
        tables[:-1, self.running] = np.cumsum(tables[:-1, self.running], axis=0)
        return tables

    def weights(self, tables: Vector) -> Vector:
        """The weights, without slopes, whose `tables` these are, but for a constant.

        >>> Z = Binned(np.empty((0, 1), np.uint8), 4, np.array([True]))
        >>> Z.weights(np.array([[0.0], [1.0], [11.0], [100.0]])).tolist()
        [1.0, 10.0, 100.0]
        """
        weights: Vector = tables[1:] - tables[0]
        weights[1:-1] -= self.running * (tables[1:-2] - tables[0])
        return (weights if self.units is None else weights / self.units[1:]).ravel()

    def steps(self, values: Vector) -> Vector:
        """Weights by which a column adds the mean of its values in a bin, but for a constant.

        ``values`` are of shape (n_rows, n_columns). A bin without rows is like the one before, a
        missing value like all of them together.

        >>> Z = Binned(np.array([[0], [1], [1]], np.uint8), 4, np.array([True]))
        >>> (Z @ Z.steps(np.array([[1.0], [2.0], [4.0]]))).tolist()
        [0.0, 2.0, 2.0]
        """
        counts = self.counts()
        sums = np.empty_like(counts)
        for j, own in enumerate(self.bins.T):
            sums[:, j] = np.bincount(own, values[:, j], self.height)
        filled = np.maximum.accumulate(np.where(counts > 0, np.arange(self.height)[:, None], -1))
        filled = np.maximum(filled, (counts > 0).argmax(axis=0))
        means = np.take_along_axis(sums / np.maximum(counts, 1), filled, axis=0)
        means[-1] = np.where(counts[-1] > 0, means[-1], values.mean(axis=0))
        return self.weights(means)

    def feasible(self, w: Vector) -> Vector:
        """The nearest weights that have the signs which are asked for."""
        if self.signs is None:
            return w
        steps = w.reshape(-1, len(self.running)).copy()
        steps[:-1][steps[:-1] * self.signs < 0] = 0.0
        return steps.ravel()

    def counts(self) -> Vector:
        """How many rows each bin of each column has, (height, n_columns)."""
        table = np.empty((self.height, self.bins.shape[1]))
        for j, own in enumerate(self.bins.T):
            table[:, j] = np.bincount(own, minlength=self.height)
        return table


def step_scores(bins: NDArray[np.uint8], tables: NDArray[np.float64]) -> Vector:
    """The sum over columns of what the bins of each row add, from the first column to the last."""
    scores = np.zeros(len(bins))
    for column, table in zip(bins.T, tables.T):
        scores += table[column]
    return scores
