"""Columns of numbers as columns of bins, one byte each: what an additive ranker looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma._core.rows import assign_bins
from didyma.data.matrix import Matrix
from didyma.errors import DataError
from didyma.execution import Executor, serial
from didyma.ranking.binned import Binned
from didyma.values import aligned

MOST_BINS = 254  # and bins for bin 0 and for missing values, in a byte
SAMPLE = 4096  # rows that edges are read off
CELLS = 1024  # of the grid in which a value is looked up
BLOCK = 8192  # rows that a thread bins at a time
FEW = 512  # rows, for which such a grid does not pay
LEVELS = 8  # of a column that is crossed with another
# Of the indicators of a cell. Weights of cells stand alone while those of bins add up, so that with
# a unit of 1 a table would cost hundreds of times what a function that rises as far does.
UNIT = 16.0


@dataclass(frozen=True, eq=False)
class Bins:
    """Where the bins of each column begin, and which columns are crossed.

    ``edges`` (n_columns × (height − 1)) ascend and end in infinities. A value is in the bin whose
    number is that of the edges below it, and NaN in the last one, height − 1. Where a column is
    ``nominal`` its edges are its categories; the k-th of them is bin k + 1, and one that was never
    seen is bin 0, whose weight is zero. ``signs`` are those of `Binned`.

    A pair of columns, a row of ``pairs``, is a column more: ``levels`` (n_columns × height) maps
    the bins of each to at most eight levels from 1 on, which are crossed; level 0 is of no use.
    """

    edges: NDArray[np.float64]
    nominal: NDArray[np.bool_]
    signs: NDArray[np.int8]
    levels: NDArray[np.uint8]
    pairs: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        X: Matrix,
        n_bins: int,
        strategy: str = "quantile",
        nominal: NDArray[np.bool_] | None = None,
        signs: NDArray[np.int8] | None = None,
        *,
        crossable: bool = False,
        categories: Mapping[int, NDArray[Any]] | None = None,
    ) -> Bins:
        """Choose ``n_bins`` bins for each column of X, as `ScoreBinner` places its thresholds.

        Edges are read off a random sample of the rows, categories off all of them, unless those
        that nominal columns have are known. There is room for pairs if the columns are to be
        ``crossable``.

        >>> Bins.of(np.array([[0.0], [1.0], [2.0], [3.0]]), 2).edges.tolist()
        [[1.5, inf]]
        """
        from didyma.ranking.binning import ScoreBinner

        if not 2 <= n_bins <= MOST_BINS:
            raise DataError(f"expected 2 to {MOST_BINS}, found {n_bins!r}", field="bins")
        rows = np.random.default_rng(0).permutation(X.shape[0])[:SAMPLE]
        sample = _dense(X[np.sort(rows)])
        binner = ScoreBinner(n_bins - 1, strategy).fit(sample)
        n_columns = X.shape[1]
        nominal = np.zeros(n_columns, bool) if nominal is None else nominal
        thresholds = [binner.thresholds_[binner.column_ == j] for j in range(n_columns)]
        for j in np.flatnonzero(nominal):
            values = categories_of(X, int(j)) if categories is None else categories[int(j)]
            thresholds[j] = _checked(values, int(j))
        height = max(n_bins, *(len(column) + 1 for column in thresholds), LEVELS**2 * crossable) + 1
        edges = np.full((n_columns, height - 1), np.inf)
        for column, row in zip(thresholds, edges):
            row[: len(column)] = column
        return cls(
            edges,
            nominal,
            np.zeros(n_columns, np.int8) if signs is None else signs,
            np.zeros((n_columns, height), np.uint8),
            np.zeros((0, 2), np.int64),
        )

    @property
    def height(self) -> int:
        """Number of bins, with that of missing values."""
        return self.edges.shape[1] + 1

    @property
    def empty(self) -> Binned:
        """No rows at all, binned."""
        return self._binned(np.empty((0, self.n_columns), np.uint8))

    @property
    def n_columns(self) -> int:
        """Columns of the bytes: those of the input, and one for each pair."""
        return len(self.edges) + len(self.pairs)

    def transform(self, X: Matrix, execute: Executor = serial) -> Binned:
        """The rows of X as bins."""
        bins = np.empty((X.shape[0], self.n_columns), np.uint8)
        assign = self._search if len(bins) <= FEW else self._look_up()

        def fill(start: int) -> None:
            rows = slice(start, start + BLOCK)
            values, own = aligned(_dense(X[rows])), bins[rows]
            assign(values, own)
            self._name_categories(values, own)
            self._cross(own)

        execute(fill, range(0, X.shape[0], BLOCK))
        return self._binned(bins)

    def _search(self, values: NDArray[Any], bins: NDArray[np.uint8]) -> None:
        """Fill in the number of edges below each value, found by bisection."""
        for j, edges in enumerate(self.edges):
            bins[:, j] = edges.searchsorted(values[:, j])

    def _look_up(self) -> Callable[[NDArray[Any], NDArray[np.uint8]], None]:
        """What does the same, but begins at the edge where a cell of an even grid begins."""
        n, finite = len(self.edges), np.where(np.isfinite(self.edges), self.edges, np.nan)
        low = np.nan_to_num(np.fmin.reduce(finite, axis=1))
        width = np.nan_to_num(np.fmax.reduce(finite, axis=1)) - low
        scale = np.divide(CELLS, width, out=np.zeros(n), where=width > 0)
        starts = low[:, None] + np.arange(CELLS) * width[:, None] / CELLS
        below = [edges.searchsorted(at) for edges, at in zip(self.edges, starts)]
        guesses = np.array(below, np.uint8)
        guesses = np.concatenate([np.zeros((n, 1), np.uint8), guesses[:, :-1]], axis=1)

        return lambda values, bins: assign_bins(values, self.edges, guesses, low, scale, bins)

    def _name_categories(self, values: NDArray[Any], bins: NDArray[np.uint8]) -> None:
        """Replace the number of edges below each value of nominal columns by its category."""
        missing = self.edges.shape[1]
        for j in np.flatnonzero(self.nominal):
            below = bins[:, j]
            seen = values[:, j] == self.edges[j, np.minimum(below, missing - 1)]
            bins[:, j] = np.where(below == missing, below, np.where(seen, below + 1, 0))

    def _cross(self, bins: NDArray[np.uint8]) -> None:
        """Fill the columns of pairs, which stand behind those of features."""
        for k, (first, second) in enumerate(self.pairs, len(self.levels)):
            a, b = self.levels[first][bins[:, first]], self.levels[second][bins[:, second]]
            bins[:, k] = np.where((a > 0) & (b > 0), LEVELS * (a - 1) + b, 0)

    def _binned(self, bins: NDArray[np.uint8]) -> Binned:
        n, n_pairs = len(self.edges), len(self.pairs)
        running = np.concatenate([~self.nominal, np.zeros(n_pairs, bool)])
        signs = np.concatenate([self.signs, np.zeros(n_pairs, np.int8)])
        units = np.tile(np.repeat([1.0, UNIT], [n, n_pairs]), (self.height, 1))
        return Binned(bins, self.height, running, units, signs if signs.any() else None)

    def levelled(self, bins: NDArray[np.uint8]) -> Bins:
        """The same with ``levels`` that are finer towards the ends of a column.

        Products are large there. With the rows as an angle, of which a share of sin² comes first,
        levels are even. Missing values, where there are any, are a level of their own, and so are
        the most frequent categories.
        """
        levels = np.zeros_like(self.levels)
        for j in range(len(self.edges)):
            counts = np.bincount(bins[:, j], minlength=self.height)
            missing = int(counts[-1] > 0)
            levels[j, -1] = LEVELS * missing
            levels[j, :-1] = _levels(counts[:-1], LEVELS - missing, bool(self.nominal[j]))
        return replace(self, levels=levels)

    def coarse(self, bins: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Levels of binned rows, two of them taken as one, from 0 on."""
        halved = np.maximum(self.levels, 1) - 1
        halved //= 2
        out = np.empty((len(bins), len(self.edges)), np.uint8)
        for j, own in enumerate(halved):
            out[:, j] = own[bins[:, j]]
        return out

    def crossed(self, pairs: NDArray[np.int64]) -> Bins:
        """The same with these pairs of columns."""
        return replace(self, pairs=pairs.astype(np.int64).reshape(-1, 2))

    def added(self, binned: Binned) -> Binned:
        """Rows that were binned before there were pairs, with the columns of the pairs."""
        bins = np.empty((len(binned.bins), self.n_columns), np.uint8)
        bins[:, : len(self.edges)] = binned.bins
        self._cross(bins)
        return self._binned(bins)


def _levels(counts: NDArray[np.int64], n_levels: int, nominal: bool) -> NDArray[np.uint8]:
    """A level from 1 to n_levels for each bin, 0 for a category that was never seen."""
    if nominal:
        rank = np.empty(len(counts), np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        return np.where(counts > 0, np.minimum(rank, n_levels - 1) + 1, 0).astype(np.uint8)
    if np.sum(counts > 0) <= n_levels:  # a level each
        return np.clip(np.cumsum(counts > 0), 1, n_levels).astype(np.uint8)
    middle = np.cumsum(counts) - counts / 2
    angle = np.arcsin(np.sqrt(middle / counts.sum())) / (np.pi / 2)
    return np.clip(np.floor(n_levels * angle) + 1, 1, n_levels).astype(np.uint8)


def categories_of(X: Matrix, column: int) -> NDArray[Any]:
    """The values of a column, each once, in ascending order."""
    values = _dense(X[:, [column]]).ravel()
    return np.unique(values[~np.isnan(values)])


def _checked(categories: NDArray[Any], column: int) -> NDArray[Any]:
    if len(categories) > MOST_BINS - 1:
        raise DataError(
            f"column {column} has {len(categories)} categories, and there is room for "
            f"{MOST_BINS - 1}",
            field="categorical",
        )
    return categories


def _dense(X: Any) -> NDArray[Any]:
    return X if isinstance(X, np.ndarray) else X.toarray()
