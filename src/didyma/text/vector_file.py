"""Vectors by keys in two files that only grow: what a crash leaves behind is cut off again."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Literal, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.files import PathName, locked, replace_when_done

VectorType: TypeAlias = Literal["float16", "int8"]
NUMBERS: dict[str, str] = {"float16": "<f2", "float64": "<f8", "int8": "i1"}
KEY_SIZE = 16  # bytes of a key
ENTRY = np.dtype([("key", f"S{KEY_SIZE}"), ("checksum", "<u4")])
RECENT = 4096  # keys that are looked up one by one before they are sorted in with the others


class VectorFile:
    """A table of vectors in a folder, which several processes read and append to.

        vectors.bin    the vectors, one after the other
        keys.bin       for each its key and the CRC-32 of key and vector
        lock           held by whoever appends

    An appended batch is written to vectors.bin, then to keys.bin: entries without whole vectors, or
    whose checksums differ at the end of the file, are of a process that was killed. They are not
    seen, and the next to append cuts them off. A vector is compared with its checksum when read.

    A number x of a vector is kept as float64, as float16, which is within 2⁻¹¹ |x| + 2⁻²⁵ of it, or
    as int8, round(127 x / m) with the vector's largest |x| as m, which is within m / 254 of it.
    """

    def __init__(
        self, folder: Path, dimension: int, dtype: VectorType | Literal["float64"]
    ) -> None:
        self.folder, self.dimension = folder, dimension
        numbers: Any = ("numbers", NUMBERS[dtype], (dimension,))
        self.dtype = np.dtype([("largest", "<f4"), numbers] if dtype == "int8" else [numbers])
        self._keys, self._vectors = folder / "keys.bin", folder / "vectors.bin"
        self._n, self._places = 0, _Places()
        self._turn = RLock()  # of threads of this process; the file is for others
        self.refresh()

    def __len__(self) -> int:
        return self._n

    def rows_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """Row of each key, -1 where there is none."""
        with self._turn:
            return self._places.rows_of(keys)

    def read(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The vectors of some rows; one that is damaged is refused."""
        stored = _mapped(self._vectors, self.dtype, self._n)[rows]
        entries = _mapped(self._keys, ENTRY, self._n)[rows]
        wrong = np.flatnonzero(entries["checksum"] != _checksums(entries, stored))
        if len(wrong):
            problem = f"is damaged: the checksum of vector {rows[wrong[0]] + 1} differs"
            raise DataError(problem, path=self._vectors)
        return self.decoded(stored)

    def append(self, keys: Sequence[bytes], vectors: NDArray[Any]) -> None:
        """Add vectors; they are on the disk when this returns."""
        stored = self.encoded(vectors)
        entries = np.zeros(len(keys), ENTRY)
        entries["key"] = np.frombuffer(b"".join(keys), f"S{KEY_SIZE}")
        entries["checksum"] = _checksums(entries, stored)
        with locked(self.folder / "lock"):
            self.refresh()
            _write(self._vectors, stored.tobytes(), self._n * self.dtype.itemsize)
            _write(self._keys, entries.tobytes(), self._n * ENTRY.itemsize)
            self.refresh()

    def refresh(self) -> None:
        """See what others have appended since."""
        entry_size, size = ENTRY.itemsize, self.dtype.itemsize
        with self._turn:
            n = min(_size(self._keys) // entry_size, _size(self._vectors) // size)
            if n < self._n:
                raise DataError("has lost vectors since it was opened", path=self._vectors)
            if n == self._n:
                return
            entries = _mapped(self._keys, ENTRY, n)
            vectors = _mapped(self._vectors, self.dtype, n)
            while n > self._n:
                last = slice(n - 1, n)
                if entries["checksum"][last] == _checksums(entries[last], vectors[last]):
                    break
                n -= 1
            self._places.add(entries["key"][self._n : n], self._n)
            self._n = n

    def verify(self) -> None:
        """Read all of it, and refuse what is damaged."""
        for start in range(0, self._n, 1024):
            self.read(np.arange(start, min(self._n, start + 1024)))

    def encoded(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """Vectors as they are kept."""
        stored = np.zeros(len(vectors), self.dtype)
        if "largest" in (self.dtype.names or ()):
            stored["largest"] = largest = np.abs(vectors).max(axis=1)
            vectors = np.rint(127 * (vectors / np.where(largest > 0, largest, 1)[:, None]))
        stored["numbers"] = vectors
        return stored

    def decoded(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The vectors that are kept so; shape (n, dimension)."""
        numbers = stored["numbers"]
        vectors: NDArray[Any] = numbers.astype(np.float32 if numbers.itemsize < 8 else np.float64)
        if "largest" in (self.dtype.names or ()):
            vectors = vectors * (stored["largest"][:, None] / np.float32(127))
        return vectors


class _Places:
    """From keys to rows: a sorted array, and a dictionary of those that have come since."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, f"S{KEY_SIZE}")
        self._rows = np.zeros(0, np.int64)
        self._recent: dict[bytes, int] = {}

    def add(self, keys: NDArray[np.bytes_], first: int) -> None:
        """Keys of consecutive rows; the first row of a key counts."""
        for row, key in enumerate(_pieces(keys, KEY_SIZE), first):
            self._recent.setdefault(key, row)
        if len(self._recent) > max(RECENT, len(self._sorted) // 8):
            new = np.frombuffer(b"".join(self._recent), f"S{KEY_SIZE}")
            every = np.concatenate([self._sorted, new])
            rows = np.concatenate([self._rows, np.fromiter(self._recent.values(), np.int64)])
            order = np.argsort(every, kind="stable")
            self._sorted, self._rows, self._recent = every[order], rows[order], {}

    def rows_of(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        rows = np.array([self._recent.get(key, -1) for key in keys], np.int64)
        if len(self._sorted) and len(keys):
            wanted = np.frombuffer(b"".join(keys), f"S{KEY_SIZE}")
            places = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
            there = self._sorted[places] == wanted
            rows[there] = self._rows[places[there]]
        return rows


def _checksums(entries: NDArray[Any], stored: NDArray[Any]) -> NDArray[np.uint32]:
    """CRC-32 of each key and vector."""
    keys = _pieces(np.ascontiguousarray(entries["key"]), KEY_SIZE)
    vectors = _pieces(stored, stored.dtype.itemsize)
    sums = [crc32(vector, crc32(key)) for key, vector in zip(keys, vectors)]
    return np.array(sums, np.uint32)


def _pieces(array: NDArray[Any], size: int) -> list[bytes]:
    """The bytes of each item."""
    data = array.tobytes()
    return [data[start : start + size] for start in range(0, len(data), size)]


def _mapped(path: Path, dtype: np.dtype[Any], n: int) -> NDArray[Any]:
    """The first items of a file, in memory only where they are looked at."""
    return np.memmap(path, dtype, "r", shape=(n,)) if n else np.zeros(0, dtype)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _write(path: Path, data: bytes, at: int) -> None:
    """Write to the end of a file, which is first cut to a length, and wait for the disk."""
    with open(path, "r+b" if path.exists() else "xb") as file:
        file.truncate(at)
        file.seek(at)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


class ModelStore:
    """A folder with a `VectorFile` for each model, beside a file of JSON that says which it is."""

    kind: ClassVar[str]
    description: ClassVar[str]  # name of the file that says which model it is
    version: ClassVar[int] = 1

    def __init__(self, folder: PathName) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            contents = self.kind.split()[0]
            raise DataError(f"expected a folder of {contents}, found a file", path=folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def _folder_of(self, model: str, suffix: str) -> Path:
        """The folder of a model: the end of its name in plain letters, and a suffix."""
        short = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[-40:]
        return self.folder / f"{short or Path(self.description).stem}-{suffix}"

    def _describe(self, folder: Path, **fields: Any) -> None:
        with replace_when_done(folder / self.description) as out:
            out.write(json.dumps({"kind": self.kind, "version": self.version, **fields}))

    @contextmanager
    def _described(self, path: Path) -> Iterator[dict[str, Any]]:
        """What a file of JSON says; errors of whoever uses that are damage of the file."""
        try:
            fields = json.loads(path.read_bytes())
            if fields["kind"] != self.kind or fields["version"] > self.version:
                problem = f"expected {self.kind} of version {self.version} or before"
                raise DataError(problem, path=path)
            yield fields
        except DataError:
            raise
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise DataError(f"is damaged ({error})", path=path) from None
