"""What the server tells about itself, and what it logs."""

from __future__ import annotations

import json
import logging

import pytest

from didyma.serve.logs import JsonLines
from tests.serve.conftest import BODY, best_score, make_service, running


def test_info(model):
    with running(make_service(model)) as client:
        found = client.get("/info").json()
        assert found["model_id"] == "words"
        assert found["models"]["words"]["verdict"] == "kept"
        assert found["models"]["words"]["uses_scores"] is False
        assert found["limits"]["documents"] == found["max_client_batch_size"] == 1000


def test_metrics(model):
    with running(make_service(model)) as client:
        best_score(client)
        client.post("/rerank", json={"query": 1, "texts": []})
        found = client.get("/metrics")
        assert found.headers["content-type"].startswith("text/plain")
        for line in (
            'didyma_requests_total{dialect="cohere",status="200"} 1.0',
            'didyma_requests_total{dialect="tei",status="422"} 1.0',
            "didyma_request_documents_sum 2.0",
            'didyma_rank_seconds_count{model="words"} 1.0',
            "didyma_pending 0.0",
        ):
            assert line in found.text.splitlines()


def test_a_fault_is_told_without_its_cause(model, caplog):
    with running(make_service(model)) as client:
        found = client.post("/v2/rerank", json=BODY | {"query": "fault"})
    assert found.status_code == 500
    assert found.headers["x-request-id"] in found.json()["message"]
    assert "a fault of the server" not in found.text
    assert "a fault of the server" in caplog.text


def test_the_log_quotes_no_wrong_request(model, caplog):
    caplog.set_level(logging.INFO, "didyma.serve")
    with running(make_service(model)) as client:
        wrong = {"query": "a", "documents": [{"text": ["confidential"]}]}
        assert "confidential" in client.post("/v2/rerank", json=wrong).json()["message"]
    (record,) = [one for one in caplog.records if one.message == "request"]
    assert "confidential" not in JsonLines().format(record)


@pytest.mark.parametrize("log_queries", [False, True])
def test_the_log_has_no_texts(model, caplog, log_queries):
    caplog.set_level(logging.INFO, "didyma.serve")
    with running(make_service(model, log_queries=log_queries)) as client:
        secret = {"query": "private matters", "documents": ["confidential words"]}
        id = client.post("/v2/rerank", json=secret).headers["x-request-id"]
    (record,) = [one for one in caplog.records if one.message == "request"]
    found = json.loads(JsonLines().format(record))
    assert found["id"] == id
    assert found["status"] == 200
    assert found["documents"] == 1
    assert "confidential" not in json.dumps(found)
    assert ("private" in json.dumps(found)) == log_queries
