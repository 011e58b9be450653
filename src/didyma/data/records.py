"""Documents as mappings from names of fields to values, whatever they came as."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from didyma.data.passage import Passage, flattened
from didyma.errors import DataError
from didyma.values import kind_of

TEXT = "text"  # what the text of a document is called that is nothing else
Fail = Callable[[int, str, str], NoReturn]  # raises the error about a row, a field and a problem


def fail_in_document(row: int, field: str, problem: str) -> NoReturn:
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
        fail(row, TEXT, f"expected a text or an object with one, found {kind_of(document)}")
    for name in document:
        if not isinstance(name, str):
            fail(row, repr(name), "expected names that are texts")
    return flattened(document)
