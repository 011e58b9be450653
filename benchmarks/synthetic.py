"""Near-linear judged results: a hidden linear score and noise decide what is relevant."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.lists import Lists

__all__ = ["correlated", "dense", "graded", "indicators", "interacting", "normal", "standardise"]

# Noise in deviations of the hidden score: a good linear ranker then reaches a MAP of about 0.32.
NOISE = 1.6
RELEVANT = (0.03, 0.11)  # least and greatest share of a query's rows
SHARES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of the grades 0 to 4 in a collection


def dense(queries: int, rows: int = 100, features: int = 136, seed: int = 0) -> Lists:
    """Features uniform in [0, 1], as per-query normalisation leaves those of LETOR.

    The hidden score depends on the number of features alone, so that another seed gives test data.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((queries * rows, features))
    return _judge(X, queries, rng)


def normal(queries: int, rows: int = 100, features: int = 136) -> Lists:
    """Standard-normal features, nine relevant rows in a hundred."""
    rng = np.random.default_rng(0)
    return _judge(rng.normal(size=(queries * rows, features)), queries, rng, (0.09, 0.09))


def graded(queries: int, rows: int = 120, features: int = 136) -> Lists:
    """Uniform features, grades 0 to 4."""
    rng = np.random.default_rng(0)
    X = rng.random((queries * rows, features))
    score = _score(X, rng)
    grades = np.searchsorted(np.quantile(score, np.cumsum(SHARES)[:-1]), score)
    return Lists(X, grades.astype(np.float64), np.repeat(np.arange(queries), rows))


def indicators(queries: int, rows: int = 1000, functions: int = 35, bins: int = 20) -> Lists:
    """Binary CSR features: each of some functions falls into one of its bins."""
    rng = np.random.default_rng(0)
    n = queries * rows
    columns = bins * np.arange(functions) + rng.integers(bins, size=(n, functions))
    starts = functions * np.arange(n + 1)
    X = sp.csr_array(
        (np.ones(columns.size), columns.ravel().astype(np.int32), starts.astype(np.int32)),
        shape=(n, functions * bins),
    )
    return _judge(X, queries, rng)


def interacting(
    queries: int, share: float, rows: int = 100, features: int = 136, pairs: int = 12, seed: int = 0
) -> Lists:
    """Standard-normal features; products of some pairs have a share of the score's variance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * rows, features))
    truth = np.random.default_rng(features)
    alone = X @ truth.normal(size=features)
    first, second = truth.permutation(features)[: 2 * pairs].reshape(2, -1)
    together = (X[:, first] * X[:, second]) @ truth.normal(size=pairs)
    score = np.sqrt(1 - share) * alone / alone.std() + np.sqrt(share) * together / together.std()
    return _label(X, score + 0.5 * rng.normal(size=len(X)), queries, rng)


def correlated(queries: int, rows: int = 120, features: int = 136, seed: int = 0) -> Lists:
    """Grades 0 to 4; features of many magnitudes that share twelve hidden causes.

    Of the hidden score seven tenths are a line over the quantiles of some features, and three are
    steps of others; the noise has 2.6 times the variance of both.
    """
    rng, truth = np.random.default_rng(seed), np.random.default_rng(features)
    causes = rng.normal(size=(queries * rows, 12)) + 0.7 * np.repeat(
        rng.normal(size=(queries, 12)), rows, axis=0
    )
    X = causes @ truth.normal(size=(12, features)) / np.sqrt(12)
    X += 0.7 * rng.normal(size=X.shape)
    quantile = np.argsort(np.argsort(X, axis=0), axis=0) / len(X)
    alone = quantile @ (truth.normal(size=features) * (truth.random(features) < 0.4))
    outer = np.abs(quantile - 0.5) > truth.uniform(0.1, 0.4, features)
    bent = outer @ (truth.normal(size=features) * (truth.random(features) < 0.2))
    score = np.sqrt(0.7) * alone / alone.std() + np.sqrt(0.3) * bent / bent.std()
    score += 1.6 * rng.normal(size=len(score))
    grades = np.searchsorted(np.quantile(score, np.cumsum(SHARES)[:-1]), score)
    X = np.where(truth.random(features) < 0.5, np.exp(1.5 * X), np.round(np.exp(X)))
    return Lists(X, grades.astype(float), np.repeat(np.arange(queries), rows))


def standardise(data: Lists) -> Lists:
    """The same results with features of mean 0 and deviation 1."""
    X: Any = data.X - data.X.mean(axis=0)
    X /= X.std(axis=0)
    return Lists(X, data.y, data.qid)


def _score(X: Any, rng: np.random.Generator) -> NDArray[np.float64]:
    hidden = np.random.default_rng(X.shape[1]).normal(size=X.shape[1])
    score: NDArray[np.float64] = X @ hidden
    return (score - score.mean()) / score.std() + NOISE * rng.normal(size=len(score))


def _judge(
    X: Any,
    queries: int,
    rng: np.random.Generator,
    shares: tuple[float, float] = RELEVANT,
) -> Lists:
    return _label(X, _score(X, rng), queries, rng, shares)


def _label(
    X: Any,
    score: NDArray[np.float64],
    queries: int,
    rng: np.random.Generator,
    shares: tuple[float, float] = RELEVANT,
) -> Lists:
    """The best rows of each query are relevant."""
    score = score.reshape(queries, -1)
    rows = score.shape[1]
    least, most = (max(1, round(share * rows)) for share in shares)
    relevant = rng.integers(least, most, size=queries, endpoint=True)
    place = np.argsort(np.argsort(-score, axis=1), axis=1)
    y = (place < relevant[:, None]).astype(np.float64).ravel()
    return Lists(X, y, np.repeat(np.arange(queries), rows))
