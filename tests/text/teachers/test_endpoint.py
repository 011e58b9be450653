"""Endpoints as teachers: the dialects, retries, and answers that cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from didyma.errors import DataError
from didyma.text.teachers import EndpointTeacher
from didyma.text.teachers.endpoint import KEY_VARIABLE
from tests.text.teachers.standin import Answer, overlap, reranking, serving

QUERY, DOCUMENTS = "who wrote it", ["no", "she wrote it", "who wrote it ?", "it"]


@pytest.mark.parametrize(
    ("path", "dialect", "names"),
    [
        ("/v2/rerank", "cohere", {"query", "documents"}),
        ("/any/v1/rerank", "jina", {"query", "documents", "return_documents"}),
        ("/rerank", "tei", {"query", "texts", "truncate"}),
    ],
)
def test_each_dialect_is_known_by_its_path(path: str, dialect: str, names: set[str]) -> None:
    with serving(reranking) as server:
        teacher = EndpointTeacher(server.address + path)
        assert teacher.dialect == dialect
        np.testing.assert_array_equal(teacher.score(QUERY, DOCUMENTS), overlap(QUERY, DOCUMENTS))
        named = EndpointTeacher(f"{server.address}{path}#small")
        named.score(QUERY, DOCUMENTS)
    assert set(server.asked[0]) == names
    assert server.asked[1]["model"] == "small"


def test_a_dialect_may_be_given() -> None:
    with serving(reranking) as server:
        EndpointTeacher(server.address + "/anywhere", "tei").score(QUERY, DOCUMENTS)
    assert server.asked[0]["texts"] == DOCUMENTS
    with pytest.raises(DataError, match="ends in one of"):
        EndpointTeacher(server.address + "/anywhere")
    with pytest.raises(DataError, match="dialect"):
        EndpointTeacher(server.address + "/rerank", "french")  # type: ignore[arg-type]


def test_the_server_that_we_have_is_a_teacher(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    from tests.serve.conftest import make_service, running

    (tmp_path / "words.didyma.safetensors").write_text("0")
    service = make_service(tmp_path / "words.didyma.safetensors")
    with running(service) as client:
        address = str(client.base_url).rstrip("/")
        scores = [
            EndpointTeacher(address + path).score(QUERY, DOCUMENTS)
            for path in ("/v2/rerank", "/v1/rerank", "/rerank")
        ]
    for found in scores:
        np.testing.assert_array_equal(found, np.array([0, 2, 3, 1]) / 3)


def test_many_texts_are_sent_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    documents = [f"it is {n}" for n in range(70)]
    with serving(reranking) as server:
        scores = EndpointTeacher(server.address + "/rerank").score(QUERY, documents)
    assert [len(body["texts"]) for body in server.asked] == [32, 32, 6]
    assert server.headers[0]["Authorization"] == "Bearer secret"
    np.testing.assert_array_equal(scores, overlap(QUERY, documents))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((401, {}, {"message": "no such key"}), "answers 401 .*no such key"),
        ((200, {}, {"results": []}), "a score for each of 4 documents, found 0"),
        ((200, {}, {"results": [{"index": 4, "relevance_score": 1}]}), "index and relevance_score"),
        ((200, {}, {"results": [{"index": 0, "relevance_score": 1}] * 4}), "index and relevance"),
        ((200, {}, {"results": [{"index": 0}] * 4}), "index and relevance_score"),
        ((200, {}, {"data": 7}), "index and relevance_score"),
        (
            (200, {}, {"results": [{"index": n, "relevance_score": float("nan")} for n in (0, 1)]}),
            "a score for each of 4",
        ),
    ],
)
def test_an_answer_that_cannot_be_used_says_why(answer: Answer, problem: str) -> None:
    with serving(lambda path, body: answer) as server:
        address = server.address + "/v2/rerank"
        with pytest.raises(DataError, match=problem) as raised:
            EndpointTeacher(address).score(QUERY, DOCUMENTS)
    assert raised.value.field == f"teacher {address}"
    assert len(server.asked) == 1
