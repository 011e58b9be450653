"""Endpoints: what is sent to them, what they may answer, and what is said of the rest."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.text import endpoints
from didyma.text.encoders import HTTPEncoder, http, resolve
from tests.text.encoders.models import vectors_of

TEXTS = [f"text {n}, e {n * n}" for n in range(40)]


@pytest.fixture
def server(monkeypatch):
    """An endpoint with both interfaces; ``failures`` are what it answers first."""
    monkeypatch.setattr(endpoints, "PAUSE", 0.001)
    monkeypatch.delenv(http.KEY_VARIABLE, raising=False)
    monkeypatch.setenv("no_proxy", "*")
    asked, failures = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, dict(self.headers), body))
            if failures:
                code, headers, data = failures.pop(0)
            else:
                code, headers, data = 200, {}, json.dumps(answer(self.path, body)).encode()
            self.send_response(code)
            for name, value in {"Content-Length": len(data), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words):
            pass

    def answer(path, body):
        if path == "/embed":
            return vectors_of(body["inputs"]).tolist()
        found = vectors_of(body["input"]).tolist()
        items = [{"index": n, "embedding": vector} for n, vector in enumerate(found)]
        return {"object": "list", "data": items[::-1], "model": body.get("model")}

    with running(Handler) as url:
        yield url, asked, failures


@contextmanager
def running(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def unit(texts):
    vectors = vectors_of(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_interface_of_openai(server):
    url, asked, _ = server
    encoder = resolve(f"{url}/v1/embeddings#intfloat/e5-small")
    found = encoder.encode_queries(TEXTS)
    np.testing.assert_allclose(found, unit([f"query: {t}" for t in TEXTS]), atol=1e-6)
    assert [path for path, *_ in asked] == ["/v1/embeddings"] * 2  # in batches of 32
    assert asked[0][2] == {
        "input": [f"query: {text}" for text in TEXTS[:32]],
        "encoding_format": "float",
        "model": "intfloat/e5-small",
    }
    assert "Authorization" not in asked[0][1]
    for again in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert np.array_equal(again.encode_queries(TEXTS), found)


def test_the_interface_of_tei(server):
    url, asked, _ = server
    encoder = HTTPEncoder(f"{url}/embed", query_prefix="ask: ")
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), unit(TEXTS), atol=1e-6)
    assert asked[0][2] == {"inputs": TEXTS[:32], "normalize": True, "truncate": True}
    found = encoder.encode_queries(TEXTS[:1])
    np.testing.assert_allclose(found, unit([f"ask: {TEXTS[0]}"]), atol=1e-6)


def test_a_key_is_sent_but_never_in_the_clear(server, monkeypatch):
    url, asked, _ = server
    monkeypatch.setenv(http.KEY_VARIABLE, "secret")
    HTTPEncoder(f"{url}/embed").encode_queries(["a e"])
    assert asked[0][1]["Authorization"] == "Bearer secret"
    with pytest.raises(DataError, match="not sent without TLS") as error:
        HTTPEncoder("http://example.org/embed").encode_queries(["a"])
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("code", [429, 503])
def test_what_may_go_by_is_tried_again(server, code):
    url, asked, failures = server
    failures += [(code, {"Retry-After": "0"}, b"busy"), (code, {}, b"busy")]
    np.testing.assert_allclose(
        HTTPEncoder(f"{url}/embed").encode_queries(TEXTS[:1]), unit(TEXTS[:1]), atol=1e-6
    )
    assert len(asked) == 3
    failures += [(code, {}, b"still busy")] * 4
    with pytest.raises(DataError, match=f"encoder {url}/embed: answers {code} .*: still busy"):
        HTTPEncoder(f"{url}/embed").encode_queries(TEXTS[:1])


@pytest.mark.parametrize(
    ("code", "headers", "data", "message"),
    [
        (401, {}, b'{"error": "no key"}', "answers 401 Unauthorized: .*no key"),
        (302, {"Location": "http://127.0.0.1:9/embed"}, b"", "answers 302 Found"),
        (200, {}, b"<html>", "expected an answer in JSON"),
        (200, {}, b'{"data": 3}', "expected {'data': .*, found {\"data\": 3}"),
        (200, {}, b'{"data": []}', "expected 1 vectors of one length"),
    ],
)
def test_answers_that_cannot_be_used(server, code, headers, data, message):
    url, asked, failures = server
    failures.append((code, headers, data))
    with pytest.raises(DataError, match=message):
        resolve(f"{url}/v1/embeddings").encode_queries(["a"])
    assert len(asked) == 1


def test_nobody_there(monkeypatch):
    monkeypatch.setattr(endpoints, "PAUSE", 0.001)
    monkeypatch.setenv("no_proxy", "*")
    with running(BaseHTTPRequestHandler) as url:
        pass
    with pytest.raises(DataError, match="cannot be reached"):
        HTTPEncoder(f"{url}/embed").encode_queries(["a"])
    with pytest.raises(DataError, match=r"ends in /embeddings \(as OpenAI's\) or /embed"):
        resolve("http://example.org/")
