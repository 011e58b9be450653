"""Plain ``.npy`` files: written row by row, opened as memory maps, read in part."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from didyma.errors import DataError

__all__ = ["BLOCK", "NpyFile", "NpyWriter"]

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


class NpyFile:
    """A file that an `NpyWriter` has made, of the size, type and shape that are expected."""

    def __init__(self, path: Path, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        expected = HEADER + self.n_bytes
        with open(path, "rb") as file:
            head, found = file.read(HEADER), os.fstat(file.fileno()).st_size
        if found != expected:
            how = "cut short" if found < expected else "too long"
            raise DataError(f"{how}: expected {expected} bytes, found {found}", path=path)
        if head != _header(self.dtype, shape):
            raise DataError(f"expected an array of {self.dtype} of shape {shape}", path=path)

    @classmethod
    def of(cls, path: Path) -> NpyFile:
        """A file as its header describes it."""
        with open(path, "rb") as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        return cls(path, dtype, shape)

    @property
    def n_bytes(self) -> int:
        """Size of the array."""
        return self.dtype.itemsize * math.prod(self.shape)

    def mapped(self) -> NDArray[Any]:
        """All of it, in memory only where it is looked at; it cannot be written."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return np.asarray(np.memmap(self.path, self.dtype, "r", HEADER, self.shape))

    def all(self) -> NDArray[Any]:
        """All of it, in memory."""
        return self.rows(0, self.shape[0])

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Some of the rows, in memory."""
        width = self.shape[1] if len(self.shape) == 2 else 1
        count, offset = (stop - start) * width, start * width * self.dtype.itemsize
        found = np.fromfile(self.path, self.dtype, count, offset=HEADER + offset)
        if len(found) != count:
            raise DataError("cut short while it was being read", path=self.path)
        return found.reshape(stop - start, *self.shape[1:])
