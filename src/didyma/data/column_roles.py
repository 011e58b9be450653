"""What columns of tables and fields of objects that hold texts are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache

from didyma.errors import DataError

__all__ = ["NAMES", "REMEMBERED", "Roles", "assign", "check_distinct", "known_as"]

REMEMBERED = 1024  # sets of names whose roles are remembered: all documents of a request have one
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
    "vector": ("vector", "query_vector", "embedding", "query_embedding"),
    "impression": ("impression", "impression_id", "search_id", "request_id", "page_view_id"),
}


def known_as(role: str, names: Iterable[str], others: Iterable[str] = ()) -> str | None:
    """The one of these names that has a role, by `NAMES` or by ``others``; None if there is none.

    >>> known_as("passage", ["QuestionID", "Question", "Sentence"])
    'Sentence'
    """
    return _known_as(role, tuple(names), tuple(others))


@lru_cache(REMEMBERED)
def _known_as(role: str, names: tuple[str, ...], others: tuple[str, ...]) -> str | None:
    plain = {_plain(name): name for name in reversed(names)}
    wanted = (*NAMES[role], *others)
    return next((plain[_plain(name)] for name in wanted if _plain(name) in plain), None)


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


def assign(
    names: Iterable[str],
    roles: Iterable[str],
    given: Mapping[str, str],
    others: Mapping[str, Iterable[str]] | None = None,
) -> dict[str, str]:
    """The name of each role: the one that was given or, among names given to no role, by `NAMES`.

    A field is read for one role only: what is learned from must not be known already. Of the given
    names those count that are there.

    >>> assign(["text", "score"], ["passage", "label", "score"], {"label": "score"})
    {'passage': 'text', 'label': 'score'}
    """
    more = tuple((role, tuple(names_of_role)) for role, names_of_role in (others or {}).items())
    return dict(_assigned(tuple(names), tuple(roles), tuple(given.items()), more))


@lru_cache(REMEMBERED)
def _assigned(
    names: tuple[str, ...],
    roles: tuple[str, ...],
    given_names: tuple[tuple[str, str], ...],
    others: tuple[tuple[str, tuple[str, ...]], ...],
) -> dict[str, str]:
    free, given = list(names), dict(given_names)
    assigned = {role: name for role, name in given.items() if name in free}
    free = [name for name in free if name not in assigned.values()]
    for role in roles:
        name = None if role in given else known_as(role, free, dict(others).get(role, ()))
        if name is not None:
            assigned[role] = name
            free.remove(name)
    return {role: assigned[role] for role in roles if role in assigned}


def check_distinct(given: Mapping[str, str]) -> None:
    """Refuse a name that was given to two roles."""
    role_of: dict[str, str] = {}
    for role, name in given.items():
        if (other := role_of.setdefault(name, role)) != role:
            raise DataError(f"expected one role, found {other} and {role}", field=name)


@dataclass(frozen=True)
class Roles:
    """Names that the caller gives to columns or fields; those left None are found by `NAMES`.

    A score is always the first stage's. What a teacher thinks is a label: ``label="score"``.

    >>> Roles(label="score").among(["query", "passage", "score"])
    {'query': 'query', 'passage': 'passage', 'label': 'score'}
    """

    query: str | None = None
    passage: str | None = None
    label: str | None = None
    score: str | None = None
    qid: str | None = None
    docid: str | None = None

    def __post_init__(self) -> None:
        check_distinct(self.given)

    @property
    def given(self) -> dict[str, str]:
        """The names that are not left to be found."""
        return {role: name for role, name in asdict(self).items() if name is not None}

    def among(self, names: Iterable[str]) -> dict[str, str]:
        """The name of each role that these names fill."""
        present = list(names)
        for name in self.given.values():
            if name not in present:
                raise DataError(f"no such name among {', '.join(present)}", field=name)
        return assign(present, asdict(self), self.given)
