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
once, as a positive if it ever is one. Other names are in `didyma.data.column_roles`. Further fields
of a passage, or of a pair, are texts, signals, categories or a vector (`didyma.data.Schema`). A
query may be an object with ``text`` and ``vector``, or have a ``query_vector`` beside it; a warning
names other fields of queries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from math import isfinite
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from didyma.data.column_roles import Roles, assign
from didyma.data.field_kinds import JUDGED
from didyma.data.json_lines import number_of, objects
from didyma.data.lists import Lists
from didyma.data.passage import Passage, flattened, id_of
from didyma.data.schema import FieldChoice, query_of
from didyma.data.texts.rows import TextRows
from didyma.errors import DataError, placed
from didyma.files import PathName, replace_when_done

__all__ = ["read", "write"]

PASSAGES = ("passages", "documents", "candidates", "texts")
NUMBERS = ("label", "score")
SIDES = {"pos": 1.0, "neg": 0.0}
QUERY_VECTORS = ("query_vector", "query_embedding")  # in a pair, a vector is the passage's
TAKEN = {"docid": "id", "label": "label", "score": "score"}

_SIDE = re.compile(r"(pos|neg)(?:itive|ative)?s?(?:_passages|_\d+)?")


def read(path: PathName, roles: Roles | None = None, choice: FieldChoice | None = None) -> Lists:
    """Read judged texts, or texts without labels; see above."""
    role_names = roles or Roles()
    rows = TextRows(path, choice=choice, names=role_names.given)
    texts = () if choice is None else choice.texts
    for line, record in objects(path):
        with placed(path, line):
            passages = list(_rows_of(record, role_names, texts, rows.unread))
        rows.n_empty += not passages
        for row in passages:
            add = rows.add_once if "side" in row else rows.add
            add(line, **{"label" if name == "side" else name: row[name] for name in row})
    return rows.lists()


def write(lists: Lists, path: PathName, **columns: ArrayLike) -> None:
    """Write lists of texts, an object for each query, as `read` takes them.

    Fields, signals and vectors stand in each passage. ``columns`` are further values of each row,
    by name, that tell how its label came about: they stand under ``judged``, which is not read.
    Ids that are the texts themselves are left out.
    """
    queries, texts, groups = lists.query_texts, lists.texts, lists.groups
    row_numbers = {"label": lists.labels, "score": lists.scores}
    numbers, judged = (
        {name: np.asarray(column).tolist() for name, column in values.items() if column is not None}
        for values in (row_numbers, columns)
    )
    docid = texts if lists.docid is None else lists.docid.tolist()
    for name in ("id", "label", "score", JUDGED):
        if lists.attributes is not None and name in lists.attributes.signals:
            raise DataError(f"expected another name than {name!r}", path=path, field=name)
    with replace_when_done(path) as file:
        for n, (name, query) in enumerate(zip(groups.names.tolist(), queries)):
            passages = [
                ({} if docid[row] == texts[row] else {"id": docid[row]})
                | lists.document(row)
                | {key: column[row] for key, column in numbers.items()}
                | ({JUDGED: {key: column[row] for key, column in judged.items()}} if judged else {})
                for row in groups.rows_of(n).tolist()
            ]
            record = ({} if name == query else {"qid": str(name)}) | {"query": query}
            if lists.query_vectors is not None and not np.isnan(lists.query_vectors[n]).any():
                record["query_vector"] = lists.query_vectors[n].tolist()
            line = json.dumps({**record, "passages": passages}, ensure_ascii=False)
            file.write(line + "\n")


def _rows_of(
    record: Mapping[str, Any], roles: Roles, texts: tuple[str, ...], unread: dict[str, None]
) -> Iterator[dict[str, Any]]:
    """What `TextRows.add` is told about each passage of an object.

    ``texts`` are fields that are texts whatever they are called; ``unread`` is told of fields that
    belong to no passage.
    """
    given = roles.given
    is_list = isinstance(record.get(given.get("passage", "")), list)
    free = [name for name in record if name not in given.values()]
    passages = given["passage"] if is_list else next((n for n in PASSAGES if n in free), None)
    sides = {name: SIDES[match[1]] for name in free if (match := _SIDE.fullmatch(name))}
    if passages is None and not sides:
        yield _pair(record, roles, texts)
        return
    names = assign(record, ("query", "qid", "vector"), given, {"qid": ("id", "_id")})
    owner = _query(record, names)
    if (qid := names.get("qid")) is not None and record[qid] is not None:
        owner["qid"] = id_of(record[qid], qid)
    read = {*names.values(), passages, *(() if passages is not None else sides)}
    if passages is not None:
        given = {role: name for role, name in given.items() if name != passages}
        read |= {name for name, _ in _beside(record, passages, given).values()}
        unread |= dict.fromkeys(name for name in record if name not in read)
        yield from ({**owner, **row} for row in _listed(record, passages, given, texts))
        return
    for role in NUMBERS:
        if role in given:
            problem = f"expected no {role}: positives have 1, negatives 0"
            raise DataError(problem, field=given[role])
    unread |= dict.fromkeys(name for name in record if name not in read)
    for name, side in sides.items():
        values = record[name] if isinstance(record[name], list) else [record[name]]
        for place, value in enumerate(values):
            row = _passage(value, f"{name} {place + 1}", given, texts)
            # A label or a score of one's own cannot count beside those of the sides.
            inner = assign(row.get("document", {}), NUMBERS, {})
            _take(row, dict.fromkeys(inner.values(), "ignored"))
            yield {**owner, **row, "side": side}


def _listed(
    record: Mapping[str, Any], passages: str, given: Mapping[str, str], texts: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The passages of a list, with labels and scores that stand in them or in lists beside them.

    What stands beside them counts: a field of the same role in a passage is left out, so that a
    label is never a signal, too.
    """
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
        row = _passage(value, field, given, texts)
        document = row.get("document", {})
        for role, name in assign(document, NUMBERS, given).items():
            if role not in beside:
                row[role] = number_of(document[name], f"{field}, {name}")
            _take(row, {name: "ignored" if role in beside else role})
        for role, (name, numbers) in beside.items():
            row[role] = number_of(numbers[place], f"{name}, {place + 1}")
        yield row


def _take(row: dict[str, Any], taken: Mapping[str, str]) -> None:
    """Take fields out of a document, which have been read in these roles."""
    if taken:
        document = {name: value for name, value in row["document"].items() if name not in taken}
        row |= {"document": document, "taken": {**row["taken"], **taken}}


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


def _pair(record: Mapping[str, Any], roles: Roles, texts: tuple[str, ...]) -> dict[str, Any]:
    names = roles.among(record)
    beside = next((name for name in QUERY_VECTORS if name in record), None)
    names |= {} if beside is None else {"vector": beside}
    row = _query(record, names)
    if not any(name in texts for name in record):
        row["passage"] = _text(record, names.get("passage"), "passage")
    for role in ("qid", "docid"):
        if (name := names.get(role)) is not None and record[name] is not None:
            row[role] = id_of(record[name], name)
    for role in NUMBERS:
        if (name := names.get(role)) is not None:
            row[role] = number_of(record[name], name)
    taken = {names[role]: role_taken for role, role_taken in TAKEN.items() if role in names}
    mine = (names.get("query"), names.get("qid"), names.get("vector"), *taken)
    document = {name: value for name, value in record.items() if name not in mine}
    given = {"passage": names["passage"]} if "passage" in names else None
    passage = Passage.of(document, given, texts)
    row["passage"] = passage.text
    if passage.id is not None and "docid" not in row:  # in a pair, an id may be that of either
        document = {name: value for name, value in document.items() if name in passage.record}
        row["docid"] = str(passage.id)
    _check_finite(document, "")
    return {**row, "document": document, "taken": taken}


def _query(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Text and vector of the query."""
    name = names.get("query")
    if name is not None and isinstance(record.get(name), Mapping):
        text, vector = query_of(record[name], name)
    else:
        text, vector = _text(record, name, "query"), None
    if (beside := names.get("vector")) is not None and record[beside] is not None:
        if vector is not None:
            raise DataError("expected one vector of the query, found two", field=beside)
        vector = record[beside]
    return {"query": text} if vector is None else {"query": text, "query_vector": vector}


def _passage(
    value: Any, field: str, given: Mapping[str, str], texts: tuple[str, ...]
) -> dict[str, Any]:
    """Text and id of a passage in a list, and all other fields."""
    try:
        passage = Passage.of(value, given, texts)
    except DataError as error:
        _fail(error, field)
    row: dict[str, Any] = {"passage": passage.text}
    if passage.id is not None:
        row["docid"] = str(passage.id)
    if not isinstance(value, Mapping):
        return row
    names = {*(passage.fields or ("text",)), *passage.metadata}
    document = {name: inner for name, inner in value.items() if name in names}
    _check_finite(document, f"{field}, ")
    taken = {name: "id" for name in value if name not in document}
    return {**row, "document": flattened(document), "taken": taken, "place": field}


def _check_finite(document: Mapping[str, Any], place: str) -> None:
    """Refuse NaN and Infinity, which are no JSON though Python reads them."""
    for name, value in document.items():
        if isinstance(value, float) and not isfinite(value):
            problem = f"expected a finite number or null, found {value}"
            raise DataError(problem, field=f"{place}{name}")


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
