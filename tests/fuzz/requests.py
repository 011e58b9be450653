"""Requests to the server, of all dialects and routes, as targets."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import didyma
from didyma.errors import DataError
from didyma.serve.access import BearerTokens
from didyma.serve.app import Service
from didyma.serve.limits import Limits
from didyma.serve.served import NamedSource, ServedIndexes, ServedModels
from didyma.text.index import PassageIndex
from tests.fuzz.mutators import Parts
from tests.fuzz.target import Fault, Target

__all__ = ["REQUESTS"]

PASSAGES = ["They ring .", "A ring is round .", "It rains ."]
HEADERS = {"authorization": "Bearer ours", "content-type": "application/json"}
TEXTS = {"query": "who rings ?", "texts": PASSAGES, "return_text": True, "raw_scores": False}
DOCUMENTS = {
    "query": "who rings ?",
    "documents": [*PASSAGES[:2], {"text": "It rains .", "id": 7, "title": "Late"}],
    "top_n": 2,
    "return_documents": True,
    "scores": None,
}
SPANS = {"mode": "auto", "threshold": 0.5, "max_spans": 2}
BODIES: dict[str, tuple[str, Any]] = {
    "cohere": ("/v2/rerank", {**DOCUMENTS, "max_tokens_per_doc": 10}),
    "jina": ("/v1/rerank", {**DOCUMENTS, "model": "first"}),
    "spans": ("/any/v1/rerank", {**DOCUMENTS, "relevant_spans": SPANS, "explain": True}),
    "tei": ("/rerank", {**TEXTS, "explain": True}),
    "search": (
        "/v1/search",
        {"query": "ring", "top_n": 2, "candidates": 3, "index": "notes", "explain": True},
    ),
    **{path: (f"/{path}", None) for path in ("health", "ready", "info", "metrics", "openapi.json")},
}


class Server:
    """A server in this process, without a socket."""

    def __init__(self, folder: Path) -> None:
        queries, passages = ["who rings ?", "who ?"], [PASSAGES[:2], PASSAGES[1:]]
        fitted = didyma.TextReranker(quick=True).fit(queries, passages, [[1, 0], [0, 1]])
        fitted.save(folder / "first")
        PassageIndex.build(PASSAGES, folder / "notes")
        self.app = Service(
            ServedModels([NamedSource(folder / "first", None)]),
            Limits(body=1 << 20),
            BearerTokens(["ours"]),
            indexes=ServedIndexes([NamedSource(folder / "notes", "notes")]),
            threads=1,
            log_queries=True,
        ).app
        self._loop = asyncio.new_event_loop()

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """Status and body of an answer."""
        said: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(errors="replace"),
            "root_path": "",
            "query_string": b"",
            "headers": [
                (n.lower().encode("latin-1", "replace"), v.encode("latin-1", "replace"))
                for n, v in headers.items()
            ],
            "server": ("localhost", 80),
            "client": ("localhost", 1),
        }
        self._loop.run_until_complete(self.app(scope, receive, send))
        whole = b"".join(message.get("body", b"") for message in said[1:])
        return said[0]["status"], whole


@cache
def server() -> Server:
    return Server(Path(tempfile.mkdtemp()))


def seed(path: str, body: Any) -> Callable[[Path], Parts]:
    request = {"method": "GET" if body is None else "POST", "path": path, "headers": HEADERS}
    parts = {"request.json": json.dumps(request).encode()}
    if body is not None:
        parts["body.json"] = json.dumps(body).encode()
    return lambda folder: parts


def ask(place: Path) -> Any:
    """The answer; a refusal is told as an error."""
    body = (place / "body.json").read_bytes() if (place / "body.json").exists() else b""
    try:
        given = json.loads((place / "request.json").read_bytes())
        method, path, headers = given["method"], given["path"], given["headers"]
        headers = {str(name): str(value) for name, value in headers.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DataError("not a request", path=place) from None
    # No server hands on what is not UTF-8.
    method, path = (str(own).encode(errors="replace").decode() for own in (method, path))
    status, answer = server().ask(method, path, headers, body)
    if status >= 500:
        raise Fault(f"status {status}: {answer[:300]!r}")
    if status >= 400:
        told = json.loads(answer)
        if not (isinstance(told.get("error", told), (dict, str)) and len(answer) < 5000):
            raise Fault(f"a refusal without a reason: {answer[:300]!r}")
        raise DataError(f"status {status}", path=place)
    return answer


REQUESTS = [Target(f"http-{name}", seed(*own), ask) for name, own in BODIES.items()]
