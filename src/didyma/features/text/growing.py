"""An array that can be extended."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["Growing"]


class Growing:
    """Rows in a buffer that doubles when it is full; arrays given out stay what they were.

    >>> numbers = Growing(np.int64)
    >>> numbers.extend([1, 2])
    >>> before = numbers.array
    >>> numbers.extend([3])
    >>> before.tolist(), numbers.array.tolist()
    ([1, 2], [1, 2, 3])
    """

    def __init__(self, dtype: DTypeLike, *width: int) -> None:
        self._buffer = np.zeros((64, *width), dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def array(self) -> NDArray[Any]:
        """The rows, without a copy."""
        return self._buffer[: self._length]

    def extend(self, rows: ArrayLike) -> None:
        """Add rows at the end."""
        new = np.asarray(rows, self._buffer.dtype).reshape(-1, *self._buffer.shape[1:])
        stop = self._length + len(new)
        if stop > len(self._buffer):
            larger = np.zeros((2 * stop, *self._buffer.shape[1:]), self._buffer.dtype)
            larger[: self._length] = self.array
            self._buffer = larger
        self._buffer[self._length : stop] = new
        self._length = stop
