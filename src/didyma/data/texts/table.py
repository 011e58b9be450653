"""Tables of texts, a row for each pair of query and passage: CSV, TSV, Parquet, data frames.

A header names the columns: ``query`` and ``passage`` there must be, ``label``, ``score`` (of the
first stage), ``qid``, ``docid`` and ``query_vector`` there may be; see `didyma.data.column_roles`.
All others are texts, signals, categories or a vector (`didyma.data.Schema`); in text files a vector
is written as JSON, [0.5, 1].
MS MARCO's ``triples`` have no header: query, a relevant passage and another.
In TSV a quote is a sign as any other, as in all collections that are distributed so; in CSV fields
may be quoted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from didyma.data import delimited, frame
from didyma.data.column_roles import Roles
from didyma.data.json_lines import parse_json
from didyma.data.lists import Lists
from didyma.data.schema import FieldChoice
from didyma.data.texts.json_lines import QUERY_VECTORS, TAKEN
from didyma.data.texts.rows import TextRows
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix

NUMBERS = ("label", "score")
QUERY_VECTOR = "query_vector"
TRIPLE = ("query", "positive", "negative")


def read(path: PathName, roles: Roles | None = None, choice: FieldChoice | None = None) -> Lists:
    """Read a ``.csv``, ``.tsv`` or ``.parquet`` file, also gzip. Only Parquet needs an extra."""
    suffix = format_suffix(path)
    if suffix == ".parquet":
        with placed(path):
            return _from_frame(frame.read_parquet(path), roles, path, choice)
    tabs = suffix != ".csv"

    def opened() -> delimited.DelimitedFile:
        return delimited.DelimitedFile(path, "\t" if tabs else ",", quoted=not tabs)

    reader = opened()
    with placed(path, 1):
        names = _among(roles, reader.header, choice)
    numeric = [role for role in names if role in NUMBERS]
    textual = [role for role in names if role not in NUMBERS]
    others = _others(names, reader.header)
    values, texts = reader.columns(
        [names[r] for r in numeric], [*(names[r] for r in textual), *others]
    )
    columns = {role: values[:, k].tolist() for k, role in enumerate(numeric)}
    columns |= {role: column.tolist() for role, column in zip(textual, texts)}
    further = {
        name: _lists_in(column.tolist()) for name, column in zip(others, texts[len(textual) :])
    }
    if QUERY_VECTOR in columns:
        columns[QUERY_VECTOR] = _lists_in(columns[QUERY_VECTOR])

    def line_of(row: int) -> int:
        return next(islice((line for line, _ in opened().rows()), row - 1, None))

    return _lists(columns, further, names, path, choice, line_of)


def from_frame(data: Any, roles: Roles | None = None, choice: FieldChoice | None = None) -> Lists:
    """The same of a data frame of pandas, Polars, PyArrow or any other that narwhals knows.

    >>> import polars
    >>> table = {"query": ["who?", "who?"], "passage": ["Jane Austen.", "Late."], "label": [1, 0]}
    >>> from_frame(polars.DataFrame(table))
    Lists(2 rows of str, 1 queries)
    """
    return _from_frame(data, roles, None, choice)


def _from_frame(
    data: Any, roles: Roles | None, path: PathName | None, choice: FieldChoice | None
) -> Lists:
    table = frame.opened(data)
    columns: dict[str, list[Any]] = {}
    names = _among(roles, table.columns, choice)
    for role, name in names.items():
        if role in NUMBERS:
            columns[role] = frame.numbers(table[name]).tolist()
        elif role in ("qid", "docid"):
            columns[role] = frame.ids(table[name]).tolist()
        elif role == QUERY_VECTOR:
            columns[role] = table[name].to_list()
        else:
            columns[role] = frame.texts(table[name])
    further = {name: table[name].to_list() for name in _others(names, table.columns)}
    return _lists(columns, further, names, path, choice)


def _among(roles: Roles | None, header: list[str], choice: FieldChoice | None) -> dict[str, str]:
    names = (roles or Roles()).among(header)
    chosen = () if choice is None else (*choice.fields, *choice.signals, *choice.ignore)
    given = (roles or Roles()).given
    names = {
        role: name
        for role, name in names.items()
        if name not in chosen or role in given or role in ("query", "passage")
    }
    texts = () if choice is None else choice.texts
    for role in ("query", "passage"):
        if role not in names and not (role == "passage" and set(texts) & set(header)):
            problem = f"expected a column {role!r} among {', '.join(map(repr, header))}"
            raise DataError(problem)
    if (vector := next((name for name in header if name in QUERY_VECTORS), None)) is not None:
        names[QUERY_VECTOR] = vector
    return names


def _others(names: Mapping[str, str], header: Sequence[str]) -> list[str]:
    return [name for name in header if name not in names.values()]


def _lists_in(column: list[str]) -> list[Any]:
    """Lists of a column that has nothing else, as JSON writes them; else the texts."""
    words = [text.strip() for text in column]
    if not any(words) or not all(not w or (w[0] == "[" and w[-1] == "]") for w in words):
        return list(column)
    try:
        return [parse_json(word) if word else None for word in words]
    except ValueError:
        return list(column)


def _lists(
    columns: dict[str, list[Any]],
    further: dict[str, list[Any]],
    names: Mapping[str, str],
    path: PathName | None,
    choice: FieldChoice | None,
    line_of: Callable[[int], int] | None = None,
) -> Lists:
    given = {"passage": names["passage"]} if "passage" in names else {}
    rows = TextRows(path, "row", choice, given, line_of)
    taken = {names[role]: column for role, column in TAKEN.items() if role in names}
    for number, values in enumerate(zip(*columns.values()), 1):
        row = dict(zip(columns, values))
        if further:
            document = {name: column[number - 1] for name, column in further.items()}
            if given:
                document[names["passage"]] = row["passage"]
            row |= {"passage": row.get("passage", ""), "document": document, "taken": taken}
        rows.add(number, **row)
    return rows.lists()


def read_triples(path: PathName) -> Lists:
    """Lists of the passages that stand beside each query, labelled 1 or 0.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "triples.tsv")
    >>> _ = path.write_text("who?\\tJane.\\tNo.\\nwho?\\tJane.\\tLate.\\n")
    >>> lists = read_triples(path)
    >>> lists.items, lists.labels.tolist()
    (['Jane.', 'No.', 'Late.'], [1.0, 0.0, 0.0])
    """
    rows = TextRows(path)
    for number, (query, positive, negative) in delimited.tab_separated(path, TRIPLE):
        rows.add_once(number, query, positive, label=1.0)
        rows.add_once(number, query, negative, label=0.0)
    return rows.lists()
