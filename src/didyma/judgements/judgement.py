"""One judgement: query, document, label, who, when, why, and the list that was shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Self

from didyma.data.json_lines import number_of
from didyma.errors import DataError
from didyma.values import shown as quoted


@dataclass(frozen=True)
class Judgement:
    """What somebody thinks of a document for a query.

    Attributes
    ----------
    query : str
        Its text.
    document : str
        Its id, or its text if it has none.
    label : float or None
        A grade, or a teacher's score; None takes back what the same judge has said before.
    who, when, why : str
        The judge, the time in UTC as ISO 8601 has it, and a reason.
    shown : tuple of str
        Documents of the list that it was judged in, in their order.
    text : str or None
        That of the document, where ``document`` is an id.
    qid : str or None
        The id of the query.

    >>> Judgement("who rang?", "d7", 1, who="anna").record
    {'query': 'who rang?', 'document': 'd7', 'label': 1, 'who': 'anna'}
    """

    query: str
    document: str
    label: float | None
    who: str = ""
    when: str = ""
    why: str = ""
    shown: tuple[str, ...] = ()
    text: str | None = None
    qid: str | None = None

    def __post_init__(self) -> None:
        for name in ("query", "document"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise DataError(f"expected a text, found {quoted(value)}", field=name)
        if self.label is not None:
            number_of(self.label, "label")
        for name in ("who", "when", "why"):
            if not isinstance(getattr(self, name), str):
                problem = f"expected a text, found {quoted(getattr(self, name))}"
                raise DataError(problem, field=name)
        for name in ("text", "qid"):
            if not isinstance(getattr(self, name), str | None):
                problem = f"expected a text, found {quoted(getattr(self, name))}"
                raise DataError(problem, field=name)
        if not all(isinstance(one, str) for one in self.shown):
            raise DataError("expected texts", field="shown")
        if self.when:
            _check_time(self.when)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """The judgement of an object, as JSON has it; unknown entries are refused."""
        values = dict(record)
        names = [field.name for field in fields(cls)]
        for name in values:
            if name not in names:
                raise DataError(f"expected one of {', '.join(names)}, found {name!r:.40}")
        for name in ("query", "document", "label"):
            if name not in values:
                raise DataError("expected it, found none", field=name)
        if not isinstance(values.setdefault("shown", ()), (list, tuple)):
            raise DataError("expected a list", field="shown")
        return cls(**{**values, "shown": tuple(values["shown"])})

    @property
    def record(self) -> dict[str, Any]:
        """The object, without what is not known."""
        return {
            name: list(value) if name == "shown" else value
            for name, value in asdict(self).items()
            if name == "label" or value not in ("", (), None)
        }

    @property
    def passage(self) -> str:
        """The text of the document, or its id where only that is known."""
        return self.document if self.text is None else self.text


def now() -> str:
    """The present time."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _check_time(when: str) -> None:
    try:
        has_zone = datetime.fromisoformat(when).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        problem = f"expected a time such as 2026-01-31T12:00:00+00:00, found {when!r:.40}"
        raise DataError(problem, field="when")
