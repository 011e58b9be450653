"""Columns of data frames, whatever library they are of."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.text_columns import text_array
from didyma.errors import DataError, MissingExtraError
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
