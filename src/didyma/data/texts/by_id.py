"""Texts by id: lines of an id, a tab and a text, or JSON lines of objects with both.

MS MARCO's ``top1000`` has the texts of queries and of their candidates: lines of qid, docid, query
and passage, with tabs between them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from didyma.data.column_roles import known_as
from didyma.data.delimited import tab_separated
from didyma.data.json_lines import objects
from didyma.data.passage import Passage
from didyma.data.text_columns import text_array
from didyma.data.trec import Run
from didyma.errors import DataError, placed
from didyma.files import PathName, format_suffix, stream_lines

__all__ = ["has_texts", "read", "read_passages", "read_top"]

TOP = ("qid", "docid", "query", "passage")


def read(path: PathName, wanted: Container[str] | None = None) -> dict[str, str]:
    """The text of each id, in the order of the file, or only of those that are wanted.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "queries.tsv")
    >>> _ = path.write_text("7\\twho wrote Emma?\\n")
    >>> read(path)
    {'7': 'who wrote Emma?'}
    """
    return {name: passage.text for name, passage in read_passages(path, wanted).items()}


def read_passages(
    path: PathName, wanted: Container[str] | None = None, fields: Collection[str] = ()
) -> dict[str, Passage]:
    """The same with all other fields of objects, which are as `Passage` reads them.

    BEIR has ``_id``, ``title`` and ``text``. Queries are passages, too. ``fields`` are names of
    texts where none is known as the text.
    """
    is_json = format_suffix(path) in (".jsonl", ".json")
    rows = _objects(path, fields) if is_json else _lines(path)
    texts: dict[str, Passage] = {}
    empty = True
    for line, name, passage in rows:
        empty = False
        if wanted is not None and name not in wanted:
            continue
        if name in texts:
            problem = f"expected each id once, found {name!r:.40} again"
            raise DataError(problem, path=path, line=line, field="id")
        texts[name] = passage
    if empty:
        raise DataError("expected ids and texts, found none", path=path)
    return texts


def _lines(path: PathName) -> Iterator[tuple[int, str, Passage]]:
    for number, (name, text) in tab_separated(path, ("id", "text")):
        yield number, name.strip(), Passage(text, name.strip(), {})


def _objects(path: PathName, fields: Collection[str]) -> Iterator[tuple[int, str, Passage]]:
    for number, record in objects(path):
        with placed(path, number):
            passage = Passage.of(_as_passage(record), texts=fields)
        if passage.id is None:
            raise DataError("expected an id, found none", path=path, line=number, field="id")
        yield number, str(passage.id), passage


def _as_passage(record: dict[str, Any]) -> dict[str, Any]:
    """The same where the text is a query, and the id that of a query."""
    query = known_as("query", record)
    if query is None or known_as("passage", record) is not None:
        return record
    name = known_as("qid", record, ("id", "_id"))
    rest = {key: value for key, value in record.items() if key not in (query, name)}
    return {**rest, "text": record[query], "id": None if name is None else record[name]}


def has_texts(path: PathName) -> bool:
    """Whether candidates stand there with their texts: four fields, the last of several words."""
    line = next((line for line in stream_lines(path) if line.strip()), b"")
    fields = line.split(b"\t")
    return len(fields) == len(TOP) and b" " in fields[3].strip()


def read_top(path: PathName) -> tuple[dict[str, str], dict[str, str], Run]:
    """Queries and passages by id, and candidates, whose scores are not known: all are 0."""
    queries: dict[str, str] = {}
    passages: dict[str, str] = {}
    pairs: dict[tuple[str, str], None] = {}
    for number, (qid, docid, query, passage) in tab_separated(path, TOP):
        for field, texts, name, text in (
            ("query", queries, qid, query),
            ("passage", passages, docid, passage),
        ):
            if texts.setdefault(name, text) != text:
                problem = f"expected the text that {name!r:.40} had before"
                raise DataError(problem, path=path, line=number, field=field)
        if (qid, docid) in pairs:
            problem = f"expected each passage once a query, found {docid!r:.40} again"
            raise DataError(problem, path=path, line=number, field="docid")
        pairs[qid, docid] = None
    if not pairs:
        raise DataError(f"expected lines of {', '.join(TOP)}, found none", path=path)
    qids, docids = (text_array([pair[k] for pair in pairs]) for k in (0, 1))
    return queries, passages, Run(qids, docids, np.zeros(len(pairs)), Path(path).name)
