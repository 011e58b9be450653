"""Steps after ranking, asked for by requests and by whoever starts the server."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from didyma.text import Boost, Diversity
from tests.serve.conftest import make_service, running

QUERY = "ship storm sails"
DOCUMENTS: list[Any] = [
    {"text": "ship storm sails", "kind": "law"},
    {"text": "ship storm sails", "kind": "law"},
    {"text": "ship storm", "kind": "news"},
]


def indexes(client: httpx.Client, path: str = "/v2/rerank", **more: Any) -> list[int]:
    names = "texts" if path == "/rerank" else "documents"
    found = client.post(path, json={"query": QUERY, names: DOCUMENTS, **more})
    assert found.status_code == 200, found.text
    answer = found.json()
    return [one["index"] for one in (answer if isinstance(answer, list) else answer["results"])]


@pytest.mark.parametrize("path", ["/v2/rerank", "/v1/rerank", "/rerank"])
def test_a_request_asks_for_steps(client, path):
    assert indexes(client, path) == [0, 1, 2]
    assert indexes(client, path, then=[{"step": "diversity", "weight": 0.5, "by": "kind"}]) == [
        0,
        2,
        1,
    ]
    boost = {"step": "boost", "field": "kind", "value": "news", "amount": 1}
    assert indexes(client, path, then=[boost]) == [2, 0, 1]
    assert indexes(client, path, then=None) == indexes(client, path, then=[]) == [0, 1, 2]


def test_each_result_says_what_steps_did_and_keeps_its_score(client):
    then = [
        {"step": "recency", "field": "date", "half_life": "30d"},
        {"step": "diversity", "weight": 0.5, "by": "kind"},
    ]
    body = {"query": QUERY, "documents": DOCUMENTS, "then": then, "top_n": 2}
    answer = client.post("/v2/rerank", json=body).json()
    assert [one["relevance_score"] for one in answer["results"]] == [1.0, pytest.approx(2 / 3)]
    assert [step["step"] for step in answer["results"][0]["steps"]] == ["recency", "diversity"]
    assert answer["results"][1]["steps"][1] == {
        "step": "diversity",
        "value": pytest.approx(1 / 3),
        "rank_before": 3,
        "rank": 2,
        "reason": "like none before",
    }
    assert "recency: no document has date" in answer["notes"]


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ([{"step": "magic"}], "then"),
        ([{"step": "diversity", "weight": 2}], "then 0, weight"),
        ([{"step": "recency", "field": "d", "half_life": "soon"}], "then 0, half_life"),
        ([{"step": "boost", "field": "k", "value": {}, "amount": 1}], "value"),
        ([{"step": "diversity", "weight": 0.1}] * 2, "last step"),
        ([{"step": "boost", "field": "k", "value": 1, "amount": 1}] * 17, "length"),
        ([{"step": "recency", "field": "kind", "half_life": "1d"}], "document 0, kind"),
        ("diversity", "then"),
    ],
)
def test_what_is_wrong_with_steps_is_told(client, then, said):
    body = {"query": QUERY, "documents": DOCUMENTS, "then": then}
    found = client.post("/v2/rerank", json=body)
    assert found.status_code == 400
    assert said in found.json()["message"]


def test_the_server_has_steps_that_requests_can_do_without(model):
    with running(make_service(model, then=[Boost("kind", "news", 1), Diversity(0.5)])) as client:
        assert indexes(client) == [2, 0, 1]
        assert indexes(client, then=[]) == [0, 1, 2]
        pairs = client.post("/score", json={"query": QUERY, "documents": DOCUMENTS})
        assert pairs.status_code == 400  # the stand-in tells no chances
