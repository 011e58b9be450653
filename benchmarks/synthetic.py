"""Near-linear judged results: a hidden linear score and noise decide what is relevant."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data import RankingData

__all__ = ["dense", "indicators", "standardise"]

# Noise in deviations of the hidden score: a good linear ranker then reaches a MAP of about 0.32.
NOISE = 1.6
RELEVANT = (0.03, 0.11)  # least and greatest share of a query's rows


def dense(queries: int, rows: int = 100, features: int = 136, seed: int = 0) -> RankingData:
    """Features uniform in [0, 1], as per-query normalisation leaves those of LETOR.

    The hidden score depends on the number of features alone, so that another seed gives test data.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((queries * rows, features))
    return _judge(X, queries, rng)


def indicators(queries: int, rows: int = 1000, functions: int = 35, bins: int = 20) -> RankingData:
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


def standardise(data: RankingData) -> RankingData:
    """The same results with features of mean 0 and deviation 1."""
    X: Any = data.X - data.X.mean(axis=0)
    X /= X.std(axis=0)
    return RankingData(X, data.y, data.qid)


def _judge(X: Any, queries: int, rng: np.random.Generator) -> RankingData:
    hidden = np.random.default_rng(X.shape[1]).normal(size=X.shape[1])
    score: NDArray[np.float64] = X @ hidden
    score = (score - score.mean()) / score.std() + NOISE * rng.normal(size=len(score))
    score = score.reshape(queries, -1)
    rows = score.shape[1]
    least, most = (max(1, round(share * rows)) for share in RELEVANT)
    relevant = rng.integers(least, most, size=queries, endpoint=True)
    place = np.argsort(np.argsort(-score, axis=1), axis=1)
    y = (place < relevant[:, None]).astype(np.float64).ravel()
    return RankingData(X, y, np.repeat(np.arange(queries), rows))
