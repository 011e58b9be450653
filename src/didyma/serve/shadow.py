"""Shadow models: they rank what others are asked, and are not answered."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.serve.buckets import Buckets

TOP = 10
OVERLAPS = tuple(n / 10 for n in range(11))
CORRELATIONS = tuple((n - 5) / 5 for n in range(11))


class ShadowComparison:
    """How far the order of a shadow model is from that of the one that answers.

    Compared are the scores of two rerankers, before any teacher or step: the share of the first ten
    documents that both have there, whether the first differs, and the correlation of ranks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.displaced = self.requests = 0
        self.overlap, self.correlation = Buckets(OVERLAPS), Buckets(CORRELATIONS)

    def add(self, scores: NDArray[np.float64], others: NDArray[np.float64]) -> None:
        """Count the scores of both for the documents of a request."""
        if not len(scores):
            return
        tops = [np.argsort(-each, kind="stable")[:TOP].tolist() for each in (scores, others)]
        shared = len(set(tops[0]) & set(tops[1])) / len(tops[0])
        correlation = rank_correlation(scores, others)
        with self._lock:
            self.requests += 1
            self.displaced += tops[0][0] != tops[1][0]
            self.overlap.add([shared])
            if correlation is not None:
                self.correlation.add([correlation])

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "requests": self.requests,
            "displaced_tops": self.displaced,
            "overlap": self.overlap.to_dict(),
            "correlation": self.correlation.to_dict(),
        }


def rank_correlation(scores: ArrayLike, others: ArrayLike) -> float | None:
    """Spearman's: the correlation of ranks, equal scores with their mean rank.

    None where one of both does not tell documents apart.

    >>> rank_correlation([3.0, 2.0, 1.0], [0.1, 0.2, 0.3]), rank_correlation([1.0], [2.0])
    (-1.0, None)
    """
    ranks = [_ranks(np.asarray(each)) for each in (scores, others)]
    first, second = (each - each.mean() for each in ranks)
    length = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / length if length else None


def _ranks(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 0, equal scores with their mean."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = (2 * ends - counts - 1) / 2
    return means[place]
