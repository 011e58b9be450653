"""Limits, tokens, models by name, reloading, and what the server tells about itself."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from didyma.errors import DataError
from didyma.serve.access import VARIABLE, BearerTokens, check_host
from didyma.serve.app import Service
from didyma.serve.limits import Limits
from didyma.serve.logs import JsonLines
from didyma.serve.responses import HTTPError
from didyma.serve.served import NamedSource, ServedModels
from didyma.serve.work import WorkQueue
from tests.serve.conftest import make_service, running
from tests.serve.standin import load

BODY = {"query": "a b", "documents": ["b", "a b"]}
IN_TEI = {"query": "a b", "texts": ["b", "a b"]}


def best_score(client: httpx.Client, **more: Any) -> float:
    found = client.post("/v2/rerank", json=BODY | more)
    assert found.status_code == 200, found.text
    return found.json()["results"][0]["relevance_score"]


# Limits


@pytest.mark.parametrize(
    ("limits", "body"),
    [
        (Limits(documents=2), {**BODY, "documents": ["a"] * 3}),
        (Limits(characters=5), {**BODY, "documents": ["a", "a" * 6]}),
        (Limits(characters=5), {**BODY, "query": "a" * 6}),
        (Limits(text=10), {**BODY, "documents": ["a" * 4] * 2}),
        (Limits(body=100), {**BODY, "other": "a" * 100}),
    ],
)
def test_too_much_is_refused(model, limits, body):
    with running(make_service(model, limits=limits)) as client:
        found = client.post("/v2/rerank", json=body)
        assert found.status_code == 413
        assert "at most" in found.json()["message"]
        assert best_score(client) == 1.0


def test_a_long_body_without_a_declared_length_is_refused(model):
    with running(make_service(model, limits=Limits(body=100))) as client:
        found = client.post("/v2/rerank", content=(b" " * 60 for _ in range(4)))
        assert found.status_code == 413


def test_overload_is_429_and_ends(model):
    service = make_service(model, limits=Limits(waiting=1), threads=1)
    reranker = service.models.by_name["words"].reranker
    with running(service) as client:

        def ask() -> int:
            return httpx.post(
                f"{client.base_url}/v2/rerank", json=BODY | {"query": "wait"}
            ).status_code

        statuses: list[int] = []
        askers = [threading.Thread(target=lambda: statuses.append(ask())) for _ in range(2)]
        for asker in askers:
            asker.start()
        assert reranker.entered.acquire(timeout=20)
        while service.queue.pending < 2:
            time.sleep(0.01)
        refused = client.post("/v2/rerank", json=BODY)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["error"]["type"] == "RateLimitError"
        assert client.post("/rerank", json=IN_TEI).json()["error_type"] == "Overloaded"
        assert client.get("/ready").status_code == 503
        assert client.get("/health").status_code == 200
        reranker.gate.set()
        for asker in askers:
            asker.join()
        assert statuses == [200, 200]
        assert client.get("/ready").status_code == 200
        assert best_score(client) == 1.0


def test_what_takes_too_long_is_refused_and_keeps_its_place(model):
    service = make_service(model, limits=Limits(waiting=0, seconds=0.2), threads=1)
    reranker = service.models.by_name["words"].reranker
    with running(service) as client:
        late = client.post("/v2/rerank", json=BODY | {"query": "wait"})
        assert late.status_code == 429
        assert late.json()["message"] == "no answer within 0.2 s"
        assert service.queue.pending == 1  # the thread is still at it
        reranker.gate.set()
        while service.queue.pending:
            time.sleep(0.01)
        assert best_score(client) == 1.0


def test_what_waited_too_long_is_never_begun():
    async def ask(queue: WorkQueue) -> None:
        gate, begun = threading.Event(), []
        first = asyncio.create_task(queue.run(gate.wait, 20))
        await asyncio.sleep(0.05)
        with pytest.raises(HTTPError, match="no answer within"):
            await queue.run(lambda: begun.append(1), 0.05)
        assert queue.pending == 1
        gate.set()
        assert await first
        assert not begun

    queue = WorkQueue(1, 1)
    asyncio.run(ask(queue))
    queue.close()


def test_a_slow_sender_is_refused_and_blocks_nobody(model):
    with running(make_service(model, limits=Limits(seconds=0.3), threads=1)) as client:
        slow = socket.create_connection((client.base_url.host, client.base_url.port))
        slow.sendall(b"POST /v2/rerank HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{")
        half_open = socket.create_connection((client.base_url.host, client.base_url.port))
        half_open.sendall(b"POST /v2/re")
        assert best_score(client) == 1.0
        slow.settimeout(20)
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
        slow.close()
        half_open.close()


def test_a_client_that_leaves_harms_nobody(model):
    service = make_service(model)
    with running(service) as client:
        gone = socket.create_connection((client.base_url.host, client.base_url.port))
        gone.sendall(b"POST /v2/rerank HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{")
        gone.close()
        assert best_score(client) == 1.0


# Who may ask


@pytest.mark.parametrize("given", ["Bearer second", "bearer second", "second", "Bearer  second "])
def test_a_token_is_accepted_with_and_without_its_scheme(given):
    BearerTokens(["first", "second"]).check(given)


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer ", "Bearer secon", "Basic second"])
def test_no_other_token_is(given):
    with pytest.raises(HTTPError) as error:
        BearerTokens(["first", "second"]).check(given)
    assert error.value.status == 401


def test_tokens_guard_all_but_probes(model):
    with running(make_service(model, tokens=BearerTokens(["secret"]))) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/ready").status_code == 200
        for path in ("/info", "/metrics", "/openapi.json"):
            assert client.get(path).status_code == 401
        for path, body in (("/v2/rerank", BODY), ("/rerank", IN_TEI)):
            found = client.post(path, json=body, headers={"authorization": "Bearer wrong"})
            assert found.status_code == 401
            assert found.headers["www-authenticate"] == "Bearer"
        client.headers["authorization"] = "Bearer secret"
        assert best_score(client) == 1.0
        assert client.get("/metrics").status_code == 200


def test_tokens_come_from_a_file_and_the_environment(tmp_path, monkeypatch):
    path = tmp_path / "tokens"
    path.write_text("# of two teams\nfirst\n\n  second  \n")
    monkeypatch.setenv(VARIABLE, "third fourth")
    tokens = BearerTokens.read(path)
    assert len(tokens) == 4
    for token in ("first", "second", "third", "fourth"):
        tokens.check(token)
    monkeypatch.delenv(VARIABLE)
    assert len(BearerTokens.read(None)) == 0
    path.write_text("sécret\n")
    with pytest.raises(DataError, match="ASCII"):
        BearerTokens.read(path)
    path.write_text("# none\n")
    with pytest.raises(DataError, match="tokens: expected a token"):
        BearerTokens.read(path)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_needs_no_token(host):
    check_host(host, has_tokens=False, insecure=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_other_addresses_do(host):
    with pytest.raises(DataError, match="tokens"):
        check_host(host, has_tokens=False, insecure=False)
    check_host(host, has_tokens=True, insecure=False)
    check_host(host, has_tokens=False, insecure=True)


# Models


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    paths = {name: tmp_path / f"{name}.safetensors" for name in ("one", "two")}
    for bonus, path in enumerate(paths.values()):
        path.write_text(str(bonus))
    return paths


def test_a_model_without_a_name_answers_to_all_others(files):
    with running(make_service(files["one"], f"second={files['two']}")) as client:
        assert best_score(client) == 1.0
        assert best_score(client, model="rerank-v3.5") == 1.0
        assert best_score(client, model="one") == 1.0
        assert best_score(client, model="second") == 2.0


def test_names_alone_are_all_there_is(files):
    with running(make_service(f"first={files['one']}", f"second={files['two']}")) as client:
        assert best_score(client) == 1.0
        assert best_score(client, model="second") == 2.0
        found = client.post("/v2/rerank", json=BODY | {"model": "third"})
        assert found.status_code == 404
        assert found.json()["message"] == "expected one of the models first, second"
        assert client.post("/rerank", json=IN_TEI | {"model": "third"}).status_code == 404


def test_names_must_tell_models_apart(files):
    with pytest.raises(DataError, match="names"):
        ServedModels([NamedSource.of(str(path)) for path in files.values()], load)
    with pytest.raises(DataError, match="different names"):
        ServedModels([NamedSource.of(f"a={path}") for path in files.values()], load)
    for text in ("=file", "name="):
        with pytest.raises(DataError, match="NAME=FILE"):
            NamedSource.of(text)


def test_a_file_with_an_equals_sign_is_a_file(tmp_path):
    path = tmp_path / "a=b.safetensors"
    path.write_text("0")
    assert NamedSource.of(str(path)) == (path, None, None)


def eventually(check: Any) -> None:
    until = time.monotonic() + 20
    while not check():
        assert time.monotonic() < until
        time.sleep(0.02)


def replace_file(path: Path, text: str) -> None:
    """Put a whole file in the place of another, so that a look at it finds the one or the other."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_a_changed_file_is_loaded_anew(model, monkeypatch):
    monkeypatch.setattr("didyma.serve.app.EVERY", 0.02)
    service = make_service(model)
    with running(service) as client:
        assert best_score(client) == 1.0
        replace_file(model, "0.5")
        eventually(lambda: best_score(client) == 1.5)
        replace_file(model, "unknown")  # a KeyError, as any fault might be
        failed = 'didyma_reloads_total{model="words",outcome="failed"} 1.0'
        eventually(lambda: failed in client.get("/metrics").text)
        model.unlink()
        time.sleep(0.1)
        assert failed in client.get("/metrics").text  # once, not at every look
        assert best_score(client) == 1.5
        replace_file(model, "0.25")
        eventually(lambda: best_score(client) == 1.25)


def test_a_file_that_is_read_for_ever_keeps_nobody_waiting(files, monkeypatch):
    monkeypatch.setattr("didyma.serve.app.EVERY", 0.02)
    gate, begun = threading.Event(), threading.Event()

    def load_or_hang(path: Path) -> Any:
        if path.read_text() == "hang":
            begun.set()
            gate.wait()
        return load(path)

    sources = [NamedSource.of(f"{name}={path}") for name, path in files.items()]
    service = Service(ServedModels(sources, load_or_hang))
    try:
        with running(service) as client:
            replace_file(files["one"], "hang")
            assert begun.wait(20)
            replace_file(files["two"], "0.5")
            eventually(lambda: best_score(client, model="two") == 1.5)
            assert best_score(client, model="one") == 1.0
    finally:  # the server has ended by now
        gate.set()


def test_a_request_keeps_the_model_that_it_began_with(model):
    service = make_service(model)
    old = service.models.by_name["words"].reranker
    with running(service) as client:
        found: list[httpx.Response] = []
        body = {"query": "wait", "documents": ["wait"]}
        url = f"{client.base_url}/v2/rerank"
        asker = threading.Thread(target=lambda: found.append(httpx.post(url, json=body)))
        asker.start()
        assert old.entered.acquire(timeout=20)
        model.write_text("0.5")
        service.models.reload("words")
        assert best_score(client) == 1.5
        old.gate.set()
        asker.join()
        assert found[0].json()["results"][0]["relevance_score"] == 1.0


# What the server tells


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


def test_the_description_describes_what_is_answered(model):
    with running(make_service(model, tokens=BearerTokens(["a"]))) as client:
        found = client.get("/openapi.json", headers={"authorization": "a"}).json()
    assert found["openapi"] == "3.1.0"
    assert {"/v2/rerank", "/v1/rerank", "/rerank", "/health", "/info"} <= found["paths"].keys()
    schemas = found["components"]["schemas"]
    assert schemas["DocumentsBody"]["required"] == ["query", "documents"]
    assert schemas["TextsBody"]["required"] == ["query", "texts"]
    assert found["security"] == [{"token": []}]
    parts = json.dumps(found).split("#/components/schemas/")
    used = {part.partition('"')[0] for part in parts[1:]}
    assert used == schemas.keys()


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
