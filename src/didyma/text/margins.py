"""Which documents of a ranking are too close to call, and how a better judge rearranges them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def contested(
    raw: NDArray[np.float64], top: int, threshold: float | None, budget: int
) -> NDArray[np.int64]:
    """Places of the documents that could change the top, ascending, at most ``budget``.

    ``raw`` are scores in descending order. A document could change the top if its score differs by
    less than the threshold from that of another one, and one of both is among the first ``top``;
    without a threshold any could. A single document has nothing to be compared with.

    >>> contested(np.array([3.0, 2.9, 2.0, 1.9]), 1, 0.5, 10)
    array([0, 1])
    >>> contested(np.array([3.0, 2.9, 2.0, 1.9]), 1, None, 3)
    array([0, 1, 2])
    """
    first = min(top, len(raw))
    distance = np.abs(raw[:first, None] - raw)
    np.fill_diagonal(distance, np.inf)
    is_unsure = np.isfinite(distance) if threshold is None else distance < threshold
    could: NDArray[np.bool_] = np.any(is_unsure, axis=0)
    could[:first] |= is_unsure.any(axis=1)
    places = np.flatnonzero(could)[:budget]
    return places if len(places) > 1 else places[:0]


def rearranged(
    raw: NDArray[np.float64], places: NDArray[np.int64], scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The order in which documents share out their places by new scores, and raw scores for it.

    Of equal new scores the earlier stays first. The raw score at a place is the one that was there,
    a little lower where that would not be below the one before it.

    >>> order, raw = rearranged(np.array([3.0, 3.0, 1.0]), np.array([0, 1]), np.array([0.0, 7.0]))
    >>> order, raw.round(6)
    (array([1, 0, 2]), array([3., 3., 1.]))
    >>> bool(raw[0] > raw[1])
    True
    """
    order, raw = np.arange(len(raw)), raw.copy()
    if len(places):
        order[places] = places[np.argsort(-scores, kind="stable")]
        for n in range(1, len(raw)):
            raw[n] = min(raw[n], np.nextafter(raw[n - 1], -np.inf))
    return order, raw
