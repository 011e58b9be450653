"""LETOR and svmlight files: ``label qid:TEXT index:value ... # comment``, one document a line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import add
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from didyma.data import Groups, Lists
from didyma.errors import DataError
from didyma.execution import n_cores
from didyma.files import PathName, replace_when_done, stream_lines
from didyma.formats import short_letor
from didyma.formats.source import Source
from didyma.matrix import Matrix

__all__ = ["read", "write"]

DENSE_FROM = 0.25  # share of all entries that the file lists, from which a dense matrix suits
PIECE = 1 << 21  # bytes that a thread parses at a time
MISSING = (b"NULL", b"NaN")
GROUP_SUFFIXES = (".query", ".group")
LONGEST_SIZE = 18  # digits of what fits into 64 bits

_QID = re.compile(r"[^\s#]+", re.ASCII)
_DOCID = re.compile(r"(?!docid\s*=)(\S([^\r\n]*\S)?)?", re.ASCII)


def read(
    path: PathName,
    *,
    group: PathName | ArrayLike | None = None,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
    sparse: bool | None = None,
    missing: bool = False,
) -> Lists:
    """Read a LETOR / svmlight file, plain or gzip.

    Query ids are any text without white space or ``#``. Without them, ``group`` gives the size of
    each query in turn: a list, or a file with one size per line; ``<path>.query`` (LightGBM) or
    ``<path>.group`` (XGBoost) is found by itself.

    The document id is X in a comment ``#docid = X ...``, and the whole text of any other comment;
    it is empty for a line without one, and ``docid`` is None where no line has one.

    Indices count from 1, or from 0 in a file where index 0 occurs; ``zero_based`` decides it for
    a file that may lack index 0, and the result remembers it. ``n_features`` fixes the width, so
    that the files of a collection agree; `didyma.read` with ``like`` gives both. The matrix is
    dense where the file lists a quarter of all entries or more, else CSR, unless ``sparse``
    decides. Values are those of ``float()``, to the last bit; with ``missing``, NULL and NaN are
    values too, and are read as NaN.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "train.letor")
    >>> _ = path.write_text("1 qid:apple 1:0.5 2:3 # d1\\n0 qid:apple 2:1e-3 # d2\\n")
    >>> data = read(path)
    >>> data, data.X.tolist(), data.docid.tolist()
    (Lists(2 rows, 2 features, 1 queries), [[0.5, 3.0], [0.0, 0.001]], ['d1', 'd2'])
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise DataError(f"expected float64 or float32, found {dtype}", field="dtype")
    source = Source.open(path)
    if group is None and not sparse and len(source.text) <= short_letor.SHORT:
        dense_from = DENSE_FROM if sparse is None else 0.0
        short = short_letor.parse(source.text, n_features, zero_based, dtype, dense_from)
        if short is not None:
            return Lists(*short[:4], zero_based=short.zero_based)
    with ThreadPoolExecutor(n_cores()) as pool:
        shape = _measure(source, pool, n_features, zero_based, sparse)
        rows = _parse(source, pool, shape, dtype, missing)
    X = _matrix(source, shape, rows)
    qid = _query_ids(source, rows, group)
    docid = source.texts(rows.docids, "docid") if np.any(np.diff(rows.docids)) else None
    return Lists(X, rows.y, qid, docid, zero_based=shape.base == 0)


def write(data: Lists, path: PathName) -> None:
    """Write a LETOR file: every feature of a dense matrix, the stored entries of a sparse one.

    Indices count from 0 if the data are zero-based, else from 1. Numbers are written so that
    reading gives them back exactly, document ids become comments, and a name that ends in ``.gz``
    is compressed.
    """
    docids = [""] * len(data) if data.docid is None else data.docid.astype(str).tolist()
    _check_writable(data, docids, path)
    with replace_when_done(path) as file:
        for label, qid, entries, docid in zip(data.y.tolist(), data.qid, _entries(data), docids):
            comment = f" # {docid}" if docid else ""
            file.write(f"{repr(label).removesuffix('.0')} qid:{qid}{entries}{comment}\n")


@dataclass(frozen=True)
class _Shape:
    """What the first pass learns: the rows and entries before each piece, and the columns."""

    pieces: list[tuple[int, int]]
    rows: NDArray[np.int64]
    entries: NDArray[np.int64]
    base: int
    width: int
    dense: bool


@dataclass(frozen=True)
class _Rows:
    """What the second pass fills; see `didyma.kernels.svmlight.parse`."""

    y: NDArray[np.float64]
    values: NDArray[Any]
    columns: NDArray[np.int32]
    starts: NDArray[np.int64]
    docids: NDArray[np.int64]
    runs: NDArray[np.int64]
    increasing: bool


def _measure(
    source: Source,
    pool: ThreadPoolExecutor,
    n_features: int | None,
    zero_based: bool | Literal["auto"],
    sparse: bool | None,
) -> _Shape:
    from didyma.kernels.svmlight import scan

    pieces = list(source.pieces(PIECE))
    counts = [*pool.map(lambda piece: scan(source.codes, *piece), pieces)]
    n_rows, n_entries, least, greatest = np.array(counts, np.int64).reshape(-1, 4).T
    rows, entries = (np.concatenate([[0], np.cumsum(n)]) for n in (n_rows, n_entries))
    if rows[-1] == 0:
        raise DataError(
            "expected lines 'label qid:TEXT index:value ...', found none", path=source.path
        )
    if zero_based == "auto":
        zero_based = bool(least.min() == 0)
    base = 0 if zero_based else 1
    width = max(int(greatest.max()) - base + 1, 0) if n_features is None else n_features
    if sparse is None:
        sparse = bool(entries[-1] < DENSE_FROM * rows[-1] * width)
    return _Shape(pieces, rows, entries, base, width, not sparse)


def _parse(
    source: Source,
    pool: ThreadPoolExecutor,
    shape: _Shape,
    dtype: np.dtype[Any],
    missing: bool,
) -> _Rows:
    from didyma.kernels.svmlight import BAD_LABEL, BAD_VALUE, FINE, parse

    n_rows, n_entries = int(shape.rows[-1]), int(shape.entries[-1])
    bound = float(np.finfo(dtype).max)
    y = np.empty(n_rows)
    values = np.zeros(n_rows * shape.width if shape.dense else n_entries, dtype)
    columns = np.empty(0 if shape.dense else n_entries, np.int32)
    starts = np.zeros(n_rows + 1, np.int64)
    docids = np.empty((n_rows, 2), np.int64)

    def fill(k: int) -> tuple[NDArray[np.int64], int, int, bool]:
        row, entry = int(shape.rows[k]), int(shape.entries[k])
        rows_here = int(shape.rows[k + 1]) - row
        entries_here = int(shape.entries[k + 1]) - entry
        seen = np.zeros(shape.width if shape.dense else 0, np.int64)
        runs = np.empty((rows_here, 3), np.int64)
        unsure = np.empty((rows_here + entries_here, 2), np.int64)
        code, at, n_runs, n_unsure, with_qid, without_qid, increasing = parse(
            *(source.codes, *shape.pieces[k], row, entry, shape.base, shape.width, bound),
            *(missing, shape.dense, y, values, columns, starts[1:], docids, seen, runs, unsure),
        )
        for place, target in unsure[:n_unsure].tolist():
            word = source.word(place).rpartition(b":")[2]
            if word in MISSING:  # the kernel has stored it
                continue
            value = float(word)
            if abs(value) > (bound if target >= 0 else sys.float_info.max):
                _explain(source, shape, BAD_VALUE if target >= 0 else BAD_LABEL, place)
            if target >= 0:
                values[target] = value
            else:
                y[-1 - target] = value
        if code != FINE:
            _explain(source, shape, code, at)
        return runs[:n_runs].copy(), with_qid, without_qid, increasing

    runs, with_qid, without_qid, increasing = zip(*pool.map(fill, range(len(shape.pieces))))
    _check_qid_everywhere(source, with_qid, without_qid)
    return _Rows(y, values, columns, starts, docids, np.concatenate(runs), all(increasing))


def _explain(source: Source, shape: _Shape, code: int, at: int) -> NoReturn:
    """Raise the error for what the parser found at a place."""
    from didyma.kernels import svmlight

    token = source.word(at).decode(errors="backslashreplace")
    feature = f"feature {token.partition(':')[0]}"
    last = shape.width - 1 + shape.base
    field, problem = {
        svmlight.BAD_LABEL: ("label", f"expected a finite number, found {token!r}"),
        svmlight.BAD_INDEX: (
            "feature",
            f"expected index:value with an index from {shape.base}, found {token!r}",
        ),
        svmlight.BAD_VALUE: (
            feature,
            f"expected a finite number after the colon, found {token!r}",
        ),
        svmlight.WIDE_INDEX: (feature, f"expected an index up to {last}, the last feature"),
        svmlight.REPEATED_INDEX: (feature, "expected each index once a line, found it again"),
        svmlight.EMPTY_QID: ("qid", f"expected text after the colon, found {token!r}"),
        svmlight.REPEATED_QID: ("qid", f"expected one query id a line, found also {token!r}"),
    }[code]
    source.fail(at, field, problem)


def _check_qid_everywhere(
    source: Source, with_qid: tuple[int, ...], without_qid: tuple[int, ...]
) -> None:
    first_with = min((at for at in with_qid if at >= 0), default=-1)
    first_without = min((at for at in without_qid if at >= 0), default=-1)
    if first_with < 0 or first_without < 0:
        return
    if first_with < first_without:
        problem = f"missing, but line {source.line(first_with)} has one"
    else:
        problem = f"unexpected, as line {source.line(first_without)} has none"
    source.fail(max(first_with, first_without), "qid", problem)


def _matrix(source: Source, shape: _Shape, rows: _Rows) -> Matrix:
    n_rows = len(rows.y)
    if shape.dense:
        return rows.values.reshape(n_rows, shape.width)
    starts = rows.starts.astype(np.int32) if rows.starts[-1] < 2**31 else rows.starts
    from scipy.sparse import csr_array

    X = csr_array((rows.values, rows.columns, starts), shape=(n_rows, shape.width))
    if not rows.increasing:
        X.sort_indices()
        row = np.repeat(np.arange(n_rows), np.diff(X.indptr))
        repeated = (X.indices[1:] == X.indices[:-1]) & (row[1:] == row[:-1])
        if repeated.any():
            entry = int(repeated.argmax())
            source.fail(
                int(rows.docids[row[entry], 0]),
                f"feature {X.indices[entry] + shape.base}",
                "expected each index once a line, found it again",
            )
    return X


def _query_ids(source: Source, rows: _Rows, group: PathName | ArrayLike | None) -> NDArray[Any]:
    n_rows = len(rows.y)
    if len(rows.runs):
        if group is not None:
            raise DataError("expected no group sizes, as the lines have qid", path=source.path)
        names = source.texts(rows.runs[:, 1:], "qid")
        return np.repeat(names, np.diff(rows.runs[:, 0], append=n_rows))
    if group is None:
        group = _group_file(Path(source.path))
    sizes = _read_sizes(group) if isinstance(group, str | PathLike) else group
    try:
        groups = Groups.from_sizes(sizes, n_rows)
    except DataError as error:
        place = group if isinstance(group, str | PathLike) else source.path
        raise DataError(error.problem, path=place, field=error.field) from None
    return np.repeat(groups.names.astype(str), groups.sizes)


def _group_file(path: Path) -> Path:
    stem = path.with_suffix("") if path.suffix == ".gz" else path
    for suffix in GROUP_SUFFIXES:
        if (found := stem.with_name(stem.name + suffix)).is_file():
            return found
    raise DataError(
        f"no line has a query id: expected 'label qid:TEXT ...', or the sizes of the queries "
        f"as group= or in {stem.name}{GROUP_SUFFIXES[0]}",
        path=path,
        field="qid",
    )


def _read_sizes(path: PathName) -> list[int]:
    sizes = []
    for line, text in enumerate(stream_lines(path), 1):
        if text.strip():
            if not text.strip().isdigit() or len(text.strip()) > LONGEST_SIZE:
                found = text.strip().decode(errors="backslashreplace")
                raise DataError(
                    f"expected a number of rows, found {found!r:.40}",
                    path=path,
                    line=line,
                    field="group",
                )
            sizes.append(int(text))
    return sizes


def _check_writable(data: Lists, docids: list[str], path: PathName) -> None:
    for name in map(str, data.groups.names):
        if not _QID.fullmatch(name):
            raise DataError(
                f"expected text without white space or '#', found {name!r}", path=path, field="qid"
            )
    for row, docid in enumerate(docids):
        if not _DOCID.fullmatch(docid):
            raise DataError(
                f"expected text that can stand in a comment, found {docid!r} in row {row}",
                path=path,
                field="docid",
            )
    stored = data.X if isinstance(data.X, np.ndarray) else data.X.data
    for field, numbers in (("X", stored), ("y", data.y)):
        if not np.isfinite(numbers).all():
            raise DataError("expected finite numbers only", path=path, field=field)


def _entries(data: Lists) -> Iterator[str]:
    """The text `` index:value ...`` of each row."""
    X, first = data.X, 0 if data.zero_based else 1
    width = X.shape[1]
    if isinstance(X, np.ndarray):
        names = [f" {index}:" for index in range(first, first + width)]
        for values in X:
            yield "".join(map(add, names, map(repr, values.tolist())))
        return
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()

    # A zero in the last column keeps the width, and one in column 0 that indices count from there:
    # the file has no other place for either.
    def mark(column: int) -> str:
        return "" if np.any(X.indices == column) else f" {column + first}:0"

    beginning = mark(0) if first == 0 and width > 1 else ""
    ending = mark(width - 1) if width else ""
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist()):
        indices, values = (X.indices[start:stop] + first).tolist(), X.data[start:stop].tolist()
        entries = "".join(f" {index}:{value!r}" for index, value in zip(indices, values))
        yield beginning + entries + ending
        beginning = ending = ""
