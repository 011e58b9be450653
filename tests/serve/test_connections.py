"""Connections that wait for their clients: how long, and how many."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from didyma.errors import DataError
from didyma.serve.access import AllowedHosts
from didyma.serve.connections import SPARE_CONNECTIONS, connections_within
from didyma.serve.limits import Limits
from tests.serve.conftest import BODY, best_score, connected, eventually, make_service, running
from tests.serve.process import ServerProcess

HEAD = b"POST /v1/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Length: "


def request(**more: object) -> bytes:
    content = json.dumps(BODY | more).encode()
    return HEAD + b"%d\r\n\r\n%b" % (len(content), content)


REQUEST = request()


def rest(connection: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    found = b""
    with suppress(ConnectionResetError, BrokenPipeError):
        while piece := connection.recv(1 << 16):
            found += piece
    return found


@pytest.fixture
def brief(model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of a server that waits for nobody for long."""
    monkeypatch.setattr("didyma.serve.server.KEEP_ALIVE", 1)
    with running(make_service(model, limits=Limits(seconds=0.5))) as client:
        yield client


def test_no_connection_waits_for_ever_for_its_client(brief):
    """A law: wherever a client stops, in a first request or a second, the connection ends."""
    with ExitStack() as stack:
        stops = [*range(0, len(REQUEST), 5), len(REQUEST)]
        connections = [
            stack.enter_context(connected(brief, before + REQUEST[:stop]))
            for before in (b"", REQUEST)
            for stop in stops
        ]
        answers = [rest(connection) for connection in connections]
    for stop, first, second in zip(stops * 2, answers, answers[len(stops) :]):
        if 0 < stop < len(REQUEST):
            assert first.startswith(b"HTTP/1.1 408")
        assert second.startswith(b"HTTP/1.1 200")


def is_ended(slow):
    """Whether the server ends a connection on which bytes keep coming, one at a time."""
    slow.settimeout(0.05)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        slow.sendall(b"a")
        with suppress(TimeoutError):
            if not slow.recv(1 << 16):
                return True
    return False


@pytest.mark.parametrize("sent", [b"POST /v2/rer", REQUEST + b"GET /hea", HEAD + b"1\r\nX-Slow: "])
def test_a_head_that_comes_bit_by_bit_is_ended(brief, sent):
    with connected(brief, sent) as slow, suppress(ConnectionResetError, BrokenPipeError):
        assert is_ended(slow)


def test_the_rest_of_a_refused_body_is_not_read_for_ever(brief):
    with (
        connected(brief, HEAD + b"999999999\r\n\r\n") as slow,
        suppress(ConnectionResetError, BrokenPipeError),
    ):
        assert slow.recv(1000).startswith(b"HTTP/1.1 413")
        assert is_ended(slow)


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    "head",
    [
        b"POST /v2/rerank HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /v2/rerank HTTP/1.1\r\nHost: x\r\n",  # which is not allowed
        b"POST /v2/rerank HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n",
        b"POST /nothing HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
    ],
)
def test_a_malformed_chunk_is_no_fault_of_the_server(model, caplog, head, later):
    """A law: whoever answers, and whether before the chunk is read or after."""
    service = make_service(model, hosts=AllowedHosts("127.0.0.1"))
    with running(service) as client:
        with connected(client, head + CHUNKED) as connection:
            if later:
                time.sleep(0.1)
            connection.sendall(b"zz\r\n")
            assert rest(connection).startswith(b"HTTP/1.1 ")
        with connected(client, head + CHUNKED + b"zz\r\n") as connection:
            assert rest(connection).startswith(b"HTTP/1.1 ")
        assert best_score(client) == 1.0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_an_answer_that_nobody_takes_is_given_up(model):
    service = make_service(model, limits=Limits(seconds=1))
    content = request(documents=["a" * 90_000] * 150, return_documents=True)
    with running(service) as client, connected(client, content) as idle:
        eventually(lambda: not len(service.connections))
        assert len(rest(idle)) < len(content)


def test_the_longest_wait_makes_room(model):
    service = make_service(model, limits=Limits(connections=4), threads=1)
    reranker = service.models.by_name["words"].reranker
    with running(service) as client, ExitStack() as stack:
        asked = stack.enter_context(connected(client, request(query="wait")))
        assert reranker.entered.acquire(timeout=20)
        idle = [stack.enter_context(connected(client, b"GET /")) for _ in range(20)]
        assert client.get("/health").status_code == 200
        assert rest(idle[0]) == b""
        assert len(service.connections) <= 4
        reranker.gate.set()
        assert asked.recv(1000).startswith(b"HTTP/1.1 200")


def test_probes_are_answered_where_every_connection_works(model):
    service = make_service(model, limits=Limits(connections=2), threads=2)
    reranker = service.models.by_name["words"].reranker
    with running(service) as client, ExitStack() as stack:
        asked = request(query="wait")
        working = [stack.enter_context(connected(client, asked)) for _ in range(2)]
        for _ in working:
            assert reranker.entered.acquire(timeout=20)
        assert client.get("/health").status_code == 200
        refused = client.post("/v2/rerank", json=BODY)
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["connection"] == "close"
        many = [stack.enter_context(connected(client)) for _ in range(3 * SPARE_CONNECTIONS)]
        assert client.get("/health").status_code == 200
        assert len(service.connections) <= 2 + SPARE_CONNECTIONS
        reranker.gate.set()
        for connection in [*working, *many]:
            connection.close()
        eventually(lambda: client.post("/v2/rerank", json=BODY).status_code == 200)


@pytest.mark.skipif(os.name == "nt", reason="limits of the system")
def test_more_connections_than_open_files(model_file):
    few = ["sh", "-c", 'ulimit -n 320; exec "$@"', "sh"]
    with ServerProcess(model_file, before=few) as server, ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(connected(server.client))
        assert server.client.get("/health").status_code == 200
        threads = [
            threading.Thread(target=lambda: stack.enter_context(connected(server.client)))
            for _ in range(100)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.client.get("/health").status_code == 200
        body = {"query": "when?", "documents": ["Here.", "There."]}
        assert server.client.post("/v2/rerank", json=body).status_code == 200
        server.process.terminate()
        server.said("ended")  # and every line up to it was JSON
        assert not [line for line in server.before if line["level"] == "ERROR"]


@pytest.mark.skipif(os.name == "nt", reason="limits of the system")
def test_too_few_open_files_are_told(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    with pytest.raises(DataError, match="64 open files are too few"):
        connections_within(512)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10_000, 10_000))
    assert connections_within(512) == 512


def test_a_slow_sender_is_refused_and_blocks_nobody(model):
    with (
        running(make_service(model, limits=Limits(seconds=0.3), threads=1)) as client,
        connected(client, HEAD + b"50\r\n\r\n{") as slow,
        connected(client, b"POST /v2/re"),
    ):
        assert best_score(client) == 1.0
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_client_that_leaves_harms_nobody(model):
    with running(make_service(model)) as client:
        with connected(client, HEAD + b"50\r\n\r\n{"):
            pass
        assert best_score(client) == 1.0
