"""Write a lists folder from rows that come some at a time, in constant memory.

Rows go to their files as they come. Where those of a query do not stand together, the runs of rows
of one query are sorted (`didyma.data.lists_writer`), and all files written again in that order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from didyma.data.array_folder import (
    BLOCK,
    MANIFEST,
    ArrayFolder,
    NpyWriter,
    mapped,
    open_folder,
    read_rows,
)
from didyma.data.lists import Lists
from didyma.data.matrix import Columns, is_sparse
from didyma.data.text_columns import WIDEST
from didyma.errors import DataError
from didyma.values import is_whole

KIND, VERSION = "lists of rows", 1
NUMBERS = ("labels", "scores", "losses")  # of rows, where they are known
FLOATS, WIDE, INTEGERS = ("<f4", "<f8"), ("<i8",), ("<i4", "<i8")
TEXTS = tuple(f"<U{width}" for width in range(1, WIDEST + 1))


@dataclass(frozen=True)
class ListsManifest:
    """How many rows and lists there are, what the columns are, and whether values may be NaN."""

    rows: int
    lists: int
    features: Columns
    missing: bool

    def record(self) -> dict[str, Any]:
        """As the manifest has it."""
        names = self.features.names
        return {
            "rows": self.rows,
            "lists": self.lists,
            "features": self.features.count,
            "feature_names": None if names is None else list(names),
            "zero_based": self.features.zero_based,
            "missing_values": self.missing,
        }

    @classmethod
    def open(cls, path: Path) -> tuple[ListsManifest, ArrayFolder]:
        """That of a folder, and the folder, if it holds the lists that its manifest describes."""
        folder = open_folder(path, KIND, VERSION)
        record, place = folder.record, path / MANIFEST
        rows, lists, width = (_count(record, name, place) for name in ("rows", "lists", "features"))
        if not 0 < lists <= rows:
            raise DataError(f"expected 1 to {rows}, found {lists}", path=place, field="lists")
        names = record.get("feature_names")
        if names is not None and not (
            isinstance(names, list)
            and len(names) == width
            and all(isinstance(name, str) for name in names)
        ):
            raise DataError(f"expected {width} names or null", path=place, field="feature_names")
        zero_based, missing = record.get("zero_based", 0), record.get("missing_values")
        if not (zero_based is None or isinstance(zero_based, bool)) or not isinstance(
            missing, bool
        ):
            raise DataError(
                "expected true or false", path=place, field="zero_based, missing_values"
            )
        _check_arrays(folder.arrays, path, rows, lists, width)
        features = Columns(width, None if names is None else tuple(names), zero_based)
        return cls(rows, lists, features, missing), folder


def _count(record: Mapping[str, Any], name: str, place: Path) -> int:
    value = record.get(name)
    if is_whole(value) and 0 <= value < 2**48:
        return value
    raise DataError(f"expected a number, found {value!r:.20}", path=place, field=name)


def _check_arrays(
    arrays: Mapping[str, NDArray[Any]], path: Path, rows: int, lists: int, width: int
) -> None:
    """Refuse what does not make lists of so many rows."""
    needed: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        "qid": (TEXTS, (rows,)),
        "names": (TEXTS, (lists,)),
        "starts": (WIDE, (lists + 1,)),
    }
    if "data" in arrays:
        entries = arrays["data"].shape[:1]
        needed |= {"data": (FLOATS, entries), "indices": (INTEGERS, entries)}
        needed["indptr"] = (WIDE, (rows + 1,))
    else:
        needed["X"] = (FLOATS, (rows, width))
    allowed = needed | dict.fromkeys(NUMBERS, (("<f8",), (rows,))) | {"docid": (TEXTS, (rows,))}
    for name in (*needed, *arrays):
        place = path / f"{name}.npy"
        if name not in allowed:
            raise DataError("expected no such file", path=place)
        types, shape = allowed[name]
        array = arrays.get(name)
        if (
            array is None
            or array.dtype.str not in types
            or array.shape != shape
            or not array.flags.c_contiguous
        ):
            raise DataError(
                f"expected an array of {' or '.join(types[:2])} of shape {shape}", path=place
            )


class ListsWriter:
    """The files of a folder as they grow."""

    def __init__(self, place: Path, dtype: DTypeLike | None, sparse: bool | None) -> None:
        self.place, self.sparse = place, sparse
        self.dtype = None if dtype is None else np.dtype(dtype)
        self.features: Columns | None = None
        self.missing = False
        self.n_rows = self.n_lists = 0
        self._texts: dict[str, _Texts] = {}
        self._columns: dict[str, NpyWriter] = {}
        self._kinds: tuple[str, ...] = ()
        self._last: str | None = None  # the query of the last row
        self._stack = ExitStack()

    def __enter__(self) -> ListsWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None and self.features is None:
            raise DataError("expected at least one row, found none")
        if error[0] is None:
            self._columns["starts"].add(np.array([self.n_rows]))
            if self.sparse:
                self._columns["indptr"].add(np.array([self._entries]))
        self._stack.__exit__(*error)
        if error[0] is None:
            self._finish_texts()

    def add(self, part: Lists) -> None:
        """Add rows to all files."""
        if self.features is None:
            self._begin(part)
        assert self.features is not None
        if part.features != self.features:
            raise DataError(f"expected {self.features}, found {part.features}", field="features")
        self._add_matrix(part)
        for kind in self._kinds:
            numbers = getattr(part, kind)
            if numbers is None:
                raise DataError("expected some, as the first rows have them", field=kind)
            self._columns[kind].add(numbers)
        qid = _text(part.qid, "qid")
        self._texts["qid"].add(qid)
        docid = np.zeros(len(part), "U1") if part.docid is None else _text(part.docid, "docid")
        self._texts["docid"].add(docid)
        self._add_runs(qid)
        self.n_rows += len(part)

    def _begin(self, part: Lists) -> None:
        if part.queries is not None or part.weights is not None:
            raise DataError("expected rows of features only", field="queries")
        if part.attributes or part.query_vectors is not None:
            raise DataError(
                "expected rows of features only: JSON lines keep fields, signals and vectors",
                field="attributes",
            )
        self.features = part.features
        if self.sparse is None:
            self.sparse = is_sparse(part.X)
        if self.dtype is None:
            self.dtype = part.X.dtype
        self._kinds = tuple(kind for kind in NUMBERS if getattr(part, kind) is not None)
        types: dict[str, Any] = dict.fromkeys(self._kinds, np.float64)
        types |= {"starts": np.int64, "hashes": np.int64}
        if self.sparse:
            index = np.int32 if self.features.count < 2**31 else np.int64
            types |= {"data": self.dtype, "indices": index, "indptr": np.int64}
        self._entries = 0
        for name, kind in types.items():
            self._columns[name] = self._open(name, kind)
        if not self.sparse:
            self._columns["X"] = self._open("X", self.dtype, self.features.count)
        for name in ("qid", "docid", "names"):
            self._texts[name] = _Texts(self.place / name)
            self._stack.callback(self._texts[name].close)

    def _open(self, name: str, dtype: DTypeLike, width: int | None = None) -> NpyWriter:
        return self._stack.enter_context(NpyWriter(self.place / f"{name}.npy", dtype, width))

    def _add_matrix(self, part: Lists) -> None:
        X: Any = part.X
        values = X.data if is_sparse(X) else X
        with np.errstate(over="ignore"):
            numbers = values.astype(self.dtype, copy=False)
        if not np.isfinite(numbers).all():
            if np.isinf(numbers).any():
                wrong = np.isinf(numbers)
                row = int(np.argmax(wrong if wrong.ndim == 1 else wrong.any(axis=1)))
                if is_sparse(X):
                    row = int(np.searchsorted(X.indptr, row, side="right")) - 1
                raise DataError(
                    f"a value in row {self.n_rows + row + 1} is too large for {self.dtype}",
                    field="X",
                )
            self.missing = True
        if not self.sparse:
            self._columns["X"].add(X.toarray() if is_sparse(X) else numbers)
            return
        import scipy.sparse as sp

        rows = sp.csr_array(X)
        rows.sum_duplicates()
        self._columns["data"].add(rows.data)
        self._columns["indices"].add(rows.indices)
        self._columns["indptr"].add(rows.indptr[:-1].astype(np.int64) + self._entries)
        self._entries += int(rows.indptr[-1])

    def _add_runs(self, qid: NDArray[Any]) -> None:
        """The first rows of runs of one query, their names, and a number that tells names apart."""
        begins = np.empty(len(qid), np.bool_)
        begins[1:] = qid[1:] != qid[:-1]
        begins[0] = self._last is None or qid[0] != self._last
        self._last = str(qid[-1])
        heads = np.flatnonzero(begins)
        self._columns["starts"].add(self.n_rows + heads)
        names = qid[heads]
        self._texts["names"].add(names)
        hashes = np.fromiter(map(hash, names.tolist()), np.int64, len(names))
        self._columns["hashes"].add(hashes)
        self.n_lists += len(heads)

    def _finish_texts(self) -> None:
        for name, texts in self._texts.items():
            if name != "docid" or texts.widest > 0:
                with NpyWriter(self.place / f"{name}.npy", f"U{max(1, texts.widest)}") as file:
                    for part in texts:
                        file.add(part)
            texts.path.unlink()

    def scattered(self) -> bool:
        """Whether a query has rows in several places; if so, `order` knows the right one."""
        hashes, starts = (mapped(self.place / f"{name}.npy") for name in ("hashes", "starts"))
        records = self.place / "records"
        with open(records, "xb") as file:
            for first in range(0, self.n_lists, CHUNK):
                last = min(first + CHUNK, self.n_lists)
                rows = read_rows(starts, first, last + 1)
                columns = (read_rows(hashes, first, last), rows[:-1], np.diff(rows))
                np.column_stack(columns).tofile(file)
        (self.place / "hashes.npy").unlink()
        sort_records(records, 3)
        repeated = self._by_first_row(records)
        if repeated:
            sort_records(records, 3)
            self._order = records
        else:
            records.unlink()
        return repeated

    @staticmethod
    def _by_first_row(records: Path) -> bool:
        """Replace the number of each query by its first row; whether a query has several runs."""
        repeated, last, first = False, None, 0
        numbered = records.with_suffix(".first")
        with open(numbered, "xb") as file:
            for part in read_records(records, 3):
                begins = np.empty(len(part), np.bool_)
                begins[1:] = part[1:, 0] != part[:-1, 0]
                begins[0] = last is None or part[0, 0] != last
                repeated |= not begins.all()
                last = int(part[-1, 0])
                heads = np.flatnonzero(begins)
                firsts = np.concatenate([[first], part[heads, 1]])[np.cumsum(begins)]
                first = int(firsts[-1])
                np.column_stack([firsts, part[:, 1:]]).tofile(file)
        os.replace(numbered, records)
        return repeated

    def order(self, size: int) -> Iterator[NDArray[np.int64]]:
        """The rows in an order in which those of each query stand together, ``size`` at a time."""
        for records in read_records(self._order, 3):
            ends = np.cumsum(records[:, 2])
            for begin in range(0, int(ends[-1]), size):
                places = np.arange(begin, min(begin + size, int(ends[-1])))
                run = np.searchsorted(ends, places, side="right")
                yield places - (ends - records[:, 2])[run] + records[run, 1]
        self._order.unlink()

    def finish(self) -> tuple[list[str], ListsManifest]:
        """The files that the folder holds, once all are complete, and what they are."""
        assert self.features is not None
        if self.sparse and self._entries >= 2**31 > self.features.count:
            _widen(self.place / "indices.npy", self._entries)
        matrix = ("data", "indices", "indptr") if self.sparse else ("X",)
        texts = [
            name for name, column in self._texts.items() if name != "docid" or column.widest > 0
        ]
        files = [f"{name}.npy" for name in (*matrix, *self._kinds, *texts, "starts")]
        return files, ListsManifest(self.n_rows, self.n_lists, self.features, self.missing)


class _Texts:
    """Texts that come some at a time, kept as they are until the widest is known."""

    def __init__(self, path: Path) -> None:
        self.path, self.widest = path, 0
        self._file = open(path, "xb")  # noqa: SIM115 - the writer closes it

    def add(self, texts: NDArray[Any]) -> None:
        self.widest = max(self.widest, int(np.strings.str_len(texts).max(initial=0)))
        np.save(self._file, texts)

    def close(self) -> None:
        self._file.close()

    def __iter__(self) -> Iterator[NDArray[Any]]:
        size = os.path.getsize(self.path)
        with open(self.path, "rb") as file:
            while file.tell() < size:
                yield np.load(file)


def _widen(path: Path, count: int) -> None:
    """Columns as 64-bit integers, which a matrix with so many entries needs."""
    old, new = mapped(path), path.with_suffix(".wide")
    with NpyWriter(new, np.int64) as file:
        for first in range(0, count, BLOCK):
            file.add(read_rows(old, first, min(first + BLOCK, count)))
    os.replace(new, path)


def _text(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Ids as text of a width that a file can have."""
    if column.dtype == object:
        longest = max(map(len, column.tolist()))
        if longest > WIDEST:
            raise DataError(f"expected at most {WIDEST} characters, found {longest}", field=name)
    return column.astype(str)


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
