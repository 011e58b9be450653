"""What fitted scalers and rankers compute of rows, given what they have learned.

The estimators call these functions. `didyma.model.Model` also scales by them where a file names a
scaler of scikit-learn, which is not imported for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.data.matrix import Matrix, dense

# Rows that are scored at a time, so that single precision is never widened all at once.
BLOCK = 8192

Record: TypeAlias = dict[str, Any]
Scores: TypeAlias = NDArray[np.float64]
Attributes: TypeAlias = Mapping[str, Any]
"""What an estimator is: its parameters and what it has learned, by name."""


def linear_scores(X: Matrix, w: NDArray[np.float64]) -> Scores:
    """X w in double precision."""
    scores = np.empty(X.shape[0])
    for start in range(0, len(scores), BLOCK):
        scores[start : start + BLOCK] = X[start : start + BLOCK] @ w
    return scores


InQuery: TypeAlias = Callable[[NDArray[Any], Groups], NDArray[Any]]


def _query_by_query(scale: InQuery) -> InQuery:
    """What scales rows in any order, given what scales those that stand query by query."""

    @wraps(scale)
    def scaled(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
        out = np.empty_like(rows)
        out[groups.rows] = scale(rows[groups.rows], groups)
        return out

    return scaled


@_query_by_query
def minmax_in_query(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    """(x − least) / (greatest − least) of each feature within each query."""
    low, high = _extremes(rows, groups)
    return _divide(rows - _per_row(low, groups), _per_row(high - low, groups))


@_query_by_query
def standard_in_query(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    """(x − mean) / deviation of each feature within each query."""
    low, high = _extremes(rows, groups)
    centred = rows - _per_row(_mean(rows, groups), groups)
    deviation = np.sqrt(_mean(centred**2, groups))
    # The rounded mean of equal values may miss them, so constancy is asked of the values.
    return _divide(centred, _per_row(np.where(low == high, 0, deviation), groups))


@_query_by_query
def percentile_in_query(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    """The share of the other rows of its query that have a lower value, of each feature."""
    query = np.repeat(np.arange(len(groups)), groups.sizes)
    place = np.arange(len(rows))
    lower = np.empty_like(rows)
    for column, values in enumerate(rows.T):
        order = np.lexsort((values, query))
        ranked = values[order]
        new = np.ones(len(rows), dtype=np.bool_)  # neither the value nor the query of before
        new[1:] = (ranked[1:] != ranked[:-1]) | (query[1:] != query[:-1])
        first = np.maximum.accumulate(np.where(new, place, 0))
        lower[order, column] = first - groups.starts[query]
    others = _sum(~np.isnan(rows), groups) - 1
    shares = _divide(lower, _per_row(others, groups))
    shares[np.isnan(rows)] = np.nan
    return shares


def _sum(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    return np.add.reduceat(rows, groups.starts[:-1], axis=0, dtype=np.float64)


def _mean(rows: NDArray[Any], groups: Groups) -> NDArray[Any]:
    return _sum(np.nan_to_num(rows), groups) / np.maximum(_sum(~np.isnan(rows), groups), 1)


def _extremes(rows: NDArray[Any], groups: Groups) -> tuple[NDArray[Any], NDArray[Any]]:
    """Least and greatest value of each query, NaN only where all are missing."""
    starts = groups.starts[:-1]
    return np.fmin.reduceat(rows, starts, axis=0), np.fmax.reduceat(rows, starts, axis=0)


def _per_row(values: NDArray[Any], groups: Groups) -> NDArray[Any]:
    return np.repeat(values, groups.sizes, axis=0)


def _divide(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[Any]:
    """The ratio, and 0 where a feature is constant; missing values stay missing."""
    return np.where(whole > 0, part, part * 0) / np.where(whole > 0, whole, 1)


def _max_abs(X: Matrix, _: Groups, state: Attributes) -> Matrix:
    return _divided(X, state["scale_"])


def _standard(X: Matrix, _: Groups, state: Attributes) -> Matrix:
    if state["with_mean"]:
        X = X - state["mean_"].astype(X.dtype)
    return _divided(X, state["scale_"]) if state["with_std"] else X


def _minmax(X: NDArray[Any], _: Groups, state: Attributes) -> NDArray[Any]:
    scaled = X * state["scale_"].astype(X.dtype) + state["min_"].astype(X.dtype)
    return np.clip(scaled, *state["feature_range"]) if state["clip"] else scaled


def _divided(X: Matrix, scale: NDArray[Any]) -> Matrix:
    """Each column over its scale; of a sparse matrix times the reciprocal, as scikit-learn does."""
    if isinstance(X, np.ndarray):
        return X / scale.astype(X.dtype)
    scaled = X.copy()
    scaled.data *= (1.0 / scale).take(X.indices)
    return scaled


def learn_scaling(name: str, X: Matrix, groups: Groups) -> Record:
    """What the scaler of that name learns from rows: its parameters and attributes."""
    if name == "StandardScaler":
        mean = sum(part.sum(axis=0, dtype=np.float64) for part in _parts(X)) / len(X)
        variance = sum(((part - mean) ** 2).sum(axis=0) for part in _parts(X)) / len(X)
        # A constant column has a variance of rounding only; it is centred and not scaled.
        noise = len(X) * np.finfo(np.float64).eps
        constant = variance <= noise * variance + (noise * mean) ** 2
        scale = np.where(constant, 1.0, np.sqrt(variance))
        learned = {"mean_": mean, "var_": variance, "scale_": scale, "n_samples_seen_": len(X)}
        return {"copy": True, "with_mean": True, "with_std": True, **learned}
    if name == "MaxAbsScaler":
        greatest = np.zeros(X.shape[1], X.dtype)
        for part in _parts(X):
            largest = abs(part).max(axis=0)
            np.maximum(greatest, dense(largest), out=greatest)
        scale = np.where(greatest == 0, 1.0, greatest)
        learned = {"max_abs_": greatest, "scale_": scale, "n_samples_seen_": X.shape[0]}
        return {"copy": True, "clip": False, **learned}
    return {"n_queries_": len(groups)}


def _parts(X: Matrix) -> Iterator[Any]:
    """Some rows at a time, so that what is computed of them is small."""
    return (X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK))


# What each scaler does to rows, by its name.
SCALERS: dict[str, Callable[[Any, Groups, Attributes], Any]] = {
    "QueryMinMaxScaler": lambda X, groups, _: minmax_in_query(X, groups),
    "QueryStandardScaler": lambda X, groups, _: standard_in_query(X, groups),
    "QueryPercentileScaler": lambda X, groups, _: percentile_in_query(X, groups),
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _minmax,
    "StandardScaler": _standard,
}
