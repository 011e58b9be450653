"""Plain ``.npy`` files: written row by row, read in part."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from didyma.errors import DataError

BLOCK = 1 << 22  # bytes of features that are in memory at a time
HEADER = 128  # bytes; fixed, as the number of rows is known in the end only
_MAGIC = b"\x93NUMPY\x01\x00"


class NpyWriter:
    """An array that is added to, in C order.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "X.npy")
    >>> with NpyWriter(path, np.float32, 2) as file:
    ...     file.add(np.eye(2))
    ...     file.add(np.ones((1, 2)))
    >>> np.load(path).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, path: Path, dtype: DTypeLike, width: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self._width, self.n_rows = width, 0
        self._file = open(path, "xb")  # noqa: SIM115 - closed below
        self._file.write(b" " * HEADER)

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows, or numbers if the array has one axis."""
        if rows.size:  # what is empty has no bytes to be seen as
            self._file.write(np.ascontiguousarray(rows, self.dtype).data.cast("B"))
        self.n_rows += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                shape = (self.n_rows,) if self._width is None else (self.n_rows, self._width)
                self._file.seek(0)
                self._file.write(_header(self.dtype, shape))
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    text = repr(described).encode().ljust(HEADER - len(_MAGIC) - 3) + b"\n"
    return _MAGIC + (len(text)).to_bytes(2, "little") + text


def read_rows(array: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    """Some rows of an array that is mapped from a file, read into memory without the map.

    A file that is cut short while it is mapped ends the process; one that is read does not.
    """
    assert isinstance(array, np.memmap)
    width = math.prod(array.shape[1:])
    count, offset = (stop - start) * width, start * width * array.itemsize
    path = Path(str(array.filename))
    found = np.fromfile(path, array.dtype, count, offset=array.offset + offset)
    if len(found) != count:
        raise DataError("cut short while it was being read", path=path)
    return found.reshape(stop - start, *array.shape[1:])
