"""Passages as users have them: texts, or objects with a text, an id and more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from didyma.data.column_roles import assign
from didyma.errors import DataError
from didyma.values import is_whole, kind_of

__all__ = ["Passage", "flattened", "id_of", "passages_of"]


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
        names = [name for name in value if isinstance(name, str)]
        roles = assign(names, ("passage", "title", "docid"), given or {}, {"docid": ("id", "_id")})
        text, title, name = (roles.get(role) for role in ("passage", "title", "docid"))
        others = [] if text is not None else [key for key in names if key in texts and key != title]
        if text is None and not others and not (title is not None and title in texts):
            raise DataError(f"expected a text among {', '.join(names[:20]) or 'no fields'}"[:300])
        parts = {key: value[key] for key in (title, text, *others) if key is not None}
        for key, part in parts.items():
            if not (isinstance(part, str) or (part is None and key != text)):
                raise DataError(f"expected a text, found {part!r:.40}", field=key)
        return cls(
            " ".join(part for part in parts.values() if part),
            None if name is None or value[name] is None else _checked(value[name], name),
            {key: value[key] for key in value if key not in parts and key != name},
            {} if list(parts) == ["text"] else parts,
        )


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
