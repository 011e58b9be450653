"""A server in this process, and a client of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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


def make_service(*models: str | Path, **options: Any) -> Service:
    """A service over files of stand-ins."""
    sources = [NamedSource.of(str(model)) for model in models]
    return Service(ServedModels(sources, load), **options)


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
