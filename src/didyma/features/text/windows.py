"""Long passages as windows of words, each a row of its own; a passage is as good as its best."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError
from didyma.features.text.reading import Reading

__all__ = ["STEP", "WINDOW", "Windowed", "cut"]

WINDOW, STEP = 200, 100  # words


@dataclass(frozen=True, eq=False)
class Windowed:
    """Features of windows, in the order of their passages.

    Attributes
    ----------
    X : array of shape (n_windows, n_columns)
    passage : array of shape (n_windows,)
        Number of each window's passage among all rows, ascending.
    spans : array of shape (n_windows, 2)
        Where the window stands in the passage, in code points.

    >>> windowed = Windowed(np.zeros((3, 0)), np.array([0, 0, 1]), np.zeros((3, 2), int))
    >>> windowed.best([0.5, 2.0, 1.0])
    (array([2., 1.]), array([1, 2]))
    """

    X: NDArray[np.float64]
    passage: NDArray[np.int64]
    spans: NDArray[np.int32]

    def best(self, scores: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Score of each passage, that of its best window, and which window that is."""
        given = np.asarray(scores, np.float64)
        # Of equal scores the first window is best.
        order = np.lexsort((-given, self.passage))
        first = order[np.flatnonzero(np.diff(self.passage, prepend=-1))]
        return given[first], first


def cut(reading: Reading, size: int, step: int) -> tuple[Reading, Windowed]:
    """A reading of windows of at most ``size`` words, one every ``step``, the last at the end.

    What is returned with it has no features yet.
    """
    if not 0 < step <= size:
        raise DataError(f"expected 0 < step <= size, found step {step} and size {size}")
    begins, ends = reading.begins[reading.rows], reading.ends[reading.rows]
    counts = 1 + np.maximum(0, -(-(ends - begins - size) // step))
    stops = np.concatenate([[0], np.cumsum(counts)])
    passage = np.repeat(np.arange(len(reading)), counts)
    place = np.arange(len(passage)) - stops[passage]
    last = np.maximum(ends - size, begins)
    begin = np.minimum(begins[passage] + place * step, last[passage])
    end = np.minimum(begin + size, ends[passage])
    spans = np.zeros((len(passage), 2), np.int32)
    filled = end > begin
    spans[filled, 0] = reading.tokens.starts[begin[filled]]
    spans[filled, 1] = reading.tokens.stops[end[filled] - 1]
    whole = counts[passage] == 1
    texts = [
        reading.texts[reading.rows[p]] if is_whole else reading.texts[reading.rows[p]][a:b]
        for p, is_whole, (a, b) in zip(passage, whole, spans.tolist())
    ]
    windows = replace(
        reading,
        texts=[*reading.texts, *texts],
        begins=np.concatenate([reading.begins, begin]),
        ends=np.concatenate([reading.ends, end]),
        bounds=stops[reading.bounds],
        rows=len(reading.texts) + np.arange(len(passage)),
        first_stage=None if reading.first_stage is None else reading.first_stage[passage],
    )
    return windows, Windowed(np.zeros((len(passage), 0)), passage, spans)
