"""Tables with a column per feature: CSV, TSV and Parquet files, and any dataframe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.data import Lists
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix, replace_when_done
from didyma.formats import delimited
from didyma.formats.frame import ids, numbers, opened, parquet_blocks, require
from didyma.formats.queries import collected
from didyma.formats.text import first_repeated
from didyma.matrix import Matrix

__all__ = [
    "TableRoles",
    "blocks",
    "column_names",
    "dense_rows",
    "from_frame",
    "read",
    "write",
    "write_parquet",
]

DELIMITERS = {".csv": ",", ".tsv": "\t"}


def read(
    path: PathName,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: Sequence[str] | None = None,
    judged: bool = True,
) -> Lists:
    """Read a ``.csv``, ``.tsv`` or ``.parquet`` file, also gzip; columns as in `from_frame`.

    Only Parquet needs an extra.
    """
    roles = TableRoles(label, qid, docid, features, judged)
    return collected(_blocks(path, roles))


def blocks(
    path: PathName,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: Sequence[str] | None = None,
    judged: bool = True,
) -> Iterator[Lists]:
    """The rows that `read` gives, some at a time, in constant memory."""
    return _blocks(path, TableRoles(label, qid, docid, features, judged))


def _blocks(path: PathName, roles: TableRoles) -> Iterator[Lists]:
    with placed(path):
        if (suffix := format_suffix(path)) == ".parquet":
            before = 0
            for frame in parquet_blocks(path):
                yield (part := _from_frame(frame, roles, before))
                before += len(part)
        else:
            yield from _delimited(path, DELIMITERS.get(suffix, ","), roles)


def from_frame(
    frame: Any,
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: Sequence[str] | None = None,
    judged: bool = True,
) -> Lists:
    """Judged results from a dataframe of pandas, Polars, PyArrow or any other that narwhals knows.

    Document ids come from a column named ``docid`` where there is one, features from all other
    columns, which must be numeric. Query and document ids become text. Without ``judged`` there
    need not be labels, and where there are none all are 0.

    >>> import polars
    >>> frame = polars.DataFrame({"label": [1, 0], "qid": ["a", "a"], "bm25": [2.5, 1.0]})
    >>> from_frame(frame).feature_names
    ('bm25',)
    """
    return _from_frame(frame, TableRoles(label, qid, docid, features, judged))


@dataclass(frozen=True)
class TableRoles:
    """What the caller says about columns; see `from_frame`."""

    label: str
    qid: str
    docid: str | None
    features: Sequence[str] | None
    judged: bool

    def among(self, names: Sequence[str]) -> _Columns:
        """The columns of a table with these names."""
        docid = "docid" if self.docid is None and "docid" in names else self.docid
        label = self.label if self.judged or self.label in names else None
        for name in (label, self.qid, docid):
            if name is not None and name not in names:
                raise DataError(f"no such column among {', '.join(names)}", field=name)
        taken = (label, self.qid, docid)
        features = self.features
        if features is None:
            features = [name for name in names if name not in taken]
        if missing := sorted(set(features) - set(names), key=list(features).index):
            raise DataError(f"expected also the features {', '.join(missing)}")
        if "" in features:
            raise DataError(f"column {list(names).index('') + 1} has no name", field="header")
        return _Columns(label, self.qid, docid, tuple(features))


class _Columns(NamedTuple):
    """The column of labels and of document ids, if there is one, of queries, and of features."""

    label: str | None
    qid: str
    docid: str | None
    features: tuple[str, ...]


def _from_frame(frame: Any, roles: TableRoles, before: int = 0) -> Lists:
    nw, table = require("narwhals", "reading a dataframe"), opened(frame)
    label, qid, docid, features = roles.among(table.columns)
    single = {table[name].dtype for name in features} == {nw.Float32}
    X = np.empty((len(table), len(features)), np.float32 if single else np.float64)
    for column, name in zip(X.T, features):
        column[:] = numbers(table[name], before)
    labels = np.zeros(len(table)) if label is None else numbers(table[label], before)
    return Lists(
        X,
        labels.astype(np.float64),
        ids(table[qid], before),
        None if docid is None else ids(table[docid], before),
        features,
    )


def _delimited(path: PathName, delimiter: str, roles: TableRoles) -> Iterator[Lists]:
    reader = delimited.DelimitedFile(path, delimiter)
    label, qid, docid, features = roles.among(reader.header)
    labels = [] if label is None else [label]
    ids = [qid] if docid is None else [qid, docid]
    for values, texts in reader.blocks([*labels, *features], ids):
        yield Lists(
            np.ascontiguousarray(values[:, len(labels) :]),
            values[:, 0].copy() if labels else np.zeros(len(values)),
            texts[0],
            None if docid is None else texts[1],
            features,
        )


def column_names(data: Lists, path: PathName) -> list[str]:
    """The names of the columns of a table: label, qid, docid if there are any, features."""
    first = 0 if data.zero_based else 1
    names = data.feature_names or tuple(f"f{first + k}" for k in range(data.X.shape[1]))
    header = ["label", "qid", *([] if data.docid is None else ["docid"]), *names]
    if (again := first_repeated(header)) is not None:
        raise DataError("expected columns with different names", path=path, field=again)
    return header


def _write_delimited(data: Lists, path: PathName, delimiter: str) -> None:
    header = column_names(data, path)
    ids = [data.qid.astype(str).tolist()]
    if data.docid is not None:
        ids.append(data.docid.astype(str).tolist())
    for field, texts in zip(("header", "qid", "docid"), (header, *ids)):
        if any("\r" in text for text in texts):  # which would read as the end of a line
            raise DataError("expected text without a carriage return", path=path, field=field)
    labels = (repr(label).removesuffix(".0") for label in data.y.tolist())
    rows = zip(labels, *ids, dense_rows(data.X))
    delimited.write(header, ([*texts, *values] for *texts, values in rows), path, delimiter)


def dense_rows(X: Matrix) -> Iterator[list[Any]]:
    """The numbers of each row."""
    for start in range(0, X.shape[0], delimited.BLOCK):
        block = X[start : start + delimited.BLOCK]
        yield from (block if isinstance(block, np.ndarray) else block.toarray()).tolist()


def write(data: Lists, path: PathName) -> None:
    """Write a ``.csv`` or ``.tsv`` (also ``.gz``) or ``.parquet`` file that `read` gives back."""
    if (suffix := format_suffix(path)) == ".parquet":
        write_parquet(data, path)
        return
    _write_delimited(data, path, DELIMITERS.get(suffix, ","))


def write_parquet(data: Lists, path: PathName) -> None:
    """Write label, qid, docid if there are any, and one column for each feature."""
    parquet = require("pyarrow.parquet", f"writing {path}")
    table = _arrow_table(data, path)
    with replace_when_done(path, "wb") as file:
        parquet.write_table(table, file)


def _arrow_table(data: Lists, path: PathName) -> Any:
    arrow = require("pyarrow", f"writing {path}")
    ids = [ids.astype(str) for ids in (data.qid, data.docid) if ids is not None]
    columns = (data.y, *ids, *_columns(data.X))
    names = column_names(data, path)
    return arrow.table({name: arrow.array(column) for name, column in zip(names, columns)})


def _columns(X: Matrix) -> Iterator[NDArray[Any]]:
    if isinstance(X, np.ndarray):
        yield from X.T
    else:
        by_column = X.tocsc()
        for k in range(X.shape[1]):
            yield by_column[:, [k]].toarray().ravel()
