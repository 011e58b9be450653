"""Judged texts as JSON lines: an object for each query, for each pair, or for each contrast.

    {"query": "who wrote Emma?", "passages": ["Jane Austen.", "It is late."], "labels": [1, 0]}
    {"query": "who wrote Emma?", "passage": "Jane Austen.", "label": 1}
    {"query": "who wrote Emma?", "positive": "Jane Austen.", "negatives": ["It is late."]}

A query may have an id (``qid``, ``query_id``; in an object for each query also ``id``). Passages
(also ``documents``, ``candidates``, ``texts``) are texts or objects with ``text``, ``title``,
``id``, ``label`` and ``score``; ``labels`` and ``scores`` of the first stage may stand beside them
as well, also under a name that was given and its plural: with ``label="score"``, ``scores`` are
labels. Positives and negatives (also ``pos``, ``neg``, ``positive_passages``, ``negative_1``, …)
are one passage or several, which have the labels 1 and 0; one that occurs again for a query counts
once, as a positive if it ever is one. Other names are in `didyma.data.column_roles`; further fields
are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from didyma.data.column_roles import Roles, assign, known_as
from didyma.data.json_lines import number_of, objects
from didyma.data.lists import Lists
from didyma.data.passage import Passage, id_of
from didyma.data.texts.rows import TextRows
from didyma.errors import DataError, placed
from didyma.files import PathName, replace_when_done

__all__ = ["read", "write"]

PASSAGES = ("passages", "documents", "candidates", "texts")
NUMBERS = ("label", "score")
SIDES = {"pos": 1.0, "neg": 0.0}

_SIDE = re.compile(r"(pos|neg)(?:itive|ative)?s?(?:_passages|_\d+)?")


def read(path: PathName, roles: Roles | None = None) -> Lists:
    """Read judged texts, or texts without labels; see above."""
    rows, asked = TextRows(path), roles or Roles()
    for line, record in objects(path):
        with placed(path, line):
            found = list(_rows_of(record, asked))
        rows.n_empty += not found
        for row in found:
            add = rows.add_once if "side" in row else rows.add
            add(line, **{"label" if name == "side" else name: row[name] for name in row})
    return rows.lists()


def write(lists: Lists, path: PathName, **columns: ArrayLike) -> None:
    """Write lists of texts, an object for each query, as `read` takes them.

    ``columns`` are further values of each row, by name. Ids that are the texts themselves are left
    out.
    """
    queries, texts, groups = lists.query_texts, lists.texts, lists.groups
    known = {"label": lists.labels, "score": lists.scores, **columns}
    given = {
        name: np.asarray(column).tolist() for name, column in known.items() if column is not None
    }
    docid = texts if lists.docid is None else lists.docid.tolist()
    with replace_when_done(path) as file:
        for n, (name, query) in enumerate(zip(groups.names.tolist(), queries)):
            passages = [
                ({} if docid[row] == texts[row] else {"id": docid[row]})
                | {"text": texts[row]}
                | {key: column[row] for key, column in given.items()}
                for row in groups.rows_of(n).tolist()
            ]
            record = ({} if name == query else {"qid": str(name)}) | {"query": query}
            line = json.dumps({**record, "passages": passages}, ensure_ascii=False)
            file.write(line + "\n")


def _rows_of(record: Mapping[str, Any], asked: Roles) -> Iterator[dict[str, Any]]:
    """What `TextRows.add` is told about each passage of an object."""
    given = asked.given
    is_list = isinstance(record.get(given.get("passage", "")), list)
    free = [name for name in record if name not in given.values()]
    passages = given["passage"] if is_list else next((n for n in PASSAGES if n in free), None)
    sides = {name: SIDES[match[1]] for name in free if (match := _SIDE.fullmatch(name))}
    if passages is None and not sides:
        yield _pair(record, asked.among(record))
        return
    names = assign(record, ("query", "qid"), given, {"qid": ("id", "_id")})
    owner = {"query": _text(record, names.get("query"), "query")}
    if (qid := names.get("qid")) is not None and record[qid] is not None:
        owner["qid"] = id_of(record[qid], qid)
    if passages is not None:
        given = {role: name for role, name in given.items() if name != passages}
        yield from ({**owner, **row} for row in _listed(record, passages, given))
        return
    for role in NUMBERS:
        if role in given:
            problem = f"expected no {role}: positives have 1, negatives 0"
            raise DataError(problem, field=given[role])
    for name, side in sides.items():
        values = record[name] if isinstance(record[name], list) else [record[name]]
        for place, value in enumerate(values):
            yield {**owner, **_passage(value, f"{name} {place + 1}", given)[0], "side": side}


def _listed(
    record: Mapping[str, Any], passages: str, given: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The passages of a list, with labels and scores that stand in them or in lists beside them."""
    values, beside = _list(record, passages), _beside(record, passages, given)
    for name, numbers in beside.values():
        if len(numbers) != len(values):
            problem = f"expected {len(values)}, one for each passage, found {len(numbers)}"
            raise DataError(problem, field=name)
    fields = dict.fromkeys(chain(*(value for value in values if isinstance(value, dict))))
    for role, name in given.items():
        present = record if role in ("query", "qid") else fields
        if values and role not in beside and name not in present:
            raise DataError(f"no such name among {', '.join(present) or 'texts'}", field=name)
    for place, value in enumerate(values):
        field = f"{passages} {place + 1}"
        row, metadata = _passage(value, field, given)
        roles = [role for role in NUMBERS if role not in beside]
        for role, name in assign(metadata, roles, given).items():
            row[role] = number_of(metadata[name], f"{field}, {name}")
        for role, (name, numbers) in beside.items():
            row[role] = number_of(numbers[place], f"{name}, {place + 1}")
        yield row


def _beside(
    record: Mapping[str, Any], passages: str, given: Mapping[str, str]
) -> dict[str, tuple[str, list[Any]]]:
    """Name and numbers of lists beside the passages: ``labels``, or as ``label`` was named."""
    names: dict[str, str] = {}
    for role in sorted(NUMBERS, key=lambda role: role not in given):
        name = given.get(role, role)
        several = f"{name}s"
        if role in given and isinstance(record.get(name), list):
            names[role] = name
        elif several in record and several not in (passages, *given.values(), *names.values()):
            names[role] = several
    return {role: (name, _list(record, name)) for role, name in names.items()}


def _pair(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        role: _text(record, names.get(role), role) for role in ("query", "passage")
    }
    if (title := known_as("title", record)) is not None and title not in names.values():
        row["passage"] = Passage.of({"title": record[title], "text": row["passage"]}).text
    for role in ("qid", "docid"):
        if (name := names.get(role)) is not None and record[name] is not None:
            row[role] = id_of(record[name], name)
    for role in NUMBERS:
        if (name := names.get(role)) is not None:
            row[role] = number_of(record[name], name)
    return row


def _passage(
    value: Any, field: str, given: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Text and id of a passage in a list, and all other fields."""
    try:
        passage = Passage.of(value, given)
    except DataError as error:
        _fail(error, field)
    row: dict[str, Any] = {"passage": passage.text}
    if passage.id is not None:
        row["docid"] = str(passage.id)
    return row, passage.metadata


def _fail(error: DataError, field: str) -> NoReturn:
    place = field if error.field is None else f"{field}, {error.field}"
    raise DataError(error.problem, field=place) from None


def _text(record: Mapping[str, Any], name: str | None, role: str) -> str:
    if name is None or name not in record:
        present = ", ".join(record) or "no fields"
        wanted = "query and passages" if role == "query" else "passage"
        raise DataError(f"expected a {wanted}, found {present}", field=role)
    if not isinstance(record[name], str):
        raise DataError(f"expected a text, found {record[name]!r:.40}", field=name)
    return str(record[name])


def _list(record: Mapping[str, Any], name: str) -> list[Any]:
    if not isinstance(record[name], list):
        raise DataError(f"expected a list, found {record[name]!r:.40}", field=name)
    return list(record[name])
