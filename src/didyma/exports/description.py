"""What a fitted ranker computes, as plain numbers that any engine can be told.

    score(x) = constant + Σ_lines weight · (min(max(x_j, low), high) − centre) / scale
                        + Σ_tables value of the cell in which x_j, or x_j and x_k, stand

A linear ranker is lines, its scalers their centres, scales and limits. An additive one is tables
over binned columns, in which missing values have a cell of their own. This is the only place that
looks into a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.matrix import Columns
from didyma.errors import DataError
from didyma.learning.scoring import SCALERS
from didyma.model import Model
from didyma.ranking.bins import LEVELS, Bins, reach

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ColumnLine:
    """What a column adds to a score if that is linear between ``low`` and ``high``."""

    column: int
    weight: float
    centre: float = 0.0
    scale: float = 1.0
    low: float = -math.inf
    high: float = math.inf

    @property
    def scaled(self) -> bool:
        """Whether the column is standardised."""
        return self.centre != 0 or self.scale != 1

    @property
    def clipped(self) -> bool:
        """Whether values beyond some limit count as that limit."""
        return self.low > -math.inf or self.high < math.inf


@dataclass(frozen=True)
class Binning:
    """Cells of a column's values.

    ``edges`` ascend. A number is in cell ``cells[k]`` if k edges are below it, and a missing value
    in ``cells[-1]``.
    """

    column: int
    edges: tuple[float, ...]
    cells: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BinTable:
    """What the cells of one column, or of two, add to a score: ``values`` has an axis for each."""

    binnings: tuple[Binning, ...]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Description:
    """What a ranker adds up over columns: either lines or tables."""

    features: Columns
    constant: float
    lines: tuple[ColumnLine, ...] = ()
    tables: tuple[BinTable, ...] = ()

    @property
    def binnings(self) -> list[Binning]:
        """The binnings of all tables."""
        return [binning for table in self.tables for binning in table.binnings]

    @property
    def columns(self) -> list[int]:
        """Places of the columns that scores depend on."""
        binned = {binning.column for binning in self.binnings}
        return sorted(binned | {line.column for line in self.lines})

    @property
    def negative_columns(self) -> list[int]:
        """Columns with values below 0 in training, as far as means and edges of bins show."""
        lines = {line.column for line in self.lines if line.centre < 0}
        binned = {part.column for part in self.binnings if min(part.edges, default=0) < 0}
        return sorted(lines | binned)

    def magnitude(self, rows: FloatArray) -> FloatArray:
        """The sum of the sizes of all that is added up for each row: rounding is relative to it."""
        total = np.full(len(rows), abs(self.constant))
        for line in self.lines:
            sizes = np.abs(np.clip(rows[:, line.column], line.low, line.high)) + abs(line.centre)
            total += abs(line.weight) * sizes / line.scale
        return total + sum(float(np.abs(table.values).max()) for table in self.tables)


def describe_ranker(model: Model) -> Description:
    """Describe a model that ranks rows by a sum over their columns.

    >>> from didyma.ranking.svm import SVMRanker
    >>> ranker = SVMRanker(C=1).fit([[3.0, 0.0], [1.0, 0.0]], [1, 0])
    >>> describe_ranker(Model.of(ranker)).lines
    (ColumnLine(column=0, weight=0.125, centre=0.0, scale=1.0, low=-inf, high=inf),)
    """
    *scalers, (name, learned) = model.states
    if name not in RANKERS:
        raise DataError(
            f"a {name} cannot be exported: it is not a sum over columns of rows, as linear and "
            "additive rankers are"
        )
    for scaler, _ in scalers:
        if scaler not in SCALINGS:
            reason = "scales columns within queries" if scaler in SCALERS else "is no scaler"
            raise DataError(
                f"a model behind a {scaler} cannot be exported: it {reason}, which engines that "
                "see one row at a time cannot do"
            )
    return RANKERS[name](model, scalers, learned)


def _linear(model: Model, scalers: Sequence[Any], learned: dict[str, Any]) -> Description:
    n = model.features.count
    centre, scale, low, high = np.zeros(n), np.ones(n), np.full(n, -np.inf), np.full(n, np.inf)
    for name, scaler in scalers:  # and then (x − mean) / deviation within limits
        mean, deviation, limits = SCALINGS[name](scaler, n)
        centre, scale = centre + scale * mean, scale * deviation
        least, most = (centre + scale * limit for limit in limits)
        low, high = np.clip(low, least, most), np.clip(high, least, most)
    columns = enumerate(zip(learned["coef_"], centre, scale, low, high))
    every = [ColumnLine(j, *map(float, values)) for j, values in columns]
    lines = [line for line in every if line.weight] or every[:1]
    return Description(model.features, float(learned.get("intercept_", 0.0)), tuple(lines))


UNLIMITED = (-math.inf, math.inf)


def _max_abs(learned: dict[str, Any], n: int) -> tuple[Any, Any, tuple[float, float]]:
    return np.zeros(n), learned["scale_"], (-1.0, 1.0) if learned.get("clip") else UNLIMITED


def _standard(learned: dict[str, Any], n: int) -> tuple[Any, Any, tuple[float, float]]:
    centre = learned["mean_"] if learned["with_mean"] else np.zeros(n)
    return centre, learned["scale_"] if learned["with_std"] else np.ones(n), UNLIMITED


def _minmax(learned: dict[str, Any], n: int) -> tuple[Any, Any, tuple[float, float]]:
    scale = 1.0 / learned["scale_"]
    limits = tuple(map(float, learned["feature_range"])) if learned["clip"] else UNLIMITED
    return -learned["min_"] * scale, scale, limits  # type: ignore[return-value]


def _additive(model: Model, scalers: Sequence[Any], learned: dict[str, Any]) -> Description:
    if scalers:
        raise DataError(
            "an additive model behind a scaler cannot be exported: bins need no scaling, so fit "
            "it without"
        )
    for name, texts in zip(model.features.labels, model.features.categories or ()):
        if texts is not None:
            raise DataError(
                "a model with categories that are texts cannot be exported, as engines are given "
                "numbers: number them before training (sklearn.preprocessing.OrdinalEncoder), and "
                "in the engine in the same way",
                field=f"column {name!r}",
            )
    layout = ("edges_", "nominal_", "signs_", "levels_", "pairs_")
    values = Bins(*(learned[name] for name in layout)).empty.tables(learned["coef_"])
    n, pairs = len(learned["edges_"]), learned["pairs_"].tolist()
    tables = [_column(learned, j, values[:, j]) for j in range(n)]
    tables += [_pair(learned, pair, column) for pair, column in zip(pairs, values[:, n:].T)]
    used = [table for table in tables if table.values.any()]
    return Description(model.features, 0.0, tables=tuple(used or tables[:1]))


def _column(learned: dict[str, Any], j: int, values: FloatArray) -> BinTable:
    """The function of one column; bins of equal value are one cell."""
    distinct, cells = np.unique(values, return_inverse=True)
    return BinTable((_binning(learned, j, cells.tolist()),), distinct)


def _pair(learned: dict[str, Any], columns: Sequence[int], values: FloatArray) -> BinTable:
    """The table of two columns, whose cells are levels; level 0 adds nothing."""
    grid = np.full((LEVELS + 1, LEVELS + 1), values[0])
    grid[1:, 1:] = values[1 : LEVELS**2 + 1].reshape(LEVELS, LEVELS)
    binnings = (_binning(learned, j, learned["levels_"][j].tolist()) for j in columns)
    return BinTable(tuple(binnings), grid)


def _binning(learned: dict[str, Any], j: int, cells: list[int]) -> Binning:
    """The binning of a column, given the cell of each bin, the last for missing values."""
    padded = learned["edges_"][j]
    edges = padded[np.isfinite(padded)].tolist()
    numbers = cells[: len(edges) + 1]
    if learned["nominal_"][j]:  # a category is the interval of the numbers that mean it
        numbers = [cells[0], *(cell for category in numbers[1:] for cell in (category, cells[0]))]
        low, high = reach(padded[np.isfinite(padded)])
        edges = np.column_stack([np.nextafter(low, -np.inf), high]).ravel().tolist()
    steps = [k for k, (low, high) in enumerate(pairwise(numbers)) if low != high]
    heights = [numbers[0], *(numbers[k + 1] for k in steps)]
    return Binning(j, tuple(edges[k] for k in steps), (*heights, cells[-1]))


SCALINGS: dict[str, Callable[..., Any]] = {
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _minmax,
    "StandardScaler": _standard,
}
RANKERS: dict[str, Callable[..., Description]] = {
    "AdditiveSVMRanker": _additive,
    "ClassificationRanker": _linear,
    "LatentPerceptronRanker": _linear,
    "LatentSVMRanker": _linear,
    "RidgeRanker": _linear,
    "SVMRanker": _linear,
}
