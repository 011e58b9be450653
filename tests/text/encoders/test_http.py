"""Encoders behind endpoints: what is sent to them, and what they may answer."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.text.encoders import HTTPEncoder, http, resolve
from tests.text.encoders.models import vectors_of
from tests.text.teachers.standin import Answer, StandIn, serving

TEXTS = [f"text {n}, e {n * n}" for n in range(40)]


def embedding(path: str, body: dict[str, Any]) -> Answer:
    """An endpoint with both interfaces."""
    if path == "/embed":
        return 200, {}, vectors_of(body["inputs"]).tolist()
    vectors = vectors_of(body["input"]).tolist()
    items = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    return 200, {}, {"object": "list", "data": items[::-1], "model": body.get("model")}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv(http.KEY_VARIABLE, raising=False)
    with serving(embedding) as standin:
        yield standin


def unit(texts):
    vectors = vectors_of(texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_interface_of_openai(server):
    encoder = resolve(f"{server.address}/v1/embeddings#intfloat/e5-small")
    vectors = encoder.encode_queries(TEXTS)
    np.testing.assert_allclose(vectors, unit([f"query: {t}" for t in TEXTS]), atol=1e-6)
    assert [len(body["input"]) for body in server.asked] == [32, 8]
    assert server.asked[0] == {
        "input": [f"query: {text}" for text in TEXTS[:32]],
        "encoding_format": "float",
        "model": "intfloat/e5-small",
    }
    for again in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert np.array_equal(again.encode_queries(TEXTS), vectors)


def test_the_interface_of_tei(server, monkeypatch):
    monkeypatch.setenv(http.KEY_VARIABLE, "secret")
    encoder = HTTPEncoder(f"{server.address}/embed", query_prefix="ask: ")
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), unit(TEXTS), atol=1e-6)
    assert server.asked[0] == {"inputs": TEXTS[:32], "normalize": True, "truncate": True}
    assert server.headers[0]["Authorization"] == "Bearer secret"
    vectors = encoder.encode_queries(TEXTS[:1])
    np.testing.assert_allclose(vectors, unit([f"ask: {TEXTS[0]}"]), atol=1e-6)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, {}, {"error": "no key"}), "answers 401 Unauthorized: .*no key"),
        ((200, {}, {"data": 3}), "expected {'data': .*, found {\"data\": 3}"),
        ((200, {}, {"data": []}), "expected 1 vectors of one length"),
    ],
)
def test_answers_that_cannot_be_used(answer, message, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with serving(lambda path, body: answer) as server:
        url = f"{server.address}/v1/embeddings"
        with pytest.raises(DataError, match=f"encoder {url}: {message}"):
            resolve(url).encode_queries(["a"])


def test_an_address_that_is_none():
    with pytest.raises(DataError, match=r"ends in /embeddings \(as OpenAI's\) or /embed"):
        resolve("http://example.org/")
