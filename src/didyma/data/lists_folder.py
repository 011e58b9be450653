"""A folder of plain ``.npy`` files with the rows of `Lists`, which need not fit into memory.

``NAME.lists/`` holds ``X.npy`` (or ``data.npy``, ``indices.npy`` and ``indptr.npy`` of a CSR
matrix), ``labels.npy``, ``qid.npy`` and perhaps ``docid.npy`` with an entry for each row, and for
each list its name, ``names.npy``, and its first row, ``starts.npy`` (and one past the last of all).
Rows of a list stand together, in the order that they had, and lists in that of their first rows.
It is a `didyma.data.array_folder`, whose manifest says what must be there.

What is read of it is mapped into memory, so that only what is looked at is loaded.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from didyma.data.array_folder import (
    BLOCK,
    is_folder,
    mapped,
    open_folder,
    read_rows,
    replace_folder,
)
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.lists_writer import KIND, VERSION, ListsManifest, ListsWriter
from didyma.data.matrix import Columns, Matrix, is_sparse
from didyma.data.text_columns import is_text
from didyma.errors import DataError, placed
from didyma.files import PathName

__all__ = ["blocks", "check", "is_lists_folder", "read", "write", "write_blocks"]

SUFFIX = ".lists"

Report: TypeAlias = Callable[[str, int], None]
"""Told what is being done, and how many rows have been."""


def is_lists_folder(path: PathName) -> bool:
    """Whether this is such a folder, or is named as one."""
    return Path(path).suffix.lower() == SUFFIX or is_folder(path, KIND)


def read(path: PathName, *, missing: bool = False) -> Lists:
    """The lists of a folder, mapped into memory.

    Rows are read from disk when they are looked at, and cannot be changed. With ``missing``, values
    may be NaN.
    """
    return _Folder.open(path, missing).lists()


def blocks(path: PathName, *, missing: bool = False) -> Iterator[Lists]:
    """The same a few whole lists at a time, in constant memory."""
    folder = _Folder.open(path, missing)
    starts, first = folder.starts(), 0
    while first < len(starts) - 1:
        until = starts[first] + folder.rows_of_block
        last = max(first + 1, int(np.searchsorted(starts, until, side="right")) - 1)
        yield folder.part(int(starts[first]), int(starts[last]))
        first = last


def check(path: PathName) -> None:
    """Read all files of a folder, and refuse it if one is not what was written."""
    open_folder(path, KIND, VERSION).verify()
    for _ in blocks(path, missing=True):
        pass


def write(data: Lists, path: PathName) -> None:
    """Write a folder that `read` gives back, with the rows of each list together."""
    sparse, dtype = is_sparse(data.X), data.X.dtype
    if dtype not in (np.float32, np.float64):
        dtype = np.dtype(np.float64)
    size = max(1, BLOCK // max(1, data.X.shape[1] * dtype.itemsize))
    parts = (data.select(np.arange(k, min(k + size, len(data)))) for k in range(0, len(data), size))
    write_blocks(parts, path, dtype=dtype, sparse=sparse)


def write_blocks(
    parts: Iterable[Lists],
    path: PathName,
    *,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    report: Report = lambda what, rows: None,
) -> tuple[int, int]:
    """Write a folder of rows that come some at a time, in constant memory; how many rows and lists.

    ``dtype`` and ``sparse`` are those of the first block, if they are not given. Where rows of a
    list do not stand together they are written twice, and need twice the room meanwhile.
    """
    with replace_folder(path, KIND, VERSION) as folder:
        writer = ListsWriter(folder.folder, dtype, sparse)
        with writer:
            for part in parts:
                with placed(path):
                    writer.add(part)
                report("reading", writer.n_rows)
        if writer.scattered():
            writer = _gathered(writer, report)
        files, manifest = writer.finish()
        for name in files:
            folder.adopt(name)
        folder.record = manifest.record()
    return manifest.rows, manifest.lists


def _gathered(writer: ListsWriter, report: Report) -> ListsWriter:
    """Write all files again, with the rows of each query together."""
    unsorted = writer.place / "unsorted"
    unsorted.mkdir()
    for file in [*writer.place.glob("*.npy")]:
        file.rename(unsorted / file.name)
    assert writer.features is not None
    arrays = {file.stem: mapped(file) for file in unsorted.glob("*.npy")}
    folder = _Folder(unsorted, arrays, writer.features)
    whole = folder.lists()
    with ListsWriter(writer.place, writer.dtype, writer.sparse) as again:
        for rows in writer.order(folder.rows_of_block):
            again.add(replace(whole, items=whole.X[rows], grouping=None, **whole.of_rows(rows)))
            report("sorting", again.n_rows)
    if again.scattered():
        raise DataError("two query ids could not be told apart: convert again", field="qid")
    shutil.rmtree(unsorted)
    return again


@dataclass(frozen=True, eq=False)
class _Folder:
    """Arrays that are mapped, as the manifest says they are."""

    path: Path
    arrays: dict[str, NDArray[Any]]
    features: Columns

    @classmethod
    def open(cls, path: PathName, missing: bool) -> _Folder:
        manifest, folder = ListsManifest.open(Path(path))
        if manifest.missing and not missing:
            raise DataError("has missing values, which were not expected", path=path)
        opened = cls(Path(path), folder.arrays, manifest.features)
        opened._check_entries()
        return opened

    def _check_entries(self) -> None:
        """Refuse rows that leave out entries."""
        if "indptr" not in self.arrays:
            return
        indptr, n_entries = self.arrays["indptr"], len(self.arrays["data"])
        ends = [int(read_rows(indptr, k, k + 1)[0]) for k in (0, len(indptr) - 1)]
        if ends != [0, n_entries]:
            raise DataError(
                f"expected places that rise from 0 to {n_entries}", path=self.path / "indptr.npy"
            )

    @property
    def n_rows(self) -> int:
        return len(self.arrays["qid"])

    @property
    def rows_of_block(self) -> int:
        """Rows that are in memory at a time."""
        matrix = [self.arrays[name] for name in ("X", "data", "indices") if name in self.arrays]
        return max(1, BLOCK * self.n_rows // max(1, sum(array.nbytes for array in matrix)))

    def starts(self) -> NDArray[np.int64]:
        """The first row of each list, and one past the last."""
        starts = self._all("starts")
        if starts[0] != 0 or starts[-1] != self.n_rows or np.any(np.diff(starts) <= 0):
            raise DataError(
                f"expected rows that rise from 0 to {self.n_rows}", path=self.path / "starts.npy"
            )
        return starts

    def _all(self, name: str) -> NDArray[Any]:
        return read_rows(self.arrays[name], 0, len(self.arrays[name]))

    def lists(self) -> Lists:
        """All of them, mapped into memory."""
        for name in ("names", "qid", "docid"):
            self._check_text(name)
        rows = np.arange(self.n_rows, dtype=np.int64)
        groups = Groups(self._all("names"), rows, self.starts())
        parts = {name: np.asarray(array) for name, array in self.arrays.items()}
        return self._made(parts, self.n_rows, groups)

    def _check_text(self, name: str) -> None:
        """Refuse what is no text, a few megabytes at a time."""
        column = self.arrays.get(name, np.zeros(0))
        size = max(1, BLOCK // max(1, column.itemsize))
        for start in range(0, len(column), size):
            if not is_text(read_rows(column, start, min(start + size, len(column)))):
                raise DataError("expected text", path=self.path / f"{name}.npy")

    def part(self, start: int, stop: int) -> Lists:
        """Some of the rows, in memory."""
        if "indptr" in self.arrays:
            indptr = read_rows(self.arrays["indptr"], start, stop + 1)
            first, last = int(indptr[0]), int(indptr[-1])
            if not 0 <= first <= last <= len(self.arrays["data"]):
                raise DataError("expected places of entries", path=self.path / "indptr.npy")
        parts = {}
        for name, array in self.arrays.items():
            if name in ("data", "indices"):
                parts[name] = read_rows(array, first, last)
            elif name == "indptr":
                parts[name] = indptr - first
            elif name not in ("starts", "names"):
                parts[name] = read_rows(array, start, stop)
                if not is_text(parts[name]):
                    raise DataError("expected text", path=self.path / f"{name}.npy")
        return self._made(parts, stop - start, None)

    def _made(self, parts: dict[str, NDArray[Any]], n_rows: int, groups: Groups | None) -> Lists:
        X: Matrix
        if "X" in parts:
            X = parts["X"]
        else:
            from scipy.sparse import csr_array

            indptr = parts["indptr"]
            if parts["indices"].dtype == np.int32 and len(parts["data"]) < 2**31:
                indptr = indptr.astype(np.int32)
            arrays = parts["data"], parts["indices"], indptr
            X = csr_array(arrays, shape=(n_rows, self.features.count))
        with placed(self.path):
            return Lists(
                X,
                parts.get("labels"),
                parts["qid"],
                parts.get("docid"),
                self.features.names,
                self.features.zero_based,
                scores=parts.get("scores"),
                losses=parts.get("losses"),
                grouping=groups,
            )
