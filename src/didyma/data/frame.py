"""Data frames, whatever library they are of, and Parquet files, a few megabytes at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.categories import TextFoundError, is_missing, number_in
from didyma.data.text_columns import text_array
from didyma.errors import DataError, MissingExtraError
from didyma.files import PathName, check_unpacked, read_bytes, unpack_limit
from didyma.values import kind_of


def require(module: str, purpose: str) -> Any:
    """A module of the extra for tables."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(purpose, "tables") from None


def opened(frame: Any) -> Any:
    """A dataframe of pandas, Polars, PyArrow or any other that narwhals knows, with some rows."""
    nw = require("narwhals", "reading a dataframe")
    try:
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        _ = table.columns
    except TypeError:
        raise DataError(f"expected a dataframe, found {kind_of(frame)}") from None
    except nw.exceptions.DuplicateError as error:
        raise DataError(" ".join(str(error).split())) from None
    if len(table) == 0:
        raise DataError("expected at least one row, found none")
    return table


def is_numeric(series: Any) -> bool:
    """Whether a column is one of numbers, or of true and false."""
    import narwhals as nw

    return bool(series.dtype.is_numeric() or series.dtype == nw.Boolean)


def numbers(
    series: Any, before: int = 0, *, missing: bool = False, texts: bool = False
) -> NDArray[Any]:
    """A column of finite numbers; so many rows stand before its first.

    Some may be ``missing``, and so NaN, and stand there as ``texts``.
    """
    import narwhals as nw

    if not missing:
        _check_no_null(series, "a number", before)
    if not is_numeric(series):
        values = [None if is_missing(value) else value for value in series.to_list()]
        for row, value in enumerate(values, before + 1):
            if (value is not None or not missing) and math.isnan(number_in(str(value))):
                problem = f"expected a number, found {value!r} in row {row}"
                raise TextFoundError(problem, field=series.name)
        if not texts and any(value is not None for value in values):
            problem = f"expected a column of numbers, found {series.dtype}"
            raise DataError(problem, field=series.name)
        return np.array([number_in(str(value)) for value in values])
    if series.dtype not in (nw.Float32, nw.Float64):
        series = series.cast(nw.Float64)
    numbers: NDArray[Any] = series.to_numpy()
    wrong = np.isinf(numbers) if missing else ~np.isfinite(numbers)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"expected a finite number, found {numbers[row]} in row {before + row + 1}",
            field=series.name,
        )
    return numbers


def ids(series: Any, before: int = 0) -> NDArray[Any]:
    """A column of ids, which are text or whole numbers; so many rows stand before its first."""
    import narwhals as nw

    _check_no_null(series, "text", before)
    if series.dtype.is_float() or series.dtype.is_decimal() or series.dtype == nw.Boolean:
        raise DataError(f"expected text or integers, found {series.dtype}", field=series.name)
    return text_array([str(value) for value in series.to_list()])


def queries(series: Any, before: int = 0) -> NDArray[Any]:
    """A column of query ids, of which each row has one."""
    texts = ids(series, before)
    if (empty := np.flatnonzero(texts == "")).size:
        row = before + int(empty[0]) + 1
        raise DataError(f"expected text, found none in row {row}", field=series.name)
    return texts


def texts(series: Any) -> list[str]:
    """A column of texts."""
    _check_no_null(series, "text")
    values = series.to_list()
    for row, value in enumerate(values, 1):
        if not isinstance(value, str):
            problem = f"expected a text, found {value!r:.40} in row {row}"
            raise DataError(problem, field=series.name)
    return list(values)


def _check_no_null(series: Any, expected: str, before: int = 0) -> None:
    if series.null_count():
        row = before + int(np.argmax(series.is_null().to_numpy())) + 1
        raise DataError(f"expected {expected}, found none in row {row}", field=series.name)


BLOCK = 1 << 24  # bytes of numbers that are in memory at a time
BUFFER = 1 << 16  # and of a column as it is stored
ROWS = 1 << 16  # with texts, that are read at a time
TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


@contextmanager
def open_parquet(path: PathName) -> Iterator[ParquetFile]:
    """A file to read tables from; what PyArrow raises at damage becomes one error."""
    arrow, parquet = (require(m, f"reading {path}") for m in ("pyarrow", "pyarrow.parquet"))
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        contents = arrow.BufferReader(read_bytes(path)) if packed else os.fspath(path)
        with parquet.ParquetFile(contents, buffer_size=BUFFER) as file:
            yield ParquetFile(file, path)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"not a readable Parquet file ({error})") from None


def read_parquet(path: PathName) -> Any:
    """The table of a Parquet file."""
    with open_parquet(path) as file:
        return file.table(list(range(file.metadata.num_row_groups)), file.schema.names)


def parquet_blocks(path: PathName) -> Iterator[Any]:
    """The same as tables of some megabytes."""
    with open_parquet(path) as file:
        if not file.metadata.num_rows:
            yield file.table([], file.schema.names)
        size = max(1, BLOCK // (8 * max(1, len(file.schema.names))))
        for groups in file.row_groups(size):
            for part in file.batches(groups, file.schema.names, size):
                yield require("pyarrow", f"reading {path}").Table.from_batches([part])


class ParquetFile:
    """An open file that is refused where it unpacks to more than the limit, or than it has bytes.

    Sizes in the file tell that of numbers. A text that is stored once can stand in any number of
    rows, so texts are counted as they are read, and so few rows at a time that they cannot go far
    beyond.
    """

    def __init__(self, file: Any, path: PathName) -> None:
        self._file, self._path = file, path
        self._most = max(unpack_limit(), os.path.getsize(path))
        self._n_unpacked = 0
        self.metadata, self.schema = file.metadata, file.schema_arrow
        groups = range(self.metadata.num_row_groups)
        self._check(
            sum(
                max(chunk.total_uncompressed_size, 8 * chunk.num_values, 8 * group.num_rows)
                for group in map(self.metadata.row_group, groups)
                for chunk in map(group.column, range(group.num_columns))
            )
        )

    def table(self, groups: list[int], names: list[str]) -> Any:
        """Columns of whole row groups as one table."""
        if not self._longest_text(groups, names):
            return _valid(self._file.read_row_groups(groups, names))
        parts = list(self.batches(groups, names, ROWS))
        schema = self._file.read_row_groups([], names).schema
        return require("pyarrow", f"reading {self._path}").Table.from_batches(parts, schema)

    def batches(self, groups: list[int], names: list[str], size: int) -> Iterator[Any]:
        """The same as so many rows at a time, or fewer."""
        if longest := self._longest_text(groups, names):
            size = max(1, min(size, self._most // longest))
        for part in self._file.iter_batches(size, row_groups=groups, columns=names):
            self._n_unpacked += part.nbytes
            self._check(self._n_unpacked)
            yield _valid(part)

    def pieces(self, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """Some of the columns for some of the rows, a few megabytes, each with its first row.

        All columns together would be held a page each, and a page can be a megabyte.
        """
        before = 0
        for groups in self.row_groups(max(1, BLOCK // (8 * max(1, len(names))))):
            rows = sum(self.metadata.row_group(group).num_rows for group in groups)
            width = max(1, BLOCK // (8 * max(1, rows)))
            for first in range(0, len(names), width):
                wanted = list(names[first : first + width])
                yield before, self.table(groups, wanted).select(wanted)
            before += rows

    def row_groups(self, size: int) -> Iterator[list[int]]:
        """Groups of about so many rows together: those read together are held together."""
        waiting, count = list[int](), 0
        for group in range(self.metadata.num_row_groups):
            waiting.append(group)
            count += self.metadata.row_group(group).num_rows
            if count >= size:
                yield waiting
                waiting, count = [], 0
        if waiting:
            yield waiting

    def _longest_text(self, groups: list[int], names: list[str]) -> int:
        """As many bytes as any text can have, since it is stored once; 0 where there are none."""
        sizes = [
            chunk.total_uncompressed_size
            for group in map(self.metadata.row_group, groups)
            for chunk in map(group.column, range(group.num_columns))
            if chunk.physical_type in TEXTS and chunk.path_in_schema.split(".")[0] in names
        ]
        return max(sizes, default=0)

    def _check(self, size: int) -> None:
        if size > self._most:
            check_unpacked(size, self._path)


def _valid(table: Any) -> Any:
    """The same; reading trusts what the file says about texts."""
    table.validate(full=True)
    return table
