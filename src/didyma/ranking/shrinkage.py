"""What the penalty of an additive ranker shrinks to: functions to lines, tables to products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from didyma.ranking.bins import LEVELS, Bins

Vector = NDArray[np.float64]

LEAST = 1e-3  # share of rows of a bin, so that none is far out
CELL = 0.3  # unit of weights that stand alone: of categories, missing values and cells of pairs
RANGE = 4.0  # so that products of quantiles, which are within ±½, are within ±1


def _normal(share: Vector) -> Vector:
    from statistics import NormalDist  # which takes a while to import, but less than SciPy

    return np.asarray(np.vectorize(NormalDist().inv_cdf)(share) / np.sqrt(12.0))


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
    levels = _by_level(bins, mass[:, :n], places)
    for k, (first, second) in enumerate(bins.pairs, n):
        rises[1 : LEVELS**2 + 1, k] = RANGE * np.outer(levels[first], levels[second]).ravel()
    return units, rises


def _places(mass: Vector, nominal: NDArray[np.bool_], line: str) -> Vector:
    """The place of the middle of each bin on the line, less the mean; 0 for missing values."""
    present = mass[:-1]
    total = np.where(nominal, np.inf, np.maximum(present.sum(axis=0), np.finfo(float).tiny))
    share = (np.cumsum(present, axis=0) - present / 2) / total
    middle = LINES[line](np.clip(share, LEAST, 1.0 - LEAST))
    mean = (present * middle).sum(axis=0) / total
    return np.concatenate([np.where(nominal, 0.0, middle - mean), np.zeros((1, len(nominal)))])


def _by_level(bins: Bins, mass: Vector, places: Vector) -> Vector:
    """The mean place of the rows of each level of each column, (n_columns, levels)."""
    means = np.zeros((len(bins.levels), LEVELS))
    for column, levels in enumerate(bins.levels):
        shares = np.bincount(levels, mass[:, column], LEVELS + 1)
        sums = np.bincount(levels, mass[:, column] * places[:, column], LEVELS + 1)
        means[column] = (sums / np.where(shares > 0, shares, 1.0))[1:]
    return means
