"""Sort what does not fit into memory: rows of 64-bit integers in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 20  # records that are in memory at a time

Records: TypeAlias = NDArray[np.int64]


def read_records(path: Path, width: int, chunk: int = CHUNK) -> Iterator[Records]:
    """The records of a file, some at a time."""
    size = os.path.getsize(path)
    for offset in range(0, size, 8 * width * chunk):
        count = min(width * chunk, (size - offset) // 8)  # room is made for all that is asked for
        yield np.fromfile(path, np.int64, count, offset=offset).reshape(-1, width)


def sort_records(path: Path, width: int, chunk: int = CHUNK) -> None:
    """Sort the records of a file by their first two columns: chunks first, which are then merged.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "records")
    >>> np.array([[3, 0], [1, 7], [1, 5], [0, 9]]).tofile(path)
    >>> sort_records(path, 2, chunk=2)
    >>> np.fromfile(path, np.int64).reshape(-1, 2).tolist()
    [[0, 9], [1, 5], [1, 7], [3, 0]]
    """
    merged, sizes = path.with_suffix(".sorted"), []
    with open(merged, "xb") as file:
        for records in read_records(path, width, chunk):
            _sorted(records).tofile(file)
            sizes.append(len(records))
    os.replace(merged, path)
    if len(sizes) < 2:
        return
    with open(merged, "xb") as file:
        for records in _merge(path, width, sizes, max(1, chunk // len(sizes))):
            records.tofile(file)
    os.replace(merged, path)


def _merge(path: Path, width: int, sizes: list[int], buffer: int) -> Iterator[Records]:
    """The records of sorted chunks in order: those up to the first end of what is in memory."""
    ends = np.cumsum(sizes)
    places = (ends - sizes).tolist()
    held = [np.empty((0, width), np.int64) for _ in sizes]
    while True:
        for k, chunk in enumerate(held):
            if not len(chunk) and places[k] < ends[k]:
                count = min(buffer, int(ends[k]) - places[k])
                chunk = np.fromfile(path, np.int64, count * width, offset=8 * width * places[k])
                held[k], places[k] = chunk.reshape(-1, width), places[k] + count
        more = [chunk[-1] for chunk, place, end in zip(held, places, ends) if place < end]
        if not more:
            yield _sorted(np.concatenate(held))
            return
        bound = min(tuple(last[:2]) for last in more)
        counts = [_up_to(chunk, *bound) for chunk in held]
        yield _sorted(np.concatenate([chunk[:count] for chunk, count in zip(held, counts)]))
        held = [chunk[count:] for chunk, count in zip(held, counts)]


def _up_to(records: Records, first: int, second: int) -> int:
    lower = (records[:, 0] < first) | ((records[:, 0] == first) & (records[:, 1] <= second))
    return int(lower.sum())


def _sorted(records: Records) -> Records:
    return records[np.lexsort((records[:, 1], records[:, 0]))]
