"""Passages as users have them: texts, or objects with a text, an id and more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from didyma.data.column_roles import assign
from didyma.errors import DataError
from didyma.values import is_whole, kind_of

__all__ = ["Passage", "id_of", "passages_of"]


class Passage(NamedTuple):
    """The text of a passage, its id if it has one, and all other fields.

    >>> Passage.of({"_id": 7, "title": "Emma", "text": "A novel.", "year": 1815})
    Passage(text='Emma A novel.', id=7, metadata={'year': 1815})
    >>> Passage.of("A novel.")
    Passage(text='A novel.', id=None, metadata={})
    """

    text: str
    id: str | int | None
    metadata: dict[str, Any]

    @classmethod
    def of(cls, value: Any, given: Mapping[str, str] | None = None) -> Passage:
        """Read a text, or a mapping with a text; a title goes before it, with a space between.

        ``given`` are names of fields by their roles (`didyma.data.column_roles`).
        """
        if isinstance(value, str):
            return cls(value, None, {})
        if not isinstance(value, Mapping):
            raise DataError(f"expected a text or an object with one, found {value!r:.40}")
        names = [name for name in value if isinstance(name, str)]
        roles = assign(names, ("passage", "title", "docid"), given or {}, {"docid": ("id", "_id")})
        text, title, name = (roles.get(role) for role in ("passage", "title", "docid"))
        if text is None:
            raise DataError(f"expected a text among {', '.join(names) or 'no fields'}")
        parts = [value[field] for field in (title, text) if field is not None]
        for field, part in zip((title, text) if title else (text,), parts):
            if not isinstance(part, str):
                raise DataError(f"expected a text, found {part!r:.40}", field=field)
        return cls(
            " ".join(part for part in parts if part),
            None if name is None or value[name] is None else _checked(value[name], name),
            {key: value[key] for key in value if key not in (text, title, name)},
        )


def passages_of(
    documents: Iterable[Any], read: Callable[[Any], Passage] = Passage.of
) -> list[Passage]:
    """Texts, or mappings with a text and, if wanted, a title, an id and other entries.

    As in files, a title stands before its text. Entries under ``metadata`` stand beside the others.
    ``read`` may know other documents.

    >>> passages_of(["a", {"text": "b", "id": 7, "year": 1815}])
    [Passage(text='a', id=None, metadata={}), Passage(text='b', id=7, metadata={'year': 1815})]
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
    rest = dict(passage.metadata)
    if isinstance(rest.get("metadata"), Mapping):
        rest |= dict(rest.pop("metadata"))
    return passage._replace(metadata=rest)


def id_of(value: Any, field: str) -> str:
    """An id, which is a text or an integer, as text."""
    return str(_checked(value, field))


def _checked(value: Any, field: str) -> str | int:
    if not (isinstance(value, str) or is_whole(value)):
        raise DataError(f"expected a text or an integer, found {value!r:.40}", field=field)
    return value if isinstance(value, str) else int(value)
