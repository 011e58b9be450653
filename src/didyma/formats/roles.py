"""What columns of tables and fields of objects that hold texts are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from didyma.errors import DataError

__all__ = ["NAMES", "Roles", "known_as"]

# Of several that are there the first counts. Case, "_", "-" and spaces make no difference.
NAMES: dict[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "question_id"),
    "query": ("query", "question", "anchor"),
    "docid": ("docid", "doc_id", "passage_id", "pid", "sentence_id", "corpus_id", "document_id"),
    "passage": (
        *("passage", "text", "document", "sentence", "answer"),
        *("passage_text", "page_content", "content", "contents", "body"),
    ),
    "title": ("title",),
    "label": ("label", "relevance", "grade", "is_selected"),
    "score": ("score",),
    "position": ("position", "rank"),
    "clicked": ("clicked", "click", "is_clicked", "is_click"),
    "impression": ("impression", "impression_id", "search_id", "request_id", "page_view_id"),
}


def known_as(role: str, names: Iterable[str], others: Iterable[str] = ()) -> str | None:
    """The one of these names that has a role, by `NAMES` or by ``others``; None if there is none.

    >>> known_as("passage", ["QuestionID", "Question", "Sentence"])
    'Sentence'
    """
    plain = {_plain(name): name for name in reversed(list(names))}
    wanted = (*NAMES[role], *others)
    return next((plain[_plain(name)] for name in wanted if _plain(name) in plain), None)


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


@dataclass(frozen=True)
class Roles:
    """Names that the caller gives to columns or fields; those left None are found by `NAMES`.

    A score is always the first stage's. What a teacher thinks is a label: ``label="score"``.

    >>> Roles(label="score").among(["query", "passage", "score"])
    {'label': 'score', 'query': 'query', 'passage': 'passage'}
    """

    query: str | None = None
    passage: str | None = None
    label: str | None = None
    score: str | None = None
    qid: str | None = None
    docid: str | None = None

    def among(self, names: Iterable[str]) -> dict[str, str]:
        """The name of each role that these names fill."""
        present = list(names)
        found = {role: name for role, name in asdict(self).items() if name is not None}
        for name in found.values():
            if name not in present:
                raise DataError(f"no such name among {', '.join(present)}", field=name)
        free = [name for name in present if name not in found.values()]
        for role in asdict(self):
            if role not in found and (name := known_as(role, free)) is not None:
                found[role] = name
        return found
