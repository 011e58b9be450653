"""Columns of data frames, whatever library they are of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError, MissingExtraError
from didyma.files import PathName, read_bytes
from didyma.formats.text import text_array

__all__ = [
    "ids",
    "numbers",
    "opened",
    "parquet_blocks",
    "parquet_file",
    "parquet_pieces",
    "read_parquet",
    "require",
    "texts",
]


BLOCK = 1 << 24  # bytes of numbers that are in memory at a time
BUFFER = 1 << 16  # and of a column as it is stored


def require(module: str, purpose: str) -> Any:
    """A module of the extra for tables."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(purpose, "tables") from None


@contextmanager
def parquet_file(path: PathName) -> Iterator[Any]:
    """A Parquet file that is open, as PyArrow has it."""
    arrow, parquet = (require(m, f"reading {path}") for m in ("pyarrow", "pyarrow.parquet"))
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        contents = arrow.BufferReader(read_bytes(path)) if packed else os.fspath(path)
        with parquet.ParquetFile(contents, buffer_size=BUFFER) as table:
            yield table
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"not a readable Parquet file ({error})") from None


def read_parquet(path: PathName) -> Any:
    """The table of a Parquet file."""
    with parquet_file(path) as file:
        return _valid(file.read())


def parquet_blocks(path: PathName) -> Iterator[Any]:
    """The same as tables of some megabytes."""
    with parquet_file(path) as file:
        if not file.metadata.num_rows:
            yield _valid(file.read())
        size = max(1, BLOCK // (8 * max(1, len(file.schema_arrow))))
        for groups in _row_groups(file.metadata, size):
            for part in file.iter_batches(size, row_groups=groups):
                yield require("pyarrow", f"reading {path}").Table.from_batches([_valid(part)])


def parquet_pieces(file: Any, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Some of the columns for some of the rows, a few megabytes, each with its first row.

    All columns together would be held a page each, and a page can be a megabyte.
    """
    before = 0
    for groups in _row_groups(file.metadata, max(1, BLOCK // (8 * max(1, len(names))))):
        rows = sum(file.metadata.row_group(group).num_rows for group in groups)
        width = max(1, BLOCK // (8 * max(1, rows)))
        for first in range(0, len(names), width):
            wanted = list(names[first : first + width])
            yield before, _valid(file.read_row_groups(groups, wanted)).select(wanted)
        before += rows


def _valid(table: Any) -> Any:
    """The same; reading trusts what the file says about texts."""
    table.validate(full=True)
    return table


def _row_groups(metadata: Any, size: int) -> Iterator[list[int]]:
    """Row groups of about so many rows together: those that are read together are held together."""
    waiting, count = list[int](), 0
    for group in range(metadata.num_row_groups):
        waiting.append(group)
        count += metadata.row_group(group).num_rows
        if count >= size:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting


def opened(frame: Any) -> Any:
    """A dataframe of pandas, Polars, PyArrow or any other that narwhals knows, with some rows."""
    nw = require("narwhals", "reading a dataframe")
    try:
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        _ = table.columns
    except TypeError:
        raise DataError(f"expected a dataframe, found {type(frame).__name__}") from None
    except nw.exceptions.DuplicateError as error:
        raise DataError(" ".join(str(error).split())) from None
    if len(table) == 0:
        raise DataError("expected at least one row, found none")
    return table


def numbers(series: Any, before: int = 0) -> NDArray[Any]:
    """A column of finite numbers; so many rows stand before its first."""
    import narwhals as nw

    _check_no_null(series, "a number", before)
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        for row, value in enumerate(series.to_list(), before + 1):
            try:
                float(value)
            except (TypeError, ValueError):
                raise DataError(
                    f"expected a number, found {value!r} in row {row}", field=series.name
                ) from None
        raise DataError(f"expected a column of numbers, found {series.dtype}", field=series.name)
    if series.dtype not in (nw.Float32, nw.Float64):
        series = series.cast(nw.Float64)
    numbers: NDArray[Any] = series.to_numpy()
    if not np.isfinite(numbers).all():
        row = int(np.isfinite(numbers).argmin())
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


def texts(series: Any) -> list[str]:
    """A column of texts."""
    _check_no_null(series, "text")
    found = series.to_list()
    for row, value in enumerate(found, 1):
        if not isinstance(value, str):
            problem = f"expected a text, found {value!r:.40} in row {row}"
            raise DataError(problem, field=series.name)
    return list(found)


def _check_no_null(series: Any, expected: str, before: int = 0) -> None:
    if series.null_count():
        row = before + int(np.argmax(series.is_null().to_numpy())) + 1
        raise DataError(f"expected {expected}, found none in row {row}", field=series.name)
