"""What a reranker is given and what it answers: documents, and their places in a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from didyma.errors import DataError

__all__ = ["Given", "Ranked", "read_documents"]


@dataclass(frozen=True)
class Ranked:
    """A document in a ranking.

    Attributes
    ----------
    index : int
        Its place among the documents that were given.
    score : float
        How likely it is to be relevant, where the reranker is calibrated; else ``raw``.
    id : any
        Its id, if it had one.
    text : str
    metadata : dict
        What else came with it.
    window : (start, stop) or None
        The best part of a long document, in code points.
    raw : float
        The score by which documents are ranked.
    """

    index: int
    score: float
    id: Any = None
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    window: tuple[int, int] | None = None
    raw: float = 0.0


class Given(NamedTuple):
    """A text, its id and what else came with it."""

    text: str
    id: Any
    metadata: dict[str, Any]


def read_documents(documents: Iterable[str | Mapping[str, Any]]) -> list[Given]:
    """Texts, or mappings with a ``text`` and, if wanted, an ``id`` and other entries.

    Entries of a mapping under ``metadata`` stand beside the others.

    >>> read_documents(["a", {"text": "b", "id": 7, "year": 1815}])
    [Given(text='a', id=None, metadata={}), Given(text='b', id=7, metadata={'year': 1815})]
    """
    if isinstance(documents, (str, bytes, Mapping)) or not isinstance(documents, Iterable):
        raise DataError(
            f"expected a list of documents, found {type(documents).__name__}", field="documents"
        )
    return [_read(document, n) for n, document in enumerate(documents)]


def _read(document: Any, n: int) -> Given:
    if isinstance(document, str):
        return Given(document, None, {})
    field = f"document {n}"
    if not isinstance(document, Mapping):
        raise DataError(
            f"expected a text or a mapping, found {type(document).__name__}", field=field
        )
    text = document.get("text")
    if not isinstance(text, str):
        found = f"{type(text).__name__} {text!r:.40}" if "text" in document else "none"
        raise DataError(f"expected a text under 'text', found {found}", field=field)
    rest = {key: value for key, value in document.items() if key not in ("text", "id")}
    if isinstance(rest.get("metadata"), Mapping):
        rest |= dict(rest.pop("metadata"))
    return Given(text, document.get("id"), rest)
