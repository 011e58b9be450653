"""Passages as users have them: texts, or objects with a text, an id and more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from didyma.data.column_roles import REMEMBERED, assign
from didyma.errors import DataError
from didyma.values import is_whole, kind_of


class Passage(NamedTuple):
    """The text of a passage, its id if it has one, all other fields, and what the text is made of.

    >>> emma = Passage.of({"_id": 7, "title": "Emma", "text": "A novel.", "year": 1815})
    >>> emma.text, emma.id, emma.metadata
    ('Emma A novel.', 7, {'year': 1815})
    >>> emma.record
    {'title': 'Emma', 'text': 'A novel.', 'year': 1815}
    >>> Passage.of("A novel.")
    Passage(text='A novel.', id=None, metadata={}, fields={})
    """

    text: str
    id: str | int | None
    metadata: dict[str, Any]
    fields: Mapping[str, str | None] = {}

    @property
    def record(self) -> dict[str, Any]:
        """The passage as a mapping, without its id: what `didyma.data.Schema` reads."""
        return {**(self.fields or {"text": self.text}), **self.metadata}

    @classmethod
    def of(
        cls,
        value: Any,
        given: Mapping[str, str] | None = None,
        texts: Collection[str] = (),
    ) -> Passage:
        """Read a text, or a mapping with a text; a title goes before it, with a space between.

        A `Passage` stays as it is. ``given`` are names of fields by their roles
        (`didyma.data.column_roles`), ``texts`` names of fields that are texts as well where none is
        known as the text.
        """
        if isinstance(value, str):
            return cls(value, None, {})
        if isinstance(value, Passage):
            return value
        if not isinstance(value, Mapping):
            raise DataError(f"expected a text or an object with one, found {value!r:.40}")
        layout = _layout(tuple(value), tuple((given or {}).items()), tuple(texts))
        parts = {name: value[name] for name in layout.parts}
        for name, part in parts.items():
            if not (isinstance(part, str) or (part is None and name != layout.text)):
                raise DataError(f"expected a text, found {part!r:.40}", field=name)
        id_name = layout.id
        return cls(
            " ".join(filter(None, parts.values())),
            None
            if id_name is None or value[id_name] is None
            else _checked(value[id_name], id_name),
            {name: value[name] for name in layout.others},
            {} if layout.parts == ("text",) else parts,
        )


class _Layout(NamedTuple):
    """Names of the parts of a text, in their order, of the text itself, of the id, of all else."""

    parts: tuple[str, ...]
    text: str | None
    id: str | None
    others: tuple[Any, ...]


@lru_cache(REMEMBERED)
def _layout(
    names: tuple[Any, ...], given: tuple[tuple[str, str], ...], texts: tuple[str, ...]
) -> _Layout:
    words = [name for name in names if isinstance(name, str)]
    roles = assign(words, ("passage", "title", "docid"), dict(given), {"docid": ("id", "_id")})
    text, title, name = (roles.get(role) for role in ("passage", "title", "docid"))
    more = [] if text is not None else [word for word in words if word in texts and word != title]
    if text is None and not more and not (title is not None and title in texts):
        raise DataError(f"expected a text among {', '.join(words[:20]) or 'no fields'}"[:300])
    parts = tuple(part for part in (title, text, *more) if part is not None)
    return _Layout(parts, text, name, tuple(one for one in names if one not in (*parts, name)))


def passages_of(
    documents: Iterable[Any], read: Callable[[Any], Passage] = Passage.of
) -> list[Passage]:
    """Texts, or mappings with a text and, if wanted, a title, an id and other entries.

    As in files, a title stands before its text. Entries under ``metadata`` stand beside the others.
    ``read`` may know other documents.

    >>> passages_of([{"text": "b", "id": 7, "metadata": {"year": 1815}}])
    [Passage(text='b', id=7, metadata={'year': 1815}, fields={})]
    """
    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Iterable):
        raise DataError(
            f"expected a list of documents, found {kind_of(documents)}", field="documents"
        )
    return [_read(document, n, read) for n, document in enumerate(documents)]


def _read(document: Any, n: int, read: Callable[[Any], Passage]) -> Passage:
    try:
        passage = read(document)
    except DataError as error:
        place = "" if error.field is None else f", {error.field}"
        raise DataError(error.problem, field=f"document {n}{place}") from None
    if "metadata" not in passage.metadata:
        return passage
    return passage._replace(metadata=flattened(passage.metadata, passage.fields))


def flattened(record: Mapping[str, Any], others: Collection[str] = ()) -> dict[str, Any]:
    """The same with the entries of ``metadata`` beside the others.

    One whose name is there already is called metadata.NAME.

    >>> flattened({"year": 1815, "metadata": {"pages": 3, "year": 1816}})
    {'year': 1815, 'pages': 3, 'metadata.year': 1816}
    """
    rest = dict(record)
    if isinstance(rest.get("metadata"), Mapping):
        inner = rest.pop("metadata")
        for name, value in inner.items():
            rest[f"metadata.{name}" if name in rest or name in others else name] = value
    return rest


def id_of(value: Any, field: str) -> str:
    """An id, which is a text or an integer, as text.

    >>> id_of(7, "docid"), id_of("d7", "docid")
    ('7', 'd7')
    """
    return str(_checked(value, field))


def _checked(value: Any, field: str) -> str | int:
    if not (isinstance(value, str) or is_whole(value)):
        raise DataError(f"expected a text or an integer, found {value!r:.40}", field=field)
    return value if isinstance(value, str) else int(value)


TEXT = "text"  # what the text of a document is called that is nothing else
Fail = Callable[[str, int, str], NoReturn]  # raises the error about a field, a row and a problem


def fail_in_document(field: str, row: int, problem: str) -> NoReturn:
    """Raise the error about a field of a document that stands in no file."""
    raise DataError(problem, field=f"document {row}, {field}")


def records_of(documents: Iterable[Any], fail: Fail = fail_in_document) -> list[dict[str, Any]]:
    """Texts, mappings or passages by the names of their fields, without ids of passages.

    >>> records_of(["A novel.", {"text": "A play.", "metadata": {"year": 1808}}])
    [{'text': 'A novel.'}, {'text': 'A play.', 'year': 1808}]
    """
    return [_record(document, row, fail) for row, document in enumerate(documents)]


def _record(document: Any, row: int, fail: Fail) -> dict[str, Any]:
    if isinstance(document, Passage):
        record = document.record
        return flattened(record) if "metadata" in record else record
    if isinstance(document, str):
        return {TEXT: document}
    if not isinstance(document, Mapping):
        fail(TEXT, row, f"expected a text or an object with one, found {kind_of(document)}")
    for name in document:
        if not isinstance(name, str):
            fail(repr(name), row, "expected names that are texts")
    return flattened(document)
