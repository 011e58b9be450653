"""Tables with a column per feature: CSV, TSV, Parquet and JSON lines, and any dataframe.

Of JSON lines each is an object, whose fields are the columns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.data import delimited
from didyma.data.categories import (
    Numbering,
    TextFoundError,
    Vocabularies,
    as_text,
    is_missing,
    number_in,
    or_none,
    settled,
)
from didyma.data.frame import (
    ids,
    is_numeric,
    numbers,
    open_parquet,
    opened,
    parquet_blocks,
    queries,
    require,
)
from didyma.data.json_lines import number_of, objects
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix, dense
from didyma.data.passage import id_of
from didyma.data.row_blocks import collect, rebatch
from didyma.data.text_columns import check_distinct, first_repeated, text_array
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix, replace_when_done

__all__ = [
    *("TableLayout", "TableOptions", "blocks", "from_frame", "read", "write", "write_blocks"),
]

GROUP = 1 << 22  # numbers in a row group of a Parquet file, which a reader takes as a whole
DELIMITERS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class TableOptions:
    """Which columns of a table, or fields of objects, are what.

    Parameters
    ----------
    label, qid : str
        Columns of grades and of query ids.
    docid : str, optional
        Column of document ids; by default ``docid`` where there is one.
    features : list of str, optional
        Columns of the matrix, in this order; by default all others, which must be numeric.
    categorical : list of str, or mapping from str to list of str
        Those of them that may hold texts, which are categories: the matrix has their codes, the
        vocabularies are ``categories`` of the `Lists`. A mapping has the vocabulary of each. A text
        that is blank, or null, is a missing value.
    missing : bool
        Whether other features may be missing, too: fields that are blank, NULL or NaN, and null.
    judged : bool
        Whether there must be labels. Where there are none, all are 0.
    """

    label: str = "label"
    qid: str = "qid"
    docid: str | None = None
    features: Sequence[str] | None = None
    categorical: Sequence[str] | Mapping[str, Sequence[str]] = ()
    missing: bool = False
    judged: bool = True

    @property
    def vocabularies(self) -> dict[str, Sequence[str] | None]:
        """The vocabulary of each categorical column, None if it is to be learned."""
        if isinstance(self.categorical, Mapping):
            return {**self.categorical}
        return dict.fromkeys(self.categorical)

    def among(self, names: Sequence[str]) -> TableLayout:
        """The columns of a table with these names."""
        label: str | None = self.label
        if not self.judged and (label not in names or label in (self.features or ())):
            label = None
        docid = self.docid
        if docid is None and "docid" in names and "docid" not in (label, self.qid):
            docid = "docid"
        taken = [name for name in (label, self.qid, docid) if name is not None]
        for name in taken:
            if name not in names:
                raise DataError(f"no such column among {', '.join(names)}", field=name)
        features = self.features
        if features is None:
            features = [name for name in names if name not in taken]
        if missing := sorted(set(features) - set(names), key=list(features).index):
            raise DataError(f"expected also the features {', '.join(missing)}")
        if (again := first_repeated([*taken, *features])) is not None:
            problem = "expected a column that is one of label, query, document and feature"
            raise DataError(problem, field=again)
        if "" in features:
            raise DataError(f"column {list(names).index('') + 1} has no name", field="header")
        for name in self.vocabularies:
            if name not in features:
                raise DataError(f"there is no feature {name!r}", field="categorical")
        numberings = {name: Numbering(name, texts) for name, texts in self.vocabularies.items()}
        return TableLayout(label, self.qid, docid, tuple(features), numberings, self)

    @contextmanager
    def explaining_texts(self) -> Iterator[None]:
        """Add what to do about a text among the features to the error about it."""
        try:
            yield
        except TextFoundError as error:
            problem, line, name = error.problem, error.line, error.field
            if self.features is None and name != self.label:
                problem += (
                    f"; texts can be categories of an additive ranker (categorical=[{name!r}], or "
                    f"didyma fit --bins 32 --categorical {name}), but not on a cluster"
                )
            raise DataError(problem, path=error.path, line=line, field=name) from None


class TableLayout(NamedTuple):
    """The columns of labels and of document ids, if there are any, of queries and of features.

    ``numberings`` are those of features that are categories.
    """

    label: str | None
    qid: str
    docid: str | None
    features: tuple[str, ...]
    numberings: dict[str, Numbering]
    options: TableOptions

    @property
    def optional(self) -> Collection[str]:
        """Columns of numbers that may be missing: a set, as each field is asked for."""
        return frozenset(self.features if self.options.missing else ())

    @property
    def numeric(self) -> list[str]:
        """Columns of numbers: the labels, if there are any, and features."""
        numbers = (name for name in self.features if name not in self.numberings)
        return [*([] if self.label is None else [self.label]), *numbers]

    @property
    def ids(self) -> list[str]:
        """Columns of ids: queries, and documents if these have any."""
        return [self.qid] if self.docid is None else [self.qid, self.docid]

    @property
    def textual(self) -> list[str]:
        """Columns of ids, and of categories."""
        return [*self.ids, *self.numberings]

    @property
    def categories(self) -> Vocabularies | None:
        """The vocabularies of the features, as far as rows have been read."""
        texts = {name: numbering.vocabulary for name, numbering in self.numberings.items()}
        return or_none(texts.get(name) or None for name in self.features)

    def lists(self, numbers: NDArray[np.float64], texts: Sequence[NDArray[Any]]) -> Lists:
        """Rows of the `numeric` and of the `textual` columns."""
        first = 0 if self.label is None else 1
        X = np.ascontiguousarray(numbers[:, first:])
        if self.numberings:
            columns = dict(zip(self.numeric[first:], X.T))
            for numbering, column in zip(self.numberings.values(), texts[len(self.ids) :]):
                columns[numbering.name] = numbering.codes(column.tolist())
            X = np.stack([columns[name] for name in self.features], axis=1)
        return Lists(
            X,
            numbers[:, 0].copy() if first else np.zeros(len(numbers)),
            texts[0],
            None if self.docid is None else texts[1],
            self.features,
            categories=self.categories,
        )

    @property
    def takes_texts(self) -> bool:
        """Whether numbers may be texts: those of columns that were categories in training may."""
        return self.options.features is not None

    def number(self, value: Any, name: str) -> float:
        """The value of a field of JSON that holds a number."""
        if name != self.label and self.options.missing and is_missing(value):
            return math.nan
        if name != self.label and self.takes_texts and isinstance(value, str):
            value = value if math.isnan(number_in(value)) else number_in(value)
        return number_of(value, name)

    def feature(self, series: Any, before: int) -> NDArray[Any]:
        """A column of features of a dataframe, before whose first row stand so many."""
        numbering = self.numberings.get(series.name)
        if numbering is None:
            return numbers(series, before, missing=self.options.missing, texts=self.takes_texts)
        if numbering.learns and is_numeric(series):
            return numbers(series, before, missing=True)
        return numbering.codes(series.to_list())


def read(path: PathName, **options: Any) -> Lists:
    """Read a ``.csv``, ``.tsv``, ``.jsonl`` or ``.parquet`` file, also gzip, with `TableOptions`.

    Only Parquet needs an extra. Categories are in the order of the alphabet, unless they are given.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = path.write_text('{"label": 1, "qid": "a", "bm25": 2.5, "age": 3}\\n')
    >>> read(path).X.tolist()
    [[2.5, 3.0]]
    """
    columns = TableOptions(**options)
    if format_suffix(path) == ".parquet":
        with columns.explaining_texts(), placed(path):
            data = _read_parquet(path, columns)
    else:
        data = collect(blocks(path, **options))
    return data if isinstance(columns.categorical, Mapping) else settled(data)


def blocks(path: PathName, **options: Any) -> Iterator[Lists]:
    """The rows that `read` gives, some at a time, in constant memory.

    Categories are numbered as they come, unless they are given.
    """
    columns = TableOptions(**options)
    with columns.explaining_texts(), placed(path):
        if (suffix := format_suffix(path)) == ".parquet":
            before, layout = 0, None
            for frame in map(opened, parquet_blocks(path)):
                layout = layout or columns.among(frame.columns)
                yield (part := _from_frame(frame, layout, before))
                before += len(part)
        elif suffix == ".jsonl":
            yield from _json_blocks(path, columns)
        else:
            reader = delimited.DelimitedFile(path, DELIMITERS.get(suffix, ","))
            layout = columns.among(reader.header)
            names = layout.numeric, layout.textual, layout.optional, (layout.qid,)
            for values, texts in reader.blocks(*names):
                yield layout.lists(values, texts)


def _json_blocks(path: PathName, options: TableOptions) -> Iterator[Lists]:
    rows = objects(path)
    block = list(islice(rows, delimited.BLOCK))
    if not block:
        raise DataError("expected at least one row, found none")
    names = list(block[0][1])
    with placed(path, block[0][0]):
        layout = options.among(names)
    while block:
        values, ids = [], []
        for line, row in block:
            with placed(path, line):
                _check_fields(row, names)
                values.append([layout.number(row[name], name) for name in layout.numeric])
                ids.append([id_of(row[name], name) for name in layout.ids])
                if not ids[-1][0]:
                    raise DataError("expected text, found none", field=layout.qid)
                ids[-1] += [_category_of(row[name], name) for name in layout.numberings]
        numbers = np.array(values, np.float64).reshape(len(block), -1)
        yield layout.lists(numbers, [text_array(column) for column in zip(*ids)])
        block = list(islice(rows, delimited.BLOCK))


def _category_of(value: Any, name: str) -> str:
    """A category of JSON as text: a text, a finite number, or null."""
    if value is None or isinstance(value, str):
        return value or ""
    number_of(value, name)
    return as_text(value)


def _check_fields(row: dict[str, Any], names: list[str]) -> None:
    for name in names:
        if name not in row:
            raise DataError("expected one, as the first line has it", field=name)
    if len(row) > len(names):
        name = next(name for name in row if name not in names)
        raise DataError("expected none, as the first line has none", field=name)


def from_frame(frame: Any, **options: Any) -> Lists:
    """Judged results from a dataframe of pandas, Polars, PyArrow or any other that narwhals knows.

    ``options`` are the fields of `TableOptions`. Query and document ids become text.

    >>> import polars
    >>> frame = polars.DataFrame({"label": [1, 0], "qid": ["a", "a"], "bm25": [2.5, 1.0]})
    >>> from_frame(frame).feature_names
    ('bm25',)
    """
    columns, table = TableOptions(**options), opened(frame)
    with columns.explaining_texts():
        data = _from_frame(table, columns.among(table.columns))
    return data if isinstance(columns.categorical, Mapping) else settled(data)


def _read_parquet(path: PathName, options: TableOptions) -> Lists:
    """All rows of a file, column by column straight into the matrix."""
    with open_parquet(path) as file:
        schema, n_rows = file.schema, file.metadata.num_rows
        if not n_rows:
            raise DataError("expected at least one row, found none")
        layout = options.among(schema.names)
        label, qid, docid, features = layout[:4]
        single = {str(schema.field(name).type) for name in features} == {"float"}
        X = np.empty((n_rows, len(features)), np.float32 if single else np.float64)
        places, labels = dict(zip(features, X.T)), np.zeros(n_rows)
        texts: dict[str, list[NDArray[Any]]] = {name: [] for name in layout.ids}
        wanted = dict.fromkeys([*([] if label is None else [label]), *features, *texts])
        for before, piece in file.pieces([*wanted]):
            part = opened(piece)
            rows = slice(before, before + len(part))
            for name in part.columns:
                if name in texts:
                    read_ids = queries if name == qid else ids
                    texts[name].append(read_ids(part[name], before))
                if name == label:
                    labels[rows] = numbers(part[name], before)
                if name in places:
                    places[name][rows] = layout.feature(part[name], before)
        named = {name: np.concatenate(parts) for name, parts in texts.items()}
        documents = None if docid is None else named[docid]
        return Lists(X, labels, named[qid], documents, features, categories=layout.categories)


def _from_frame(table: Any, layout: TableLayout, before: int = 0) -> Lists:
    nw = require("narwhals", "reading a dataframe")
    label, qid, docid, features = layout[:4]
    single = {table[name].dtype for name in features} == {nw.Float32}
    X = np.empty((len(table), len(features)), np.float32 if single else np.float64)
    for column, name in zip(X.T, features):
        column[:] = layout.feature(table[name], before)
    labels = np.zeros(len(table)) if label is None else numbers(table[label], before)
    return Lists(
        X,
        labels.astype(np.float64),
        queries(table[qid], before),
        None if docid is None else ids(table[docid], before),
        features,
        categories=layout.categories,
    )


def _named_columns(parts: Iterable[Lists], path: PathName) -> Iterator[tuple[list[str], Lists]]:
    """Rows that come some at a time, each with the names of the columns of all.

    These are label, qid, docid if there are any, and the features.
    """
    header = list[str]()
    for part in parts:
        if not header:
            base = 0 if part.zero_based else 1
            names = part.feature_names or tuple(f"f{base + k}" for k in range(part.X.shape[1]))
            header = ["label", "qid", *([] if part.docid is None else ["docid"]), *names]
            check_distinct(header, path=path)
        yield header, part


def _id_columns(data: Lists) -> list[NDArray[Any]]:
    """Query ids, and document ids if there are any."""
    return [column for column in (data.qid, data.docid) if column is not None]


def _dense_rows(X: Matrix) -> Iterator[list[Any]]:
    """The numbers of each row."""
    for start in range(0, X.shape[0], delimited.BLOCK):
        block = X[start : start + delimited.BLOCK]
        yield from dense(block).tolist()


def write(data: Lists, path: PathName) -> None:
    """Write a ``.csv``, ``.tsv``, ``.jsonl`` (also ``.gz``) or ``.parquet`` file for `read`."""
    write_blocks([data], path)


def write_blocks(parts: Iterable[Lists], path: PathName) -> None:
    """The same of rows that come some at a time."""
    if (suffix := format_suffix(path)) == ".parquet":
        _write_parquet(parts, path)
    elif suffix == ".jsonl":
        _write_json(parts, path)
    else:
        lines = _lines(_named_columns(parts, path), path)
        delimited.write(lines, path, DELIMITERS.get(suffix, ","))


def _lines(parts: Iterable[tuple[list[str], Lists]], path: PathName) -> Iterator[list[Any]]:
    """The header, then the fields of each row."""
    for number, (header, part) in enumerate(parts):
        ids = [column.astype(str).tolist() for column in _id_columns(part)]
        for field, texts in zip(("header", "qid", "docid"), (header, *ids)):
            if any("\r" in text for text in texts):  # which would read as the end of a line
                raise DataError("expected text without a carriage return", path=path, field=field)
        if number == 0:
            yield header
        labels = (repr(label).removesuffix(".0") for label in part.y.tolist())
        for *texts, values in zip(labels, *ids, _dense_rows(part.X)):
            yield [*texts, *values]


def _write_json(parts: Iterable[Lists], path: PathName) -> None:
    with replace_when_done(path) as file:
        for names, part in _named_columns(parts, path):
            ids = [column.astype(str).tolist() for column in _id_columns(part)]
            for label, *texts, values in zip(part.y.tolist(), *ids, _dense_rows(part.X)):
                known = (None if math.isnan(value) else value for value in values)
                row = dict(zip(names, [label, *texts, *known]))
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def _write_parquet(parts: Iterable[Lists], path: PathName) -> None:
    """Write label, qid, docid if there are any, and one column for each feature."""
    arrow, writers = (require(m, f"writing {path}") for m in ("pyarrow", "pyarrow.parquet"))
    parts = iter(parts)
    if (first := next(parts, None)) is None:
        raise DataError("expected at least one row, found none", path=path)
    size = max(1, GROUP // max(1, first.X.shape[1]))
    with ExitStack() as stack:
        target, file = stack.enter_context(replace_when_done(path, "wb")), None
        for header, part in _named_columns(rebatch(size, chain([first], parts)), path):
            ids = (column.astype(str) for column in _id_columns(part))
            columns = (part.y, *ids, *_columns(part.X))
            table = arrow.table({n: arrow.array(c) for n, c in zip(header, columns)})
            if file is None:
                file = stack.enter_context(writers.ParquetWriter(target, table.schema))
            file.write_table(table)


def _columns(X: Matrix) -> Iterator[NDArray[Any]]:
    if isinstance(X, np.ndarray):
        yield from X.T
    else:
        by_column = X.tocsc()
        for k in range(X.shape[1]):
            yield by_column[:, [k]].toarray().ravel()
