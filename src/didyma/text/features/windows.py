"""Long passages as windows of words, without reading them again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.text.features.reading import Reading

__all__ = ["cut"]


def cut(reading: Reading, size: int) -> tuple[Reading, NDArray[np.int64], NDArray[np.int32]]:
    """A reading of windows of at most ``size`` words, each half of one on, the last at the end.

    With it the row of each window, and where it stands in its passage, in code points.
    """
    if size < 1:
        raise DataError(f"expected at least one word, found {size}", field="window")
    step = (size + 1) // 2
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
    return windows, passage, spans
