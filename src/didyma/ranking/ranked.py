"""What a reranker is given and what it answers: documents, and their places in a ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from didyma.data.passage import Passage
from didyma.errors import DataError
from didyma.values import kind_of

__all__ = ["Ranked", "read_documents"]


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


def read_documents(
    documents: Iterable[Any], read: Callable[[Any], Passage] = Passage.of
) -> list[Passage]:
    """Texts, or mappings with a text and, if wanted, a title, an id and other entries.

    As in files, a title stands before its text. Entries under ``metadata`` stand beside the others.
    ``read`` may know other documents.

    >>> read_documents(["a", {"text": "b", "id": 7, "year": 1815}])
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
