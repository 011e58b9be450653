"""A folder of plain ``.npy`` files with the rows of `Lists`, which need not fit into memory.

``NAME.lists/`` holds ``X.npy`` (or ``data.npy``, ``indices.npy`` and ``indptr.npy`` of a CSR
matrix), ``labels.npy``, ``qid.npy`` and perhaps ``docid.npy`` with an entry for each row, and for
each list its name, ``names.npy``, and its first row, ``starts.npy`` (and one past the last of all).
Rows of a list stand together, in the order that they had, and lists in that of their first rows.
``manifest.json`` says what must be there: size, type, shape and SHA-256 of each file.

A folder is written beside its place and takes its name when it is complete. What is read of it is
mapped into memory, so that only what is looked at is loaded.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from didyma.data import Features, Groups, Lists
from didyma.errors import DataError, placed
from didyma.files import PathName, replace_folder_when_done
from didyma.formats.lists_manifest import MANIFEST, Manifest, digest
from didyma.formats.lists_writer import ListsWriter
from didyma.formats.npy import BLOCK, NpyFile
from didyma.matrix import Matrix, is_sparse

__all__ = ["blocks", "check", "is_lists_folder", "read", "write", "write_blocks"]

SUFFIX = ".lists"

Report: TypeAlias = Callable[[str, int], None]
"""Told what is being done, and how many rows have been."""


def is_lists_folder(path: PathName) -> bool:
    """Whether this is such a folder, or is named as one."""
    return Path(path).suffix.lower() == SUFFIX or Path(path, MANIFEST).is_file()


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
    manifest = Manifest.read(Path(path))
    for name, file in manifest.files.items():
        if digest(Path(path, name)) != file.sha256:
            raise DataError("changed or damaged: its checksum is another", path=Path(path, name))
    _Folder.open(path, missing=True).starts()


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
    with replace_folder_when_done(path, is_lists_folder) as place:
        writer = ListsWriter(place, dtype, sparse)
        with writer:
            for part in parts:
                with placed(path):
                    writer.add(part)
                report("reading", writer.n_rows)
        if writer.scattered():
            writer = _gathered(writer, report)
        manifest = writer.manifest()
        manifest.write(place)
    return manifest.rows, manifest.lists


def _gathered(writer: ListsWriter, report: Report) -> ListsWriter:
    """Write all files again, with the rows of each query together."""
    unsorted = writer.place / "unsorted"
    unsorted.mkdir()
    for file in [*writer.place.glob("*.npy")]:
        file.rename(unsorted / file.name)
    assert writer.features is not None
    files = {file.name: NpyFile.of(file) for file in unsorted.glob("*.npy")}
    folder = _Folder(unsorted, files, writer.features)
    whole = folder.lists()
    with ListsWriter(writer.place, writer.dtype, writer.sparse) as again:
        for rows in writer.order(folder.rows_of_block):
            again.add(_rows(whole, rows))
            report("sorting", again.n_rows)
    if again.scattered():
        raise DataError("two query ids could not be told apart: convert again", field="qid")
    shutil.rmtree(unsorted)
    return again


def _rows(whole: Lists, rows: NDArray[np.int64]) -> Lists:
    """Some rows of lists, which need not stand together."""

    def of(column: NDArray[Any] | None) -> Any:
        return None if column is None else column[rows]

    return Lists(
        whole.X[rows],
        of(whole.labels),
        whole.qid[rows],
        of(whole.docid),
        whole.feature_names,
        whole.zero_based,
        scores=of(whole.scores),
        losses=of(whole.losses),
    )


@dataclass(frozen=True, eq=False)
class _Folder:
    """What a manifest says, and the files as it says they are."""

    path: Path
    files: dict[str, NpyFile]
    features: Features

    @classmethod
    def open(cls, path: PathName, missing: bool) -> _Folder:
        manifest = Manifest.read(Path(path))
        if manifest.missing and not missing:
            raise DataError("has missing values, which were not expected", path=path)
        files = {
            name: NpyFile(Path(path, name), about.dtype, about.shape)
            for name, about in manifest.files.items()
        }
        return cls(Path(path), files, manifest.features)

    @property
    def n_rows(self) -> int:
        return self.files["qid.npy"].shape[0]

    @property
    def rows_of_block(self) -> int:
        """Rows that are in memory at a time."""
        matrix = [
            self.files[name] for name in ("X.npy", "data.npy", "indices.npy") if name in self.files
        ]
        return max(1, BLOCK * self.n_rows // max(1, sum(file.n_bytes for file in matrix)))

    def starts(self) -> NDArray[np.int64]:
        """The first row of each list, and one past the last."""
        starts = self.files["starts.npy"].all()
        if starts[0] != 0 or starts[-1] != self.n_rows or np.any(np.diff(starts) <= 0):
            raise DataError(
                f"expected rows that rise from 0 to {self.n_rows}", path=self.path / "starts.npy"
            )
        return starts

    def lists(self) -> Lists:
        """All of them, mapped into memory."""
        starts = self.starts()
        names = self.files["names.npy"].all()
        groups = Groups(names, np.arange(self.n_rows, dtype=np.int64), starts)
        parts = {name.removesuffix(".npy"): file.mapped() for name, file in self.files.items()}
        return self._made(parts, self.n_rows, groups)

    def part(self, start: int, stop: int) -> Lists:
        """Some of the rows, in memory."""
        if "indptr.npy" in self.files:
            indptr = self.files["indptr.npy"].rows(start, stop + 1)
            first, last = int(indptr[0]), int(indptr[-1])
            if not 0 <= first <= last <= self.files["data.npy"].shape[0]:
                raise DataError("expected places of entries", path=self.path / "indptr.npy")
        parts = {}
        for name, file in self.files.items():
            kind = name.removesuffix(".npy")
            if kind in ("data", "indices"):
                parts[kind] = file.rows(first, last)
            elif kind == "indptr":
                parts[kind] = indptr - first
            elif kind not in ("starts", "names"):
                parts[kind] = file.rows(start, stop)
        return self._made(parts, stop - start, None)

    def _made(self, parts: dict[str, NDArray[Any]], n_rows: int, groups: Groups | None) -> Lists:
        X: Matrix
        if "X" in parts:
            X = parts["X"]
        else:
            from scipy.sparse import csr_array

            indptr = parts["indptr"]
            if parts["indices"].dtype == np.int32:
                indptr = indptr.astype(np.int32)
            arrays = parts["data"], parts["indices"], indptr
            X = csr_array(arrays, shape=(n_rows, self.features.count))
        try:
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
        except DataError as error:
            raise DataError(error.problem, path=self.path, field=error.field) from None
