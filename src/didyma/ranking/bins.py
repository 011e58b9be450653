"""Columns of numbers as columns of bins, one byte each: what an additive ranker looks at.

Binned rows are the third storage of a ranking problem, beside dense and CSR. A byte of a feature
stands for the indicators of `didyma.ranking.binning.ScoreBinner`, of which there is one for each
bin, without any of them being stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma._core.rows import BinnedRows, assign_bins
from didyma.data.matrix import Matrix, dense
from didyma.errors import DataError
from didyma.execution import Executor, serial
from didyma.learning.problem import clipped
from didyma.values import aligned, is_whole

Vector = NDArray[np.float64]

MOST_BINS = 254  # and bins for bin 0 and for missing values, in a byte
SAMPLE = 4096  # rows that edges are read off
CELLS = 1024  # of the grid in which a value is looked up
BLOCK = 8192  # rows that a thread bins at a time
FEW = 512  # rows, for which such a grid does not pay
LEVELS = 8  # of a column that is crossed with another
# Of the indicators of a cell. Weights of cells stand alone while those of bins add up, so that with
# a unit of 1 a table would cost hundreds of times what a function that rises as far does.
UNIT = 16.0

LEAST = 1e-3  # share of rows of a bin, so that none is far out
CELL = 0.3  # unit of weights that stand alone: of categories, missing values and cells of pairs
TINY = 1e-6  # of a unit
RANGE = 4.0  # so that products of quantiles, which are within ±½, are within ±1


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
        """The least weights whose `tables` these are, but for a constant.

        >>> Z = Binned(np.empty((0, 1), np.uint8), 4, np.array([True]))
        >>> Z.weights(np.array([[0.0], [1.0], [11.0], [100.0]])).tolist()
        [1.0, 10.0, 100.0]
        """
        steps: Vector = tables[1:] - tables[0]
        steps[1:-1] -= self.running * (tables[1:-2] - tables[0])
        units = np.ones_like(steps) if self.units is None else self.units[1:]
        slopes = np.zeros((0, len(self.running)))
        if self.rises is not None:
            rises, squares = self.rises[1:], np.maximum(units, TINY) ** 2
            cost = 1.0 + (rises**2 / squares).sum(axis=0)
            slopes = (rises * steps / squares).sum(axis=0, keepdims=True) / cost
            steps -= rises * slopes
        weights = np.divide(steps, units, out=np.zeros_like(steps), where=units > 0)
        return np.concatenate([slopes, weights]).ravel()

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
        for j, column in enumerate(self.bins.T):
            sums[:, j] = np.bincount(column, values[:, j], self.height)
        filled = np.maximum.accumulate(np.where(counts > 0, np.arange(self.height)[:, None], -1))
        filled = np.maximum(filled, (counts > 0).argmax(axis=0))
        means = np.take_along_axis(sums / np.maximum(counts, 1), filled, axis=0)
        means[-1] = np.where(counts[-1] > 0, means[-1], values.mean(axis=0))
        return self.weights(means)

    @property
    def weight_signs(self) -> Vector | None:
        """The sign that each weight must have, 0 if any, or None if no column asks for one."""
        if self.signs is None:
            return None
        signs = np.tile(self.signs.astype(np.float64), (self.shape[1] // len(self.running), 1))
        signs[-1] = 0.0  # of missing values
        return signs.ravel()

    def feasible(self, w: Vector) -> Vector:
        """The nearest weights that have the signs which are asked for."""
        return clipped(w, self.weight_signs)

    def counts(self) -> Vector:
        """How many rows each bin of each column has, (height, n_columns)."""
        n_rows, table = len(self.bins), np.zeros((self.height, len(self.running)))
        plain = Binned(self.bins, self.height, np.zeros_like(self.running))
        plain.rows.combine(np.arange(n_rows), np.ones(n_rows), table[1:].ravel())
        table[0] = n_rows - table[1:].sum(axis=0)
        return table


@dataclass(frozen=True, eq=False)
class Bins:
    """Where the bins of each column begin, and which columns are crossed.

    ``edges`` (n_columns × (height − 1)) ascend and end in infinities. A value is in the bin whose
    number is that of the edges below it, and NaN in the last one, height − 1. Where a column is
    ``nominal`` its edges are its categories; the k-th of them is bin k + 1, and one that was never
    seen is bin 0, whose weight is zero; `reach` says what else means it. ``signs`` are those of
    `Binned`.

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
        categories: Mapping[int, NDArray[Any]] | None = None,
        names: Sequence[Any] | None = None,
    ) -> Bins:
        """Choose ``n_bins`` bins for each column of X, as `ScoreBinner` places its thresholds.

        Edges are read off a random sample of the rows, categories off all of them, unless those
        that a nominal column has are known. Errors tell the ``names`` of columns.

        >>> Bins.of(np.array([[0.0], [1.0], [2.0], [3.0]]), 2).edges.tolist()
        [[1.5, inf]]
        """
        from didyma.ranking.binning import ScoreBinner

        check_number_of_bins(n_bins)
        rows = np.random.default_rng(0).permutation(X.shape[0])[:SAMPLE]
        sample = dense(X[np.sort(rows)])
        binner = ScoreBinner(n_bins - 1, strategy).fit(sample)
        n_columns = X.shape[1]
        nominal = np.zeros(n_columns, bool) if nominal is None else nominal
        thresholds = [binner.thresholds_[binner.column_ == j] for j in range(n_columns)]
        for j in np.flatnonzero(nominal):
            known = None if categories is None else categories.get(int(j))
            values = categories_of(X, int(j)) if known is None else known
            if len(values) > MOST_BINS - 1:
                raise DataError(
                    f"{len(values)} categories, and there is room for {MOST_BINS - 1}",
                    field=f"column {j if names is None else repr(str(names[int(j)]))}",
                )
            thresholds[j] = values
        height = max(n_bins, *(len(column) + 1 for column in thresholds)) + 1
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
            values, block = aligned(dense(X[rows])), bins[rows]
            assign(values, block)
            self._name_categories(values, block)
            self._cross(block)

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
        wide = width > CELLS * np.finfo(float).tiny  # else a grid is finer than numbers are
        scale = np.divide(CELLS, width, out=np.zeros(n), where=wide)
        starts = low[:, None] + np.arange(CELLS) * width[:, None] / CELLS
        below = [edges.searchsorted(at) for edges, at in zip(self.edges, starts)]
        guesses = np.array(below, np.uint8)
        guesses = np.concatenate([np.zeros((n, 1), np.uint8), guesses[:, :-1]], axis=1)

        return lambda values, bins: assign_bins(values, self.edges, guesses, low, scale, bins)

    def _name_categories(self, values: NDArray[Any], bins: NDArray[np.uint8]) -> None:
        """Replace the number of edges below each value of nominal columns by its category."""
        missing = self.edges.shape[1]
        for j in np.flatnonzero(self.nominal):
            below, column = bins[:, j], values[:, j]
            low, high = reach(self.edges[j, np.isfinite(self.edges[j])], values.dtype)
            known = below < missing
            at = np.where(known, below, 0)
            own = np.where(column >= np.append(low, np.nan)[at], at + 1, 0)  # or that before it
            own = np.where((own == 0) & (column <= np.append(np.nan, high)[at]), at, own)
            bins[:, j] = np.where(known, own, missing)

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

    def levelled(self, counts: Vector) -> Bins:
        """The same with ``levels`` that are finer towards the ends of a column.

        Products are large there. With the rows as an angle, of which a share of sin² comes first,
        levels are even. Missing values, where there are any, are a level of their own, and so are
        the most frequent categories. ``counts`` are `Binned.counts`.
        """
        levels = np.zeros_like(self.levels)
        for j, column in enumerate(counts.T[: len(self.edges)]):
            missing = int(column[-1] > 0)
            levels[j, -1] = LEVELS * missing
            levels[j, :-1] = _levels(column[:-1], LEVELS - missing, bool(self.nominal[j]))
        return replace(self, levels=levels)

    def coarse(self, bins: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Levels of binned rows, two of them taken as one, from 0 on."""
        halved = (np.maximum(self.levels, 1) - 1) // 2
        coarse = np.empty((len(bins), len(halved)), np.uint8)
        for j, levels in enumerate(halved):
            coarse[:, j] = levels[bins[:, j]]
        return coarse

    def crossed(self, pairs: NDArray[np.int64]) -> Bins:
        """The same with these pairs of columns, and room for their cells."""
        more = max(0, LEVELS**2 + 1 - self.height) if len(pairs) else 0
        return replace(
            self,
            edges=np.pad(self.edges, ((0, 0), (0, more)), constant_values=np.inf),
            levels=np.insert(self.levels, np.full(more, self.height - 1), 0, axis=1),
            pairs=pairs.astype(np.int64).reshape(-1, 2),
        )

    def added(self, binned: Any) -> Binned:
        """Rows that were binned before there were pairs, with the columns of the pairs."""
        bins = np.empty((len(binned.bins), self.n_columns), np.uint8)
        missing = binned.bins == binned.height - 1
        bins[:, : len(self.edges)] = np.where(missing, self.height - 1, binned.bins)
        self._cross(bins)
        return self._binned(bins)


def check_number_of_bins(n_bins: Any) -> None:
    """Refuse a number of bins of a column that is none."""
    if not (is_whole(n_bins) and 2 <= n_bins <= MOST_BINS):
        raise DataError(f"expected 2 to {MOST_BINS}, found {n_bins!r}", field="bins")


def _levels(counts: Vector, n_levels: int, nominal: bool) -> NDArray[np.uint8]:
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
    values = dense(X[:, [column]]).ravel()
    return np.unique(values[~np.isnan(values)])


def reach(categories: Vector, rows: Any = np.float64) -> tuple[Vector, Vector]:
    """The least and the greatest number that means each category, among those of a type.

    A category such as .1 is another number in single precision. Where all categories are numbers
    of it, as after training on such rows, whatever is rounded to one of them means it. Where they
    are not, a number in single precision means the category that is rounded to it, and one in
    double precision nothing but itself: ids may be there that single precision cannot tell apart.

    >>> low, high = reach(np.array([3.0]))
    >>> low < 3.0 < high, np.float32(low) == np.float32(high) == 3.0
    (array([ True]), array([ True]))
    >>> reach(np.array([0.1, 3.0]))
    (array([0.1, 3. ]), array([0.1, 3. ]))
    """
    with np.errstate(over="ignore"):
        single = categories.astype(np.float32)
        if not np.array_equal(single, categories):
            other = single if np.dtype(rows) == np.float32 else categories
            return np.minimum(categories, other), np.maximum(categories, other)
        ends = []
        for way in (-np.inf, np.inf):
            middle = (categories + np.nextafter(single, np.float32(way))) / 2
            inside = middle.astype(np.float32) == single  # which of two is even decides
            ends.append(np.where(inside, middle, np.nextafter(middle, categories)))
    return ends[0], ends[1]


def step_scores(bins: NDArray[np.uint8], tables: NDArray[np.float64]) -> Vector:
    """The sum over columns of what the bins of each row add, from the first column to the last."""
    scores = np.zeros(len(bins))
    for column, table in zip(bins.T, tables.T):
        scores += table[column]
    return scores


def _normal(share: Vector) -> Vector:
    from statistics import NormalDist  # which takes a while to import, but less than SciPy

    # Bins have as many rows, so that most shares are equal.
    values, places = np.unique(share, return_inverse=True)
    quantiles = np.array(list(map(NormalDist().inv_cdf, values)))
    return (quantiles / np.sqrt(12.0))[places].reshape(share.shape)


# What a line is straight over: the share of rows below, or a normal variable of that quantile, for
# features whose extremes count. Both have the same deviation.
LINES: dict[str, Callable[[Vector], Vector]] = {
    "quantile": lambda share: share,
    "normal": _normal,
}


def shrinkage(bins: Bins, mass: Vector, roughness: float, line: str) -> tuple[Vector, Vector]:
    """Units and rises of `Binned`, each (height × n_columns), for bins with these shares of rows.

    With q the place of a bin on the ``line``, the function of a column with K steps is

        T(m) = w_0 (q_m − q_0) + ρ/√K Σ_{l ≤ m} w_l

    and ½‖w‖² is what a line costs that rises by w_0, and a walk around it that strays by about
    ρ = ``roughness`` on its way, whatever the number of bins. Cells of a pair stray in the same way
    from the product of the places of both.

    >>> bins = Bins.of(np.array([[0.0], [1.0], [2.0], [3.0]]), 4)
    >>> shares = np.array([[0.25], [0.25], [0.25], [0.25], [0.0]])
    >>> units, rises = shrinkage(bins, shares, roughness=0.5, line="quantile")
    >>> rises[1:4].ravel().tolist()
    [0.25, 0.25, 0.25]
    """
    n = len(bins.edges)
    places = _places(mass[:, :n], bins.nominal, line)
    n_steps = np.maximum((mass[:-1, :n] > 0).sum(axis=0) - 1, 1)
    units = np.full(mass.shape, CELL)
    units[:-1, :n] = np.where(bins.nominal, CELL, roughness / np.sqrt(n_steps))
    rises = np.zeros(mass.shape)
    rises[1:-1, :n] = np.diff(places[:-1], axis=0)
    rises[-1, :n] = -places[0]
    for k, pair in enumerate(bins.pairs, n):
        first, second = (_by_level(bins.levels[j], mass[:, j], places[:, j]) for j in pair)
        rises[1 : LEVELS**2 + 1, k] = RANGE * np.outer(first, second).ravel()
    return units, rises


def _places(mass: Vector, nominal: NDArray[np.bool_], line: str) -> Vector:
    """The place of the middle of each bin on the line, less the mean; 0 for missing values."""
    present = mass[:-1]
    total = np.where(nominal, np.inf, np.maximum(present.sum(axis=0), np.finfo(float).tiny))
    share = (np.cumsum(present, axis=0) - present / 2) / total
    middle = LINES[line](np.clip(share, LEAST, 1.0 - LEAST))
    mean = (present * middle).sum(axis=0) / total
    return np.concatenate([np.where(nominal, 0.0, middle - mean), np.zeros((1, len(nominal)))])


def _by_level(levels: NDArray[np.uint8], mass: Vector, places: Vector) -> Vector:
    """The mean place of the rows of each level of a column."""
    shares = np.bincount(levels, mass, LEVELS + 1)
    sums = np.bincount(levels, mass * places, LEVELS + 1)
    return np.asarray((sums / np.where(shares > 0, shares, 1.0))[1:])
