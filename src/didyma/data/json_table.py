"""Rows of features as JSON lines: an object a line, whose fields are the columns of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from didyma.data.json_lines import number_of, objects
from didyma.data.lists import Lists
from didyma.data.row_blocks import collect
from didyma.data.table import TableOptions, dense_rows, id_columns, named_columns
from didyma.data.text_columns import text_array
from didyma.errors import DataError, placed
from didyma.files import PathName, replace_when_done
from didyma.values import is_whole

BLOCK = 4096  # rows that are held as objects


def read(path: PathName, **options: Any) -> Lists:
    """Read JSON lines, plain or gzip, with `didyma.data.table.TableOptions` for the fields.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = path.write_text('{"label": 1, "qid": "a", "bm25": 2.5, "age": 3}\\n')
    >>> read(path).X.tolist()
    [[2.5, 3.0]]
    """
    return collect(blocks(path, **options))


def blocks(path: PathName, **options: Any) -> Iterator[Lists]:
    """The rows that `read` gives, some at a time, in constant memory."""
    rows = objects(path)
    block = list(islice(rows, BLOCK))
    if not block:
        raise DataError("expected at least one row, found none", path=path)
    names = list(block[0][1])
    with placed(path, block[0][0]):
        layout = TableOptions(**options).among(names)
    numeric, textual = layout.numeric, layout.textual
    while block:
        values, texts = [], []
        for line, row in block:
            with placed(path, line):
                _check_fields(row, names)
                values.append([number_of(row[name], name) for name in numeric])
                texts.append([_id(row[name], name) for name in textual])
        numbers = np.array(values, np.float64).reshape(len(block), len(numeric))
        yield layout.lists(numbers, [text_array(column) for column in zip(*texts)])
        block = list(islice(rows, BLOCK))


def _check_fields(row: dict[str, Any], names: list[str]) -> None:
    for name in names:
        if name not in row:
            raise DataError("expected one, as the first line has it", field=name)
    if len(row) > len(names):
        name = next(name for name in row if name not in names)
        raise DataError("expected none, as the first line has none", field=name)


def _id(value: Any, field: str) -> str:
    if isinstance(value, str) or is_whole(value):
        return str(value)
    raise DataError(f"expected text or an integer, found {value!r:.40}", field=field)


def write(data: Lists, path: PathName) -> None:
    """Write JSON lines that `read` gives back."""
    write_blocks([data], path)


def write_blocks(parts: Iterable[Lists], path: PathName) -> None:
    """The same of rows that come some at a time."""
    with replace_when_done(path) as file:
        for names, part in named_columns(parts, path):
            ids = [column.astype(str).tolist() for column in id_columns(part)]
            for label, *texts, values in zip(part.y.tolist(), *ids, dense_rows(part.X)):
                row = dict(zip(names, [label, *texts, *values]))
                file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
