"""Histograms that take many values at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


class Buckets:
    """Counts of values up to each of some bounds, and beyond; whoever adds has a lock.

    >>> buckets = Buckets([0.5, 1.0])
    >>> buckets.add([0.2, 0.5, 0.7, 3.0])
    >>> buckets.cumulative
    [('0.5', 2), ('1.0', 3), ('+Inf', 4)]
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = np.asarray(bounds, np.float64)
        self.counts = np.zeros(len(bounds) + 1, np.int64)
        self.sum = 0.0

    def add(self, values: ArrayLike) -> None:
        """Count values."""
        numbers = np.asarray(values, np.float64)
        places = np.searchsorted(self.bounds, numbers)
        self.counts += np.bincount(places, minlength=len(self.counts))
        self.sum += float(numbers.sum())

    @property
    def cumulative(self) -> list[tuple[str, int]]:
        """Bounds as Prometheus writes them, and how many values are up to each."""
        names = [*map(str, self.bounds.tolist()), "+Inf"]
        return list(zip(names, np.cumsum(self.counts).tolist()))

    def to_dict(self) -> dict[str, Any]:
        """Bounds, counts between them, and the mean, ready for JSON."""
        total = int(self.counts.sum())
        return {
            "bounds": self.bounds.tolist(),
            "counts": self.counts.tolist(),
            "mean": self.sum / total if total else None,
        }
