"""Texts by id: lines of an id, a tab and a text, or JSON lines of objects with both."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from didyma.data.column_roles import known_as
from didyma.data.delimited import tab_separated
from didyma.data.json_lines import objects
from didyma.data.passage import Passage
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix

__all__ = ["read"]


def read(path: PathName, wanted: Container[str] | None = None) -> dict[str, str]:
    """The text of each id, in the order of the file, or only of those that are wanted.

    Objects are as `Passage` reads them: BEIR has ``_id``, ``title`` and ``text``. Queries are
    texts too.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "queries.tsv")
    >>> _ = path.write_text("7\\twho wrote Emma?\\n")
    >>> read(path)
    {'7': 'who wrote Emma?'}
    """
    rows = _objects(path) if format_suffix(path) in (".jsonl", ".json") else _lines(path)
    texts: dict[str, str] = {}
    empty = True
    for line, name, text in rows:
        empty = False
        if wanted is not None and name not in wanted:
            continue
        if name in texts:
            problem = f"expected each id once, found {name!r:.40} again"
            raise DataError(problem, path=path, line=line, field="id")
        texts[name] = text
    if empty:
        raise DataError("expected ids and texts, found none", path=path)
    return texts


def _lines(path: PathName) -> Iterator[tuple[int, str, str]]:
    for number, (name, text) in tab_separated(path, ("id", "text")):
        yield number, name.strip(), text


def _objects(path: PathName) -> Iterator[tuple[int, str, str]]:
    for number, record in objects(path):
        with placed(path, number):
            passage = Passage.of(_as_passage(record))
        if passage.id is None:
            raise DataError("expected an id, found none", path=path, line=number, field="id")
        yield number, str(passage.id), passage.text


def _as_passage(record: dict[str, Any]) -> dict[str, Any]:
    """The same where the text is a query, and the id that of a query."""
    query = known_as("query", record)
    if query is None or known_as("passage", record) is not None:
        return record
    name = known_as("qid", record, ("id", "_id"))
    return {"text": record[query], "id": None if name is None else record[name]}
