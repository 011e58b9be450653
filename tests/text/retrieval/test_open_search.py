"""OpenSearch and Elasticsearch: requests and answers in the form that both document.

No such server runs here; the answer is written by hand after the reference of their search request.
"""

from __future__ import annotations

from typing import Any

import pytest

from didyma.errors import DataError
from didyma.text.retrieval import OpenSearchEngine, resolve

ANSWER = {
    "took": 3,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
    "hits": {
        "total": {"value": 2, "relation": "eq"},
        "max_score": 1.25,
        "hits": [
            {"_index": "n", "_id": "7", "_score": 1.25, "_source": {"title": "Emma", "body": "A."}},
            {"_index": "n", "_id": "9", "_score": 0.5, "_source": {"body": "B.", "year": 1808}},
        ],
    },
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    requests: list[Any] = []

    def post(url: str, body: dict[str, Any], **_: Any) -> Any:
        requests.append((url, body))
        return ANSWER if "broken" not in url else {"error": "index_not_found_exception"}

    monkeypatch.setattr("didyma.text.retrieval.open_search.post_json", post)
    return requests


def test_hits_become_passages(asked: list[Any]) -> None:
    engine = resolve("opensearch+https://localhost:9200/notes?text=title^2,body")
    found = engine.search("who?", k=2)
    assert asked == [
        (
            "https://localhost:9200/notes/_search",
            {"size": 2, "query": {"multi_match": {"query": "who?", "fields": ["title^2", "body"]}}},
        )
    ]
    assert [(one.id, one.score, one.text) for one in found] == [
        ("7", 1.25, "Emma A."),
        ("9", 0.5, "B."),
    ]
    assert found[1].metadata == {"year": 1808}


def test_all_fields_are_searched_where_none_is_named(asked: list[Any]) -> None:
    OpenSearchEngine("http://localhost:9200/notes/").search("who?")
    assert asked[0] == (
        "http://localhost:9200/notes/_search",
        {"size": 10, "query": {"multi_match": {"query": "who?"}}},
    )


def test_an_answer_without_hits_is_told(asked: list[Any]) -> None:
    with pytest.raises(DataError, match="search: expected hits with _id, _score and _source"):
        OpenSearchEngine("http://localhost:9200/broken").search("who?")
