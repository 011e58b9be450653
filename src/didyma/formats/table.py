"""Tables with a column per feature: CSV, TSV and Parquet files, and any dataframe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data import Matrix, RankingData
from didyma.errors import DataError, MissingExtraError
from didyma.files import PathName, format_suffix, read_bytes, replace_when_done
from didyma.formats.text import text_array

__all__ = ["from_frame", "read", "write", "write_parquet"]

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read(
    path: PathName,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: Sequence[str] | None = None,
    judged: bool = True,
) -> RankingData:
    """Read a ``.csv``, ``.tsv`` or ``.parquet`` file, also gzip; columns as in `from_frame`."""
    with _naming(path):
        if (suffix := format_suffix(path)) == ".parquet":
            table = _read_parquet(path)
        else:
            table = _read_csv(path, DELIMITERS.get(suffix, ","), [qid, docid or "docid"])
        return from_frame(
            table, label=label, qid=qid, docid=docid, features=features, judged=judged
        )


def from_frame(
    frame: Any,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: Sequence[str] | None = None,
    judged: bool = True,
) -> RankingData:
    """Judged results from a dataframe of pandas, Polars, PyArrow or any other that narwhals knows.

    Document ids come from a column named ``docid`` where there is one, features from all other
    columns, which must be numeric. Query and document ids become text. Without ``judged`` there
    need not be labels, and where there are none all are 0.

    >>> import polars
    >>> frame = polars.DataFrame({"label": [1, 0], "qid": ["a", "a"], "bm25": [2.5, 1.0]})
    >>> from_frame(frame).feature_names
    ('bm25',)
    """
    nw = _require("narwhals", "reading a dataframe")
    try:
        table = nw.from_native(frame)
        if isinstance(table, nw.LazyFrame):
            table = table.collect()
        names = table.columns
    except TypeError:
        raise DataError(f"expected a dataframe, found {type(frame).__name__}") from None
    except nw.exceptions.DuplicateError as error:
        raise DataError(" ".join(str(error).split())) from None
    if docid is None and "docid" in names:
        docid = "docid"
    has_label = judged or label in names
    roles = [name for name in (label if has_label else None, qid, docid) if name is not None]
    features = [n for n in names if n not in roles] if features is None else list(features)
    if missing := [name for name in features if name not in names]:
        raise DataError(f"expected also the features {', '.join(missing)}")
    for name in roles:
        if name not in names:
            raise DataError(f"no such column among {', '.join(names)}", field=name)
    if len(table) == 0:
        raise DataError("expected at least one row, found none")

    single = {table[name].dtype for name in features} == {nw.Float32}
    X = np.empty((len(table), len(features)), np.float32 if single else np.float64)
    for column, name in zip(X.T, features):
        column[:] = _numbers(table[name])
    return RankingData(
        X,
        _numbers(table[label]).astype(np.float64) if has_label else np.zeros(len(table)),
        _texts(table[qid]),
        None if docid is None else _texts(table[docid]),
        tuple(features),
    )


def write(data: RankingData, path: PathName) -> None:
    """Write a ``.csv`` or ``.tsv`` (also ``.gz``) or ``.parquet`` file that `read` gives back."""
    if (suffix := format_suffix(path)) == ".parquet":
        write_parquet(data, path)
        return
    csv = _require("pyarrow.csv", f"writing {path}")
    options = csv.WriteOptions(delimiter=DELIMITERS.get(suffix, ","))
    table = _arrow_table(data, path)
    with replace_when_done(path, "wb") as file:
        csv.write_csv(table, file, options)


def write_parquet(data: RankingData, path: PathName) -> None:
    """Write label, qid, docid if there are any, and one column for each feature."""
    parquet = _require("pyarrow.parquet", f"writing {path}")
    table = _arrow_table(data, path)
    with replace_when_done(path, "wb") as file:
        parquet.write_table(table, file)


def _require(module: str, purpose: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(purpose, "tables") from None


@contextmanager
def _naming(path: PathName) -> Iterator[None]:
    """Add the path to an error about the contents of a file."""
    try:
        yield
    except DataError as error:
        raise DataError(error.problem, path=path, line=error.line, field=error.field) from None


def _read_parquet(path: PathName) -> Any:
    arrow, parquet = (_require(m, f"reading {path}") for m in ("pyarrow", "pyarrow.parquet"))
    contents = arrow.BufferReader(read_bytes(path))
    try:
        return parquet.read_table(contents)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file ({error})") from None


def _read_csv(path: PathName, delimiter: str, texts: list[str]) -> Any:
    arrow, csv = (_require(m, f"reading {path}") for m in ("pyarrow", "pyarrow.csv"))
    contents = read_bytes(path)

    def parse(threads: bool) -> Any:
        return csv.read_csv(
            arrow.BufferReader(contents),
            csv.ReadOptions(use_threads=threads),
            csv.ParseOptions(delimiter=delimiter),
            csv.ConvertOptions(column_types=dict.fromkeys(texts, arrow.string())),
        )

    try:
        return parse(threads=True)
    except arrow.ArrowInvalid:
        try:
            return parse(threads=False)  # whose error names the row
        except arrow.ArrowInvalid as error:
            raise DataError(str(error)) from None


def _numbers(series: Any) -> NDArray[Any]:
    """A column of finite numbers."""
    import narwhals as nw

    _check_no_null(series, "a number")
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        for row, value in enumerate(series.to_list(), 1):
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
            f"expected a finite number, found {numbers[row]} in row {row + 1}", field=series.name
        )
    return numbers


def _texts(series: Any) -> NDArray[Any]:
    """A column of ids, which are text or whole numbers."""
    import narwhals as nw

    _check_no_null(series, "text")
    if series.dtype.is_float() or series.dtype.is_decimal() or series.dtype == nw.Boolean:
        raise DataError(f"expected text or integers, found {series.dtype}", field=series.name)
    return text_array([str(value) for value in series.to_list()])


def _check_no_null(series: Any, expected: str) -> None:
    if series.null_count():
        row = int(np.argmax(series.is_null().to_numpy())) + 1
        raise DataError(f"expected {expected}, found none in row {row}", field=series.name)


def _arrow_table(data: RankingData, path: PathName) -> Any:
    arrow = _require("pyarrow", f"writing {path}")
    first = 0 if data.zero_based else 1
    names = data.feature_names or tuple(f"f{first + k}" for k in range(data.X.shape[1]))
    columns = {"label": data.y, "qid": data.qid.astype(str)}
    if data.docid is not None:
        columns["docid"] = data.docid.astype(str)
    for name, column in zip(names, _columns(data.X)):
        if name in columns:
            raise DataError("expected columns with different names", path=path, field=name)
        columns[name] = column
    return arrow.table({name: arrow.array(column) for name, column in columns.items()})


def _columns(X: Matrix) -> Iterator[NDArray[Any]]:
    if isinstance(X, np.ndarray):
        yield from X.T
    else:
        by_column = X.tocsc()
        for k in range(X.shape[1]):
            yield by_column[:, [k]].toarray().ravel()
