"""Documents of requests as passages: their texts, and all else that a model may look at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from didyma.data.column_roles import known_as
from didyma.data.passage import Passage, passages_of
from didyma.data.schema import Schema
from didyma.errors import DataError

GivenDocument: TypeAlias = "str | dict[str, Any]"
ID_NAMES = ("id", "_id")


def read_documents(
    documents: Sequence[GivenDocument], schema: Schema, rank_fields: Sequence[str] | None = None
) -> list[Passage]:
    """Passages of texts and objects, for a model that has learned this schema.

    The text of an object is the first that is one of those with a known name, or what the schema
    calls a text. With ``rank_fields`` these fields are the text, and no other text counts.

    >>> read_documents([{"text": "A novel.", "clicks": 7}], Schema())
    [Passage(text='A novel.', id=None, metadata={'clicks': 7}, fields={})]
    >>> read_documents([{"head": "Emma", "text": "A novel."}], Schema(), ["head"])[0].text
    'Emma'
    """
    if rank_fields is None:
        texts = [field.name for field in schema.of_role("text")]
        return passages_of(documents, partial(_passage, texts=texts))
    if not rank_fields:
        raise DataError("expected names of fields, found none", field="rank_fields")
    return passages_of(documents, partial(_passage_of_fields, names=rank_fields, schema=schema))


def sizes_of(passages: Sequence[Passage], schema: Schema) -> list[int]:
    """Characters of each passage that are read, in all its text fields."""
    texts = [field.name for field in schema.of_role("text")]
    return [
        len(passage.text)
        + sum(_length(passage.metadata[name]) for name in texts if name in passage.metadata)
        for passage in passages
    ]


def first_scores(documents: Sequence[GivenDocument]) -> list[float] | None:
    """Scores of a first stage that documents have; None unless each has one.

    >>> first_scores([{"text": "a", "score": 2}, {"text": "b", "score": 0.5}])
    [2.0, 0.5]
    """
    scores = [
        document.get(known_as("score", document) or "")
        for document in documents
        if isinstance(document, dict)
    ]
    has_all = len(scores) == len(documents) > 0
    if not has_all or not all(type(score) in (int, float) for score in scores):
        return None
    return [float(score) for score in scores]  # type: ignore[arg-type]


def _passage(document: GivenDocument, texts: Sequence[str]) -> Passage:
    """An object may have other things under a known name: they are metadata."""
    if isinstance(document, str):
        return Passage.of(document)
    roles = {}
    readable = [name for name, value in document.items() if isinstance(value, str)]
    if (text := known_as("passage", readable)) is not None:
        roles["passage"] = text
    title = known_as("title", document)
    if title is not None and not isinstance(document[title], str | None):
        roles["title"] = ""  # none has this role
    name = known_as("docid", document, ID_NAMES)
    if name is not None and not (document[name] is None or _is_id(document[name])):
        roles["docid"] = ""
    return Passage.of(document, roles, texts)


def _passage_of_fields(document: GivenDocument, names: Sequence[str], schema: Schema) -> Passage:
    if isinstance(document, str):
        return Passage.of(document)
    fields = {field.name for field in schema.of_role("text")}
    signals = {field.name for field in schema.of_role("signal", "category", "vector")}
    chosen = {
        name: _text(document[name], name)
        for name in names
        if name not in signals and document.get(name) is not None
    }
    if not chosen:
        raise DataError(f"expected one of the rank_fields {', '.join(names)}"[:200])
    others = {
        name: value
        for name, value in document.items()
        if name not in chosen and name not in fields and not _is_text(name)
    }
    main = [text for name, text in chosen.items() if name == schema.main or name not in fields]
    parts = {name: text for name, text in chosen.items() if name in fields and name != schema.main}
    parts[schema.main] = " ".join(main)
    id_name = known_as("docid", others, ID_NAMES)
    id = others.pop(id_name) if id_name is not None and _is_id(others[id_name]) else None
    return Passage(" ".join(text for text in chosen.values() if text), id, others, parts)


def _is_text(name: str) -> bool:
    return any(known_as(role, [name]) is not None for role in ("passage", "title"))


def _is_id(value: Any) -> bool:
    return isinstance(value, str) or type(value) is int


def _text(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if isinstance(value, bool | int | float):
        return str(value)
    raise DataError(f"expected a text, as one of the rank_fields, found {value!r:.40}", field=name)


def _length(value: Any) -> int:
    if isinstance(value, list):
        return sum(len(one) + 1 for one in value if isinstance(one, str))
    return len(value) if isinstance(value, str) else 0
