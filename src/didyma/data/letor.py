"""LETOR and svmlight files: ``label qid:TEXT index:value ... # comment``, one document a line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest
from operator import add
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix
from didyma.data.row_blocks import collect
from didyma.data.text_columns import TextBlock
from didyma.errors import DataError
from didyma.execution import n_cores
from didyma.files import PathName, replace_when_done, stream_lines

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["LetorOptions", "blocks", "read", "write", "write_blocks"]

DENSE_FROM = 0.25  # share of all entries that the file lists, from which a dense matrix suits
PIECE = 1 << 19  # bytes that a thread parses at a time
MISSING = (b"NULL", b"NaN")
GROUP_SUFFIXES = (".query", ".group")
LONGEST_SIZE = 18  # digits of what fits into 64 bits

_QID = re.compile(r"[^\s#]+", re.ASCII)
_DOCID = re.compile(r"(?!docid\s*=)(\S([^\r\n]*\S)?)?", re.ASCII)


@dataclass(frozen=True)
class LetorOptions:
    """How `read` and `blocks` take a file.

    Parameters
    ----------
    group : path or list of int, optional
        The size of each query in turn, for files without query ids: a list, or a file with one size
        a line. By default ``<path>.query`` (LightGBM) or ``<path>.group`` (XGBoost).
    n_features : int, optional
        The width of the matrix, so that the files of a collection agree.
    zero_based : bool or "auto"
        Whether indices count from 0; "auto" is yes in a file where index 0 occurs.
    dtype : float64 or float32
    sparse : bool, optional
        CSR or dense; by default dense where the file lists a quarter of all entries or more.
    missing : bool
        Read NULL and NaN as NaN, rather than refuse them.
    """

    group: PathName | ArrayLike | None = None
    n_features: int | None = None
    zero_based: bool | Literal["auto"] = "auto"
    dtype: DTypeLike = np.float64
    sparse: bool | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        if np.dtype(self.dtype) not in (np.float32, np.float64):
            problem = f"expected float64 or float32, found {np.dtype(self.dtype)}"
            raise DataError(problem, field="dtype")


def read(path: PathName, **options: Any) -> Lists:
    """Read a LETOR / svmlight file, plain or gzip; ``options`` are the fields of `LetorOptions`.

    Query ids are any text without white space or ``#``. The document id is X in a comment
    ``#docid = X ...``, and the whole text of any other comment; it is empty for a line without one,
    and ``docid`` is None where no line has one. Values are those of ``float()``, to the last bit.
    The result remembers whether indices count from 0; `didyma.read` with ``like`` reads further
    files of a collection in the same way.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "train.letor")
    >>> _ = path.write_text("1 qid:apple 1:0.5 2:3 # d1\\n0 qid:apple 2:1e-3 # d2\\n")
    >>> data = read(path)
    >>> data, data.X.tolist(), data.docid.tolist()
    (Lists(2 rows, 2 features, 1 queries), [[0.5, 3.0], [0.0, 0.001]], ['d1', 'd2'])
    """
    return collect(blocks(path, **options))


def blocks(path: PathName, **options: Any) -> Iterator[Lists]:
    """The rows that `read` gives, some at a time, in constant memory.

    The file is read twice, as its width and how full it is must be known first.
    """
    settings, sources = LetorOptions(**options), _sources(path)
    with ThreadPoolExecutor(n_cores()) as pool:
        shape = _measure(sources(), path, pool, settings)
        queries = _Queries(path, shape.n_rows, settings.group)
        for source, pieces in zip_longest(sources(), shape.pieces):
            if source is None or pieces is None or len(source.text) != pieces[-1, 1]:
                raise _changed(path)
            if pieces[:, 2].any():
                yield _parse(source, pool, pieces, shape, settings, queries)


def write(data: Lists, path: PathName) -> None:
    """Write a LETOR file: every feature of a dense matrix, the stored entries of a sparse one.

    Indices count from 0 if the data are zero-based, else from 1. Numbers are written so that
    reading gives them back exactly, document ids become comments, and a name that ends in ``.gz``
    is compressed.
    """
    write_blocks([data], path)


def write_blocks(parts: Iterable[Lists], path: PathName) -> None:
    """The same of rows that come some at a time."""
    with replace_when_done(path) as file:
        for number, part in enumerate(parts):
            docids = [""] * len(part) if part.docid is None else part.docid.astype(str).tolist()
            _check_writable(part, docids, path)
            entries = _entries(part, first=number == 0)
            for label, qid, features, docid in zip(part.y.tolist(), part.qid, entries, docids):
                comment = f" # {docid}" if docid else ""
                file.write(f"{repr(label).removesuffix('.0')} qid:{qid}{features}{comment}\n")


@dataclass(frozen=True)
class _Shape:
    """What the first pass learns.

    ``pieces`` has, for each block of the file, a row (start, stop, rows, entries) for each piece.
    """

    pieces: list[NDArray[np.int64]]
    n_rows: int
    n_entries: int
    base: int
    width: int
    dense: bool
    named: bool  # whether a row has a document id


def _sources(path: PathName) -> Callable[[], Iterable[TextBlock]]:
    """The blocks of a file, as often as they are asked for; an only one is read once."""
    first_blocks = list(islice(TextBlock.blocks(path), 2))
    return (lambda: TextBlock.blocks(path)) if len(first_blocks) > 1 else (lambda: first_blocks)


def _measure(
    sources: Iterable[TextBlock], path: PathName, pool: ThreadPoolExecutor, options: LetorOptions
) -> _Shape:
    from didyma._core.data import scan

    pieces, least, greatest, named = [], 2**31, -1, 0
    for source in sources:
        spans = list(source.pieces(PIECE))
        scanned = [*pool.map(lambda span, codes=source.codes: scan(codes, *span), spans)]
        counts = np.array(scanned, np.int64).reshape(-1, 5)
        pieces.append(np.hstack([np.array(spans, np.int64), counts[:, :2]]))
        least, greatest = min(least, counts[:, 2].min()), max(greatest, counts[:, 3].max())
        named += int(counts[:, 4].sum())
    n_rows, n_entries = (sum(int(block[:, k].sum()) for block in pieces) for k in (2, 3))
    if n_rows == 0:
        raise DataError("expected lines 'label qid:TEXT index:value ...', found none", path=path)
    zero_based = bool(least == 0) if options.zero_based == "auto" else options.zero_based
    base = 0 if zero_based else 1
    width = max(int(greatest) - base + 1, 0) if options.n_features is None else options.n_features
    sparse = (
        bool(n_entries < DENSE_FROM * n_rows * width) if options.sparse is None else options.sparse
    )
    return _Shape(pieces, n_rows, n_entries, base, width, not sparse, named > 0)


def _parse(
    source: TextBlock,
    pool: ThreadPoolExecutor,
    pieces: NDArray[np.int64],
    shape: _Shape,
    options: LetorOptions,
    queries: _Queries,
) -> Lists:
    """The rows of a block."""
    from didyma._core.data import BAD_LABEL, BAD_VALUE, FINE, parse

    n_rows, n_entries = (int(count) for count in pieces[:, 2:].sum(axis=0))
    X = np.zeros((n_rows, shape.width) if shape.dense else n_entries, options.dtype)
    y, values = np.empty(n_rows), X.reshape(-1)
    columns = np.empty(0 if shape.dense else n_entries, np.int32)
    bound = float(np.finfo(np.dtype(options.dtype)).max)
    ends, docids = np.empty(n_rows, np.int64), np.empty((n_rows, 2), np.int64)
    until = np.cumsum(pieces[:, 2:], axis=0)

    def fill(k: int) -> tuple[NDArray[np.int64], int, int, bool]:
        start, stop, rows_here, entries_here = pieces[k].tolist()
        rows, entries = until[k].tolist()
        seen = np.zeros(shape.width if shape.dense else 0, np.int64)
        runs = np.empty((rows_here, 3), np.int64)
        unsure = np.empty((rows_here + entries_here, 2), np.int64)
        code, at, n_runs, n_unsure, with_qid, without_qid, increasing = parse(
            *(source.codes, start, stop, rows - rows_here, rows, entries - entries_here, entries),
            *(shape.base, shape.width, bound, options.missing, shape.dense),
            *(y, values, columns, ends, docids, seen, runs, unsure),
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

    runs, with_qid, without_qid, increasing = zip(*pool.map(fill, range(len(pieces))))
    qid = queries.of_block(source, np.concatenate(runs), n_rows, with_qid, without_qid)
    matrix: Matrix = X
    if not shape.dense:
        from scipy.sparse import csr_array

        starts = np.concatenate([[0], ends]).astype(np.int32 if n_entries < 2**31 else np.int64)
        matrix = csr_array((values, columns, starts), shape=(n_rows, shape.width))
        if not all(increasing):
            matrix.sort_indices()
            _check_columns(source, shape, matrix, docids)
    docid = None
    if shape.named:
        named = np.any(np.diff(docids))
        docid = source.texts(docids, "docid") if named else np.zeros(n_rows, "U1")
    return Lists(matrix, y, qid, docid, zero_based=shape.base == 0)


def _changed(path: PathName) -> DataError:
    return DataError("changed while it was being read", path=path)


def _explain(source: TextBlock, shape: _Shape, code: int, at: int) -> NoReturn:
    """Raise the error for what the parser found at a place."""
    from didyma._core import data as core

    if code == core.CHANGED:
        raise _changed(source.path)
    token = source.word(at).decode(errors="backslashreplace")
    feature = f"feature {token.partition(':')[0]}"
    last = shape.width - 1 + shape.base
    field, problem = {
        core.BAD_LABEL: ("label", f"expected a finite number, found {token!r}"),
        core.BAD_INDEX: (
            "feature",
            f"expected index:value with an index from {shape.base}, found {token!r}",
        ),
        core.BAD_VALUE: (
            feature,
            f"expected a finite number after the colon, found {token!r}",
        ),
        core.WIDE_INDEX: (feature, f"expected an index up to {last}, the last feature"),
        core.REPEATED_INDEX: (feature, "expected each index once a line, found it again"),
        core.EMPTY_QID: ("qid", f"expected text after the colon, found {token!r}"),
        core.REPEATED_QID: ("qid", f"expected one query id a line, found also {token!r}"),
    }[code]
    source.fail(at, field, problem)


def _check_columns(
    source: TextBlock, shape: _Shape, X: csr_array, docids: NDArray[np.int64]
) -> None:
    """Refuse an index that stands twice in a row, whose indices are sorted."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    repeated = (X.indices[1:] == X.indices[:-1]) & (row[1:] == row[:-1])
    if repeated.any():
        entry = int(repeated.argmax())
        field = f"feature {X.indices[entry] + shape.base}"
        problem = "expected each index once a line, found it again"
        source.fail(int(docids[row[entry], 0]), field, problem)


class _Queries:
    """The query of each row, block by block: its qid, or the group that the row falls into."""

    def __init__(self, path: PathName, n_rows: int, group: PathName | ArrayLike | None) -> None:
        self._path, self._n_rows, self._group = path, n_rows, group
        self._with = self._without = 0  # the first line that has a qid, and that has none
        self._row = 0

    def of_block(
        self,
        source: TextBlock,
        runs: NDArray[np.int64],
        n_rows: int,
        with_qid: tuple[int, ...],
        without_qid: tuple[int, ...],
    ) -> NDArray[Any]:
        """Those of a block; the places are of lines that have a qid, or none."""
        first_with = min((at for at in with_qid if at >= 0), default=-1)
        first_without = min((at for at in without_qid if at >= 0), default=-1)
        at = -1  # of the later of these two lines
        if first_with >= 0 and not self._with:
            self._with, at = source.line(first_with), first_with
        if first_without >= 0 and not self._without:
            self._without, at = source.line(first_without), max(at, first_without)
        if self._with and self._without:
            if self._with < self._without:
                problem = f"missing, but line {self._with} has one"
            else:
                problem = f"unexpected, as line {self._without} has none"
            source.fail(at, "qid", problem)
        start, self._row = self._row, self._row + n_rows
        if self._without:
            names = np.searchsorted(self._ends, np.arange(start, self._row), side="right")
            return names.astype(str)
        if self._group is not None:
            raise DataError("expected no group sizes, as the lines have qid", path=self._path)
        names = source.texts(runs[:, 1:], "qid")
        return np.repeat(names, np.diff(runs[:, 0], append=n_rows))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """One past the last row of each group."""
        group = _group_file(Path(self._path)) if self._group is None else self._group
        sizes = _read_sizes(group) if isinstance(group, str | PathLike) else group
        try:
            return Groups.from_sizes(sizes, self._n_rows).starts[1:]
        except DataError as error:
            place = group if isinstance(group, str | PathLike) else self._path
            raise DataError(error.problem, path=place, field=error.field) from None


def _group_file(path: Path) -> Path:
    stem = path.with_suffix("") if path.suffix == ".gz" else path
    for suffix in GROUP_SUFFIXES:
        if (sizes := stem.with_name(stem.name + suffix)).is_file():
            return sizes
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
                word = text.strip().decode(errors="backslashreplace")
                raise DataError(
                    f"expected a number of rows, found {word!r:.40}",
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


def _entries(data: Lists, *, first: bool) -> Iterator[str]:
    """The text `` index:value ...`` of each row; the ``first`` ones also tell the width."""
    X, base = data.X, 0 if data.zero_based else 1
    width = X.shape[1]
    if isinstance(X, np.ndarray):
        names = [f" {index}:" for index in range(base, base + width)]
        for values in X:
            yield "".join(map(add, names, map(repr, values.tolist())))
        return
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()

    # A zero in the last column keeps the width, and one in column 0 that indices count from there:
    # the file has no other place for either.
    def mark(column: int) -> str:
        return "" if np.any(X.indices == column) else f" {column + base}:0"

    beginning = mark(0) if first and base == 0 and width > 1 else ""
    ending = mark(width - 1) if first and width else ""
    for start, stop in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist()):
        indices, values = (X.indices[start:stop] + base).tolist(), X.data[start:stop].tolist()
        entries = "".join(f" {index}:{value!r}" for index, value in zip(indices, values))
        yield beginning + entries + ending
        beginning = ending = ""
