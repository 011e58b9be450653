"""Tables of texts, a row for each pair of query and passage: CSV, TSV, Parquet, data frames.

A header names the columns: ``query`` and ``passage`` there must be, ``label``, ``score`` (of the
first stage), ``qid`` and ``docid`` there may be; see `didyma.data.column_roles`.
In TSV a quote is a sign as any other, as in all collections that are distributed so; in CSV fields
may be quoted.
"""

from __future__ import annotations

from typing import Any

from didyma.data import delimited, frame, parquet
from didyma.data.column_roles import Roles
from didyma.data.lists import Lists
from didyma.data.texts.rows import TextRows
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix

__all__ = ["from_frame", "read"]

NUMBERS = ("label", "score")


def read(path: PathName, roles: Roles | None = None) -> Lists:
    """Read a ``.csv``, ``.tsv`` or ``.parquet`` file, also gzip. Only Parquet needs an extra."""
    suffix = format_suffix(path)
    if suffix == ".parquet":
        with placed(path):
            return _from_frame(parquet.read(path), roles, path)
    tabs = suffix != ".csv"
    reader = delimited.DelimitedFile(path, "\t" if tabs else ",", quoted=not tabs)
    with placed(path, 1):
        names = _among(roles, reader.header)
    numeric = [role for role in names if role in NUMBERS]
    textual = [role for role in names if role not in NUMBERS]
    values, texts = reader.columns([names[r] for r in numeric], [names[r] for r in textual])
    columns = {role: values[:, k].tolist() for k, role in enumerate(numeric)}
    columns |= {role: column.tolist() for role, column in zip(textual, texts)}
    return _lists(columns, path)


def from_frame(data: Any, roles: Roles | None = None) -> Lists:
    """The same of a data frame of pandas, Polars, PyArrow or any other that narwhals knows.

    >>> import polars
    >>> table = {"query": ["who?", "who?"], "passage": ["Jane Austen.", "Late."], "label": [1, 0]}
    >>> from_frame(polars.DataFrame(table))
    Lists(2 rows of str, 1 queries)
    """
    return _from_frame(data, roles, None)


def _from_frame(data: Any, roles: Roles | None, path: PathName | None) -> Lists:
    table = frame.opened(data)
    columns: dict[str, list[Any]] = {}
    for role, name in _among(roles, table.columns).items():
        if role in NUMBERS:
            columns[role] = frame.numbers(table[name]).tolist()
        elif role in ("qid", "docid"):
            columns[role] = frame.ids(table[name]).tolist()
        else:
            columns[role] = frame.texts(table[name])
    return _lists(columns, path)


def _among(roles: Roles | None, header: list[str]) -> dict[str, str]:
    names = (roles or Roles()).among(header)
    for role in ("query", "passage"):
        if role not in names:
            problem = f"expected a column {role!r} among {', '.join(map(repr, header))}"
            raise DataError(problem)
    return names


def _lists(columns: dict[str, list[Any]], path: PathName | None) -> Lists:
    rows = TextRows(path, "row")
    for number, values in enumerate(zip(*columns.values()), 1):
        rows.add(number, **dict(zip(columns, values)))
    return rows.lists()
