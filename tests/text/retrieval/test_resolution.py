"""Search engines from addresses and functions."""

from __future__ import annotations

from typing import Any

import pytest

from didyma.errors import DataError
from didyma.text.retrieval import resolve


def test_functions_are_engines() -> None:
    def search(query: str, k: int) -> list[Any]:
        return [{"text": f"{query} {n}", "id": n, "score": 3.0 - n} for n in range(5)][:k]

    found = resolve(search).search("x", k=2)
    assert [(one.id, one.text, one.score) for one in found] == [
        ("0", "x 0", 3.0),
        ("1", "x 1", 2.0),
    ]
    with pytest.raises(DataError, match="score: expected a number for each passage"):
        resolve(lambda query, k: [{"text": "a", "score": "high"}]).search("x")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("mongo://x", "expected an address with sqlite://, .* found 'mongo://x'"),
        ("opensearch+http://x/notes?table=y", "opensearch.http: expected text, id, found 'table'"),
        ("tantivy:///x", r"text: expected the field that is searched: \?text=NAME"),
        ("postgresql://x/notes", r"table: expected the table with the passages: \?table=NAME"),
    ],
)
def test_an_address_of_nobody_is_told(address: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        resolve(address)
