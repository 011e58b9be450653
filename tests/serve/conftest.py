"""A server in this process, clients of it, and what they ask."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from didyma.serve.app import Service
from didyma.serve.served import NamedSource, ServedModels
from didyma.serve.server import listen, make_server
from didyma.text.text_reranker import TextReranker
from tests.serve.standin import load
from tests.text.texts import made

BODY = {"query": "a b", "documents": ["b", "a b"]}
IN_TEI = {"query": "a b", "texts": ["b", "a b"]}


def post(client: httpx.Client, path: str, body: Any, status: int = 200) -> Any:
    """The JSON of an answer that has this status."""
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def best_score(client: httpx.Client, **more: Any) -> float:
    """The score of the best document of `BODY`."""
    score: float = post(client, "/v2/rerank", BODY | more)["results"][0]["relevance_score"]
    return score


def eventually(check: Callable[[], Any], seconds: float = 20) -> None:
    """Wait until something is true."""
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def connected(client: httpx.Client, sent: bytes = b"") -> Iterator[socket.socket]:
    """A connection to the server of a client, over which these bytes were sent."""
    address = (client.base_url.host, client.base_url.port)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(sent)
        yield connection


@contextmanager
def running(service: Service) -> Iterator[httpx.Client]:
    """Serve on loopback, and give a client."""
    listening = listen("127.0.0.1", 0)
    server = make_server(service)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=address, timeout=20) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The file of a model."""
    path = tmp_path / "words.didyma.safetensors"
    path.write_text("0")
    return path


def make_service(*models: str | Path, load: Any = load, **options: Any) -> Service:
    """A service over files of stand-ins, or of what ``load`` reads."""
    sources = [NamedSource.of(str(model)) for model in models]
    return Service(ServedModels(sources, load), **options)


def trained_service(*models: str | Path, **options: Any) -> Service:
    """A service over files of trained rerankers."""
    return make_service(*models, load=None, **options)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of one model and default limits."""
    path = tmp_path_factory.mktemp("service") / "words.didyma.safetensors"
    path.write_text("0")
    with running(make_service(path)) as found:
        yield found


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a trained reranker."""
    path = tmp_path_factory.mktemp("trained") / "first.safetensors"
    TextReranker(quick=True).fit(made(12, 0)).save(path)
    return path
