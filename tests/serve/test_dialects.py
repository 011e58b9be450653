"""What the clients of each service send, and what they need back."""

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.ranking.ranked import Ranked, Ranking
from didyma.serve.dialects import COHERE, DIALECTS, TEI, dialect_of
from didyma.serve.native import SEARCH
from didyma.serve.responses import KINDS, HTTPError

QUERY = "who wrote Emma"
TEXTS = ["it rains", "Austen wrote Emma", "Scott wrote novels"]
ORDER, SCORES = [1, 2, 0], [2 / 3, 1 / 3, 0.0]
DOCUMENTS = {"query": QUERY, "documents": TEXTS}
IN_TEI = {"query": QUERY, "texts": TEXTS}


def answered(client: httpx.Client, path: str, body: Any, status: int = 200) -> Any:
    found = client.post(path, json=body)
    assert found.status_code == status, found.text
    assert found.headers["content-type"] == "application/json"
    assert "content-encoding" not in found.headers
    return found.json()


def order(results: list[dict[str, Any]]) -> list[int]:
    return [one["index"] for one in results]


@pytest.mark.parametrize("path", ["/v2/rerank", "/v1/v2/rerank", "/any/base/v2/rerank"])
def test_cohere_v2(client, path):
    body = {**DOCUMENTS, "model": "rerank-v3.5"}
    found = answered(client, path, body)
    assert found["model"] == "rerank-v3.5"
    assert found["results"] == [
        {"index": index, "relevance_score": score} for index, score in zip(ORDER, SCORES)
    ]


def test_cohere_as_langchain_sends_it(client):
    body = {**DOCUMENTS, "model": "m", "top_n": None, "max_tokens_per_doc": None}
    assert order(answered(client, "/v2/rerank", body)["results"]) == ORDER
    body |= {"top_n": 2, "max_tokens_per_doc": 4096}
    assert order(answered(client, "/v2/rerank", body)["results"]) == ORDER[:2]


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank", "/base/rerank", "/v1/v1/rerank"])
def test_jina_and_vllm(client, path):
    found = answered(client, path, {**DOCUMENTS, "model": "jina-reranker-v2", "top_n": None})
    assert found["model"] == "jina-reranker-v2"
    assert found["usage"] == {"total_tokens": 0}
    assert [one["document"] for one in found["results"]] == [{"text": TEXTS[n]} for n in ORDER]
    assert [one["relevance_score"] for one in found["results"]] == SCORES


def test_cohere_v1_documents_are_texts_or_objects(client):
    documents = [TEXTS[0], {"text": TEXTS[1], "year": 1815}, {"text": TEXTS[2]}]
    body = {"query": QUERY, "documents": documents, "return_documents": True}
    found = answered(client, "/v1/rerank", body)["results"]
    assert order(found) == ORDER
    assert found[0]["document"] == {"text": TEXTS[1], "year": 1815}
    assert found[2]["document"] == {"text": TEXTS[0]}
    body["return_documents"] = False
    assert "document" not in answered(client, "/v1/rerank", body)["results"][0]
    body["return_documents"] = None
    assert "document" in answered(client, "/v1/rerank", body)["results"][0]


def test_a_title_is_part_of_the_text(client):
    documents = [{"title": "Emma", "text": "a novel"}, {"body": "a clock"}]
    found = answered(client, "/v2/rerank", {"query": "Emma", "documents": documents})
    assert found["results"][0] == {"index": 0, "relevance_score": 1.0}


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank"])
def test_tei_answers_one_entry_for_each_text(client, path):
    body = {**IN_TEI, "model": "m", "top_n": 1, "return_text": True, "truncate": True}
    found = answered(client, path, body)
    assert found == [
        {"index": index, "score": score, "text": TEXTS[index]}
        for index, score in zip(ORDER, SCORES)
    ]
    assert answered(client, path, IN_TEI)[0] == {"index": 1, "score": SCORES[0]}
    raw = answered(client, path, {**IN_TEI, "raw_scores": True})
    assert [one["score"] for one in raw] == [10 * score for score in SCORES]


@pytest.mark.parametrize("dialect", [COHERE, TEI, SEARCH], ids=lambda dialect: dialect.name)
def test_answers_have_the_probability_where_there_is_one(dialect):
    likely = Ranked(0, 0.5, "a", "It rains", probability=0.25)
    ranked = Ranking([likely, Ranked(1, 0.25, "b", "It snows")])
    body = {"query": "rain", "documents": ["It rains", "It snows"]}
    body |= {"texts": body.pop("documents")} if dialect is TEI else {}
    question = dialect.read(msgspec.json.encode({"query": "rain"} if dialect is SEARCH else body))
    answer = msgspec.json.decode(dialect.answer("1", question, ranked))
    results = answer if dialect is TEI else answer["results"]
    assert results[0]["probability"] == 0.25
    assert "probability" not in results[1]


def test_documents_win_over_texts(client):
    assert "results" in answered(client, "/rerank", {**DOCUMENTS, "texts": ["a"]})


@pytest.mark.parametrize("top_n", [None, 0, 3, 4, 10**30])
def test_no_top_is_all_and_too_much_is_all(client, top_n):
    found = answered(client, "/v2/rerank", {**DOCUMENTS, "top_n": top_n})
    assert order(found["results"]) == ORDER


def test_nothing_to_rank(client):
    assert answered(client, "/v2/rerank", {**DOCUMENTS, "documents": []})["results"] == []
    assert answered(client, "/rerank", {**IN_TEI, "texts": []}) == []


def test_explanations_on_request(client):
    found = answered(client, "/v2/rerank", {**DOCUMENTS, "explain": True, "top_n": 1})["results"]
    assert found[0]["explanation"]["contributions"][0]["name"] == "common"
    assert found[0]["explanation"]["raw"] == pytest.approx(10 * SCORES[0])
    assert "text" not in found[0]["explanation"]
    assert "explanation" in answered(client, "/rerank", {**IN_TEI, "explain": True})[0]
    assert "explanation" not in answered(client, "/rerank", {**IN_TEI, "explain": None})[0]


def test_relevant_spans_count_code_points(client):
    text = "𝄞𝄞 Emma é wrote"
    body = {
        "query": QUERY,
        "documents": [text],
        "relevant_spans": {"mode": "enabled", "threshold": 0.1, "max_spans": 3},
    }
    (found,) = answered(client, "/v2/rerank", body)["results"]
    spans = [(span["start"], span["end"]) for span in found["relevant_spans"]]
    assert [text[start:end] for start, end in spans] == ["Emma", "wrote"]
    assert all(span["score"] == 1 for span in found["relevant_spans"])
    body["relevant_spans"] |= {"max_spans": 1}
    assert len(answered(client, "/v2/rerank", body)["results"][0]["relevant_spans"]) == 1
    body["relevant_spans"] = {"mode": "enabled", "threshold": 1.5}
    assert answered(client, "/v2/rerank", body)["results"][0]["relevant_spans"] == []
    for nothing in ({"mode": "disabled"}, None):
        body["relevant_spans"] = nothing
        assert "relevant_spans" not in answered(client, "/v2/rerank", body)["results"][0]


WRONG: list[Any] = [
    {},
    [],
    "text",
    None,
    {"query": QUERY},
    {"documents": TEXTS},
    {"query": None, "documents": TEXTS},
    {"query": 7, "documents": TEXTS},
    {"query": QUERY, "documents": None},
    {"query": QUERY, "documents": "text"},
    {"query": QUERY, "documents": [None]},
    {"query": QUERY, "documents": [1]},
    {"query": QUERY, "documents": [["a"]]},
    {"query": QUERY, "documents": [{}]},
    {"query": QUERY, "documents": [{"text": 3}]},
    {**DOCUMENTS, "top_n": -1},
    {**DOCUMENTS, "top_n": "3"},
    {**DOCUMENTS, "top_n": 1.5},
    {**DOCUMENTS, "model": 7},
    {**DOCUMENTS, "explain": "yes"},
    {**DOCUMENTS, "relevant_spans": "enabled"},
    {**DOCUMENTS, "scores": [1.0]},
]


@pytest.mark.parametrize("body", WRONG, ids=json.dumps)
@pytest.mark.parametrize("path", ["/v2/rerank", "/v1/rerank"])
def test_a_wrong_body_is_refused_where_every_client_looks(client, path, body):
    found = answered(client, path, body, 400)
    message = found["message"]
    assert message
    assert found == {
        "message": message,
        "detail": message,
        "error": {"message": message, "type": "BadRequestError", "code": 400},
    }


@pytest.mark.parametrize("texts", [None, "text", [None], [{"year": "a"}]])
def test_tei_says_it_in_its_own_way(client, texts):
    found = answered(client, "/rerank", {"query": QUERY, "texts": texts}, 422)
    assert found.keys() == {"error", "error_type"}
    assert found["error_type"] == "Validation"


def test_messages_name_the_place(client):
    found = answered(client, "/v2/rerank", {**DOCUMENTS, "documents": ["a", {"year": 1}]}, 400)
    assert found["message"] == "document 1: expected a text among year"
    found = answered(client, "/v2/rerank", {**DOCUMENTS, "query": 1}, 400)
    assert found["message"] == "query: expected a text, found a whole number"


STEP = {"step": "boost", "field": "x", "value": "x", "amount": 1}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"top_n": -1}, "top_n: expected a number from 0 on"),
        ({"top_n": 1.5}, "top_n: expected a number without a fraction"),
        ({"top_n": "x"}, "top_n: expected a number or null, found a text"),
        ({"top_n": 10**400}, "top_n: number out of range"),
        ({"documents": None}, "documents: expected a list, found null"),
        ({"documents": ["a", 3]}, "documents[1]: expected a text or an object, found a whole numb"),
        ({"explain": 1}, "explain: expected true or false or null, found a whole number"),
        ({"rank_fields": []}, "rank_fields: expected a list that is not empty"),
        ({"then": [{}]}, "then[0].step: expected it, found nothing"),
        ({"then": [{"step": "x"}]}, "then[0].step: expected boost, diversity or recency, found '"),
        ({"then": [{**STEP, "value": None}]}, "then[0].value: expected true or false or a number"),
        ({"then": [STEP] * 17}, "then: expected a list of at most 16"),
        (
            {"relevant_spans": {"mode": "x"}},
            "relevant_spans.mode: expected auto, disabled or enabl",
        ),
        ({"relevant_spans": {"max_spans": -1}}, "relevant_spans.max_spans: expected a number from"),
        ({"max_tokens_per_doc": -1}, "max_tokens_per_doc: expected a number from 1 on"),
        ({"max_tokens_per_doc": "x"}, "max_tokens_per_doc: expected a number or null, found a te"),
    ],
)
def test_messages_are_in_the_words_of_the_library(client, wrong, message):
    found = answered(client, "/v2/rerank", {**DOCUMENTS, **wrong}, 400)["message"]
    assert found.startswith(message)
    assert "`" not in found


DEEP = b"[" * 100_000
DAMAGED = [
    b"",
    b"{",
    b"\xff\xfe",
    b'\xef\xbb\xbf{"query": "a", "documents": ["b"]}',
    b'{"query": "\xff", "documents": ["b"]}',
    rb'{"query": "\ud800", "documents": ["b"]}',
    rb'{"query": "a", "documents": ["b\udfff"]}',
    rb'{"query": "a", "texts": ["b\udfff"]}',
    rb'{"query": "a", "documents": [{"text": "b", "\ud800": 1}]}',
    b'{"query": "a", "documents": [NaN]}',
    b'{"query": "a", "documents": ["b"], "top_n": 1e400}',
    b'{"query": "a", "documents": [{"text": "b", "x": 1e400}]}',
    b'{"query": "a", "documents": [{"text": ' + b"9" * 5000 + b"}]}",
    b'{"query": "a", "documents": ' + DEEP,
    b'{"query": "a", "documents": ["b"], "other": ' + DEEP + b"]" * 100_000 + b"}",
    b'{"query": "a", "documents": [{"text": "b", "other": ' + DEEP + b"]" * 100_000 + b"}]}",
]


@pytest.mark.parametrize("body", DAMAGED, ids=lambda body: repr(body[:50]))
@pytest.mark.parametrize("path", ["/v2/rerank", "/rerank"])
def test_damaged_json_is_refused(client, path, body):
    found = client.post(path, content=body)
    assert found.status_code in (400, 413, 422), found.text


def test_unknown_keys_are_ignored(client):
    body = {**DOCUMENTS, "user": {"a": [1, None]}, "truncate_prompt_tokens": 7, "texts": 3}
    assert order(answered(client, "/v2/rerank", body)["results"]) == ORDER


def test_a_path_of_no_dialect(client):
    for path in ("/v2/embed", "/xrerank", "/rerank/more", "/v2/rerank/"):
        assert client.post(path, json=DOCUMENTS).status_code == 404, path
    found = client.get("/v2/rerank")
    assert found.status_code == 405
    assert found.headers["allow"] == "POST"
    assert "GET" in found.json()["message"]
    assert client.get("/nothing").json()["error"]["code"] == 404


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["\ud800", "\x00", "😀" * 40, "a b"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
KEYS = [
    *("query", "documents", "texts", "model", "top_n", "return_documents", "max_tokens_per_doc"),
    *("relevant_spans", "explain", "scores", "raw_scores", "return_text", "other"),
]
DOCUMENT = st.text() | st.fixed_dictionaries({"text": st.text()}, optional={"title": JSON}) | JSON
NEARLY = st.fixed_dictionaries(
    {"query": st.text()},
    optional={
        "documents": st.lists(DOCUMENT, max_size=4),
        "texts": st.lists(st.text() | JSON, max_size=4),
        "top_n": st.none() | st.integers(),
        "scores": st.none() | st.lists(st.floats(allow_nan=False), max_size=4),
        "relevant_spans": st.none()
        | st.fixed_dictionaries(
            {}, optional={"mode": JSON, "threshold": JSON, "max_spans": st.integers() | JSON}
        ),
        "explain": st.booleans() | JSON,
        "model": st.none() | st.text(),
    },
)


@settings(max_examples=150)
@given(
    path=st.sampled_from(["/v2/rerank", "/v1/rerank", "/rerank"]),
    body=NEARLY | st.dictionaries(st.sampled_from(KEYS), JSON) | JSON,
)
def test_no_body_is_a_fault_of_the_server(client, path, body):
    """Any JSON is answered or refused, and the answer is what the dialect says."""
    text = json.dumps(body).encode()  # with lone surrogates and, for infinities, no JSON at all
    found = client.post(path, content=text)
    dialect = dialect_of(path, text)
    assert found.status_code in (200, dialect.invalid), found.text
    kind = dialect.answered if found.status_code == 200 else dialect.error
    msgspec.json.decode(found.content, type=kind)


@settings(max_examples=150)
@given(path=st.sampled_from(["/v2/rerank", "/rerank"]), body=st.binary())
def test_no_bytes_are_a_fault_of_the_server(client, path, body):
    assert client.post(path, content=body).status_code in (400, 422)


def test_every_refusal_has_a_name_in_every_dialect():
    for dialect in DIALECTS:
        for status in KINDS:
            msgspec.json.decode(dialect.refuse(HTTPError(status, "why")), type=dialect.error)
