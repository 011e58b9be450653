"""The role of each field of documents: by what the caller says, by its name, by its values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from didyma.data.column_roles import assign, known_as
from didyma.data.field_kinds import (
    FIRST_STAGE,
    MAIN,
    TITLE,
    Column,
    FieldKind,
    classify,
    fail_in_field,
    is_missing,
    number_in,
    text_in,
)
from didyma.data.passage import TEXT, Fail
from didyma.errors import DataError

JUDGED = "judged"  # how a label came about: never to be learned from
BESIDE = "given beside the documents"
ROLES = {"passage": MAIN, "title": TITLE}
PARTS = tuple(ROLES)  # of the text
DOCUMENT_ROLES = (*PARTS, "docid", "label", "score")
ID_NAMES = {"docid": ("id", "_id")}
RETRIEVAL = re.compile(
    r"bm25|tf.?idf|splade|colbert|cosine|similarity|dense|semantic|lexical|retriev", re.IGNORECASE
)


def infer_kinds(
    documents: Sequence[Mapping[str, Any]],
    wanted: Mapping[str, Iterable[str] | None],
    names: Mapping[str, str],
    taken: Mapping[str, str] | None,
    fail: Fail,
) -> dict[str, FieldKind]:
    """What each field is; ``wanted`` are names by what the caller says that they are.

    All else is as in `didyma.data.Schema.infer`.
    """
    columns: dict[str, list[int]] = {}
    for row, document in enumerate(documents):
        for name in document:
            columns.setdefault(name, []).append(row)
    role_asked = _asked(wanted, [*columns, *(taken or {})])
    free = [name for name in columns if role_asked.get(name, "text") == "text"]
    named = {role: name for role, name in names.items() if name in columns}
    roles = assign(free, DOCUMENT_ROLES if taken is None else PARTS, named, ID_NAMES)
    role_of = {name: role for role, name in roles.items()}
    n_texts = len({str(document.get(roles.get("passage", TEXT))) for document in documents})
    kinds: dict[str, FieldKind] = {}
    for name, rows in columns.items():
        rows = [row for row in rows if not is_missing(documents[row][name])]
        values = [documents[row][name] for row in rows]
        place = fail_in_field(fail, name)
        column = Column(name, rows, values, len(documents), n_texts, place)
        kinds[name] = _kind_of(column, role_asked.get(name), role_of.get(name))
    for name, role in (taken or {}).items():
        reason = BESIDE if role == "ignored" else "by its name"
        kinds.setdefault(name, FieldKind(role, reason, "asked"))
    return _one_vector(kinds)


def _asked(wanted: Mapping[str, Iterable[str] | None], present: Sequence[str]) -> dict[str, str]:
    """The role that the caller gives to each field."""
    role_of: dict[str, str] = {}
    for role, names in wanted.items():
        for name in names or ():
            if name not in present:
                raise DataError(f"no such field among {', '.join(present) or 'texts'}", field=name)
            if role_of.setdefault(name, role) != role:
                raise DataError(f"expected one role, found {role_of[name]} and {role}", field=name)
    return role_of


def _kind_of(column: Column, asked: str | None, role: str | None) -> FieldKind:
    if asked == "ignored":
        return FieldKind("ignored", "as you say", "asked")
    if role in ROLES:
        for row, value in zip(column.rows, column.values):
            text_in(value, column.fail, row)
        return FieldKind("text", f"the {'text' if role == 'passage' else role}", ROLES[role])
    if asked == "text":
        for row, value in zip(column.rows, column.values):
            text_in(value, column.fail, row)
        return FieldKind("text", "as you say")
    if role is not None:
        return FieldKind("id" if role == "docid" else role, "by its name")
    if asked == "signal":
        return _signal_kind(column)
    if column.name == JUDGED:
        return FieldKind("ignored", "how the label came about", "asked")
    if known_as("label", [column.name]) is not None:
        return FieldKind("ignored", "a label, by its name")
    if known_as("docid", [column.name], ID_NAMES["docid"]) is not None:
        return FieldKind("ignored", "an id, by its name")
    return _first_stage(column.name, classify(column))


def _first_stage(name: str, kind: FieldKind) -> FieldKind:
    if kind.role == "signal" and kind.reason == "numbers" and RETRIEVAL.search(name):
        return kind._replace(reason="numbers, the score of a retrieval", kind=FIRST_STAGE)
    return kind


def _signal_kind(column: Column) -> FieldKind:
    """That of a field which the caller calls a signal, though it may be constant, or an id."""
    if column.values and all(isinstance(value, str) for value in column.values):
        by_value = classify(column._replace(name="", n_documents=-1, n_texts=-1))
        if by_value.role == "signal":
            return _first_stage(
                column.name, by_value._replace(reason=f"as you say: {by_value.reason}")
            )
        return FieldKind("category", "as you say")
    for row, value in zip(column.rows, column.values):
        number_in(value, column.fail, row)
    kind = FIRST_STAGE if RETRIEVAL.search(column.name) else ""
    return FieldKind("signal", "as you say", kind)


def _one_vector(kinds: dict[str, FieldKind]) -> dict[str, FieldKind]:
    """The same with one vector: the one that is called so, or the first."""
    vectors = [name for name, kind in kinds.items() if kind.role == "vector"]
    first, *others = sorted(vectors, key=lambda name: not kinds[name].kind) or [""]
    return kinds | {name: FieldKind("ignored", f"a vector beside {first}") for name in others}
