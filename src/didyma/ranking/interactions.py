"""Detection of interactions between pairs of columns, after Lou et al. 2013 (FAST).

Each pair has a small table of means of the residuals, and counts for what is in it beyond a sum of
rows and columns. The residual of a row is, for a ranker, its coefficient in the cut at the present
weights: the subgradient of the risk.
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from didyma._core.rows import cross
from didyma.execution import Executor, serial

COARSE = 4  # levels of each column of a table
SAMPLE = 16384  # rows by which the cells of tables are counted
# Shards of rows with sums of their own: at most so many, and so many bytes, each of so many rows.
SHARDS, MEMORY, ROWS = 8, 2**27, 2048
ROUNDS = 10  # of fitting rows and columns in turns

Array = NDArray[np.float64]


def rank_pairs(
    levels: NDArray[np.uint8],
    coefficients: Array,
    allowed: NDArray[np.bool_],
    execute: Executor = serial,
) -> tuple[NDArray[np.int64], Array]:
    """All pairs of allowed columns, the most promising first, and the squares that each explains.

    ``levels`` (n_rows × n_columns) are below four, ``coefficients`` the residuals of the rows.

    >>> rng = np.random.default_rng(0)
    >>> levels = rng.integers(4, size=(2000, 5)).astype(np.uint8)
    >>> left = np.where((levels[:, 1] > 1) == (levels[:, 4] > 1), 1.0, -1.0)
    >>> rank_pairs(levels, left, np.ones(5, bool))[0][0].tolist()
    [1, 4]
    """
    columns = np.flatnonzero(allowed)
    if len(columns) < 2:
        return np.empty((0, 2), np.int64), np.empty(0)
    chosen = np.ascontiguousarray(levels[:, columns])
    sums = _cross(chosen, np.flatnonzero(coefficients), coefficients, execute)
    sample = np.sort(np.random.default_rng(0).permutation(len(levels))[:SAMPLE])
    counts = _cross(chosen, sample, np.ones(len(levels)), execute) * (len(levels) / len(sample))
    first, second = np.triu_indices(len(columns), 1)
    tables = (each[first, :, second].transpose(1, 2, 0) for each in (sums, counts))
    energy = _energy(*map(np.ascontiguousarray, tables))
    order = np.argsort(-energy, kind="stable")
    pairs = np.column_stack([columns[first], columns[second]])[order]
    return pairs, energy[order]


def _cross(
    levels: NDArray[np.uint8], rows: NDArray[np.int64], coefficients: Array, execute: Executor
) -> Array:
    """The tables of all pairs, (column, level, column, level)."""
    n = levels.shape[1]

    def add(shard: tuple[int, int]) -> Array:
        chosen, part = rows[slice(*shard)], np.zeros((n, COARSE, n, COARSE))
        cross(levels, chosen, coefficients[chosen], COARSE, part.reshape(-1))
        return part

    shards = max(1, min(SHARDS, MEMORY // (8 * (n * COARSE) ** 2), len(rows) // ROWS))
    edges = np.linspace(0, len(rows), shards + 1).astype(int).tolist()
    return reduce(np.add, execute(add, list(pairwise(edges))))


def _energy(sums: Array, counts: Array) -> Array:
    """Σ of squares between the cells of each table that no sum of rows and columns explains.

    Tables are (level, level, pair).
    """
    counts = np.maximum(counts, 1.0)
    rest, totals = sums / counts, {axis: counts.sum(axis, keepdims=True) for axis in (0, 1)}
    for _ in range(ROUNDS):
        for axis, total in totals.items():
            rest -= (counts * rest).sum(axis, keepdims=True) / total
    energy: Array = (counts * rest**2).sum(axis=(0, 1))
    return energy
