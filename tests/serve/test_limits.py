"""How much a request may ask for."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.serve.limits import VALUES, Limits, values_of
from tests.serve.conftest import BODY, best_score, make_service, running


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


def test_values_of_vectors_have_room():
    limits = Limits(documents=9)
    body = json.dumps([[1.0] * 100] * (VALUES * 10 // 100 + 1)).encode()
    limits.check_values(body, dimension=100)
    with pytest.raises(Exception, match="at most 640 values"):
        limits.check_values(body)


@pytest.mark.parametrize("encoding", ["gzip", "br", "x-unheard", "gzip, identity"])
def test_a_body_that_is_compressed_is_refused_as_such(model, encoding):
    body = gzip.compress(json.dumps(BODY).encode())
    with running(make_service(model)) as client:
        for path in ("/v2/rerank", "/rerank", "/v1/score"):
            found = client.post(path, content=body, headers={"content-encoding": encoding})
            assert found.status_code == 415
            assert f"a body that is not compressed, found '{encoding}'" in found.text
        found = client.post("/v2/rerank", json=BODY, headers={"content-encoding": "identity"})
        assert found.status_code == 200


SCALARS = st.none() | st.booleans() | st.integers() | st.text('a,[{"\\é', max_size=5)


JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('a,"{\\'), inner, max_size=4)
    ),
    max_leaves=20,
)


def members(value: Any) -> int:
    if not isinstance(value, (list, dict)):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    return max(1, len(inner)) + sum(map(members, inner))


@given(value=JSON, ascii=st.booleans())
def test_values_are_counted_before_they_are_made(value, ascii):
    text = json.dumps(value, ensure_ascii=ascii).encode()
    assert values_of(text, 1000) == members(value)
    assert values_of(text, 1) == min(members(value), 2)


def test_a_body_of_many_values_makes_no_objects(model):
    content = b'{"query": "a", "documents": [' + b"{}," * 1_000_000 + b"{}]}"
    with running(make_service(model)) as client:
        client.post("/v2/rerank", json=BODY)
        tracemalloc.start()
        try:
            found = client.post("/v2/rerank", content=content)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert found.status_code == 413
    assert "values" in found.json()["message"]
    assert peak < 5 * len(content)


def test_documents_with_fields_are_no_such_body(model):
    document = {f"field {n}": n for n in range(50)} | {"text": "a, b, [c]" * 1000}
    with running(make_service(model)) as client:
        found = client.post("/v2/rerank", json={"query": "a", "documents": [document] * 150})
        assert found.status_code == 200, found.text
