"""Documents with fields, signals and vectors: what a model makes of them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from didyma.data.schema import Schema
from didyma.serve.documents import first_scores, read_documents, sizes_of
from didyma.serve.limits import Limits
from didyma.text.text_reranker import TextReranker
from tests.serve.conftest import post, running, trained_service
from tests.text.texts import made

DIMENSION = 4
PATHS = {
    "/v2/rerank": ("documents", 400),
    "/v1/rerank": ("documents", 400),
    "/rerank": ("texts", 422),
}


def collection() -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]], list[list[float]]]:
    """Queries with vectors; documents with a title, clicks, a kind and a vector."""
    lists, rng = made(30), np.random.default_rng(3)
    queries, documents, labels = [], [], []
    for n, query in enumerate(lists.queries):
        rows = lists.groups.rows_of(n).tolist()
        asked = rng.normal(size=DIMENSION)
        queries.append({"text": query, "vector": asked.tolist()})
        labels.append(lists.y[rows].tolist())
        documents.append(
            [
                {
                    "title": f"Number {rng.integers(9)}",
                    "text": lists.items[rng.choice(rows)],  # which tells little
                    "clicks": float(rng.normal() + 1.5 * lists.y[row]),
                    "kind": str(rng.choice(["news", "blog"])),
                    "vector": (rng.normal(size=DIMENSION) + 0.7 * lists.y[row] * asked).tolist(),
                }
                for row in rows
            ]
        )
    return queries, documents, labels


@pytest.fixture(scope="module")
def reranker() -> TextReranker:
    return TextReranker(quick=True).fit(*collection())


@pytest.fixture(scope="module")
def client(reranker: TextReranker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("documents")
    reranker.save(folder / "signals.safetensors")
    TextReranker(quick=True).fit(made(12, 1, scores=True)).save(folder / "scored.safetensors")
    TextReranker(quick=True).fit(made(12)).save(folder / "plain.safetensors")
    models = [f"{name}={folder / name}.safetensors" for name in ("signals", "scored", "plain")]
    with running(trained_service(*models, limits=Limits(documents=50))) as client:
        yield client


QUERIES, DOCUMENTS, _ = collection()
QUERY, VECTOR, LISTED = QUERIES[0]["text"], QUERIES[0]["vector"], DOCUMENTS[0]


@pytest.mark.parametrize("path", PATHS)
def test_every_dialect_ranks_by_all_that_documents_have(client, reranker, path):
    key, _ = PATHS[path]
    body = {"model": "signals", "query": QUERY, key: LISTED, "query_vector": VECTOR}
    found = post(client, path, body)
    results = found if isinstance(found, list) else found["results"]
    wanted = reranker.rank(QUERIES[0], LISTED)
    assert [one["index"] for one in results] == [one.index for one in wanted]
    score = "score" if key == "texts" else "relevance_score"
    assert [one[score] for one in results] == [one.score for one in wanted]
    without = post(client, path, body | {"query_vector": None, key: [d["text"] for d in LISTED]})
    others = without if isinstance(without, list) else without["results"]
    assert [one[score] for one in others] != [one[score] for one in results]


def test_what_was_imputed_or_ignored_is_noted(client):
    documents = [{**LISTED[0], "colour": "red"}, {"text": "It is late."}]
    body = {"model": "signals", "query": QUERY, "documents": documents, "query_vector": VECTOR}
    notes = post(client, "/v2/rerank", body)["notes"]
    assert any(note.startswith("clicks: missing in 1 of 2 documents, counted as") for note in notes)
    assert "colour: not known from training, ignored in 1 of 2 documents" in notes
    assert any(note.startswith("no vector: 1 of 2 documents") for note in notes)
    answer = client.post("/rerank", json={"model": "signals", "query": QUERY, "texts": documents})
    assert "colour: not known from training, ignored in 1 of 2 documents" in json.loads(
        answer.headers["x-didyma-notes"]
    )
    whole = body | {"documents": LISTED}
    assert "notes" not in post(client, "/v2/rerank", whole)
    plain = {"model": "plain", "query": QUERY, "documents": ["a"], "query_vector": [1.0]}
    assert post(client, "/v2/rerank", plain)["notes"] == [
        "vector of the query: not known from training, ignored"
    ]


WRONG = [
    ({"clicks": "many"}, "document 0, clicks: expected a finite number or none, found 'many'"),
    ({"clicks": [1]}, "document 0, clicks: expected a finite number or none"),
    ({"clicks": {"a": {"b": [{}]}}}, "document 0, clicks: expected a finite number or none"),
    ({"kind": {"a": 1}}, "document 0, kind: expected a text"),
    ({"title": {"a": 1}}, "document 0, title: expected a text"),
    ({"vector": [1.0] * (DIMENSION + 1)}, "document 0, vector: expected a vector of 4 numbers"),
    ({"vector": "1 2 3 4"}, "document 0, vector: expected a vector of 4 numbers"),
    ({"vector": ["a"] * DIMENSION}, "document 0, vector: expected a vector of finite numbers"),
    ({"vector": [1e300] * DIMENSION}, "document 0, vector: expected a vector of finite numbers"),
]


@pytest.mark.parametrize(("damage", "problem"), WRONG, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("path", ["/v2/rerank", "/rerank"])
def test_what_cannot_be_read_is_refused_where_it_stands(client, path, damage, problem):
    key, status = PATHS[path]
    body = {"model": "signals", "query": QUERY, key: [{**LISTED[0], **damage}]}
    found = post(client, path, body, status)
    assert problem in (found["message"] if status == 400 else found["error"])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(client, number):
    body = (
        f'{{"model": "signals", "query": "a", "documents": [{{"text": "b", "clicks": {number}}}]}}'
    )
    assert client.post("/v2/rerank", content=body).status_code == 400


@pytest.mark.parametrize("vector", [[1.0], [], [1.0] * 9, [1e39] * DIMENSION])
def test_vectors_of_queries_are_checked(client, vector):
    body = {"model": "signals", "query": QUERY, "documents": LISTED, "query_vector": vector}
    assert "vector" in post(client, "/v2/rerank", body, 400)["message"]


def test_huge_objects_cost_little_and_are_told_in_few_words(client):
    many = {"text": "a", **{f"{n:x}": 1 for n in range(1_000_000)}}
    refused = post(client, "/v2/rerank", {"query": "a", "documents": [many]}, 413)
    assert "values" in refused["message"]
    nested: Any = "a"
    for _ in range(200):
        nested = {"x" * 1000: nested}
    some = {"text": "a", "deep": nested, "k" * 5000: 1, **{f"key {n}": n for n in range(2000)}}
    found = post(client, "/v2/rerank", {"model": "signals", "query": "a", "documents": [some]})
    assert "1992 other fields: not known from training, ignored" in found["notes"]
    assert sum(map(len, found["notes"])) < 2000
    listed = {f"key {n}": n for n in range(2000)}
    refused = post(client, "/v2/rerank", {"query": "a", "documents": [listed]}, 400)
    assert len(refused["message"]) < 600


def test_long_text_fields_count(client):
    document = {**LISTED[0], "title": "a" * 60_000, "text": "b" * 60_000}
    body = {"model": "signals", "query": QUERY, "documents": [document]}
    assert "120001 in document 0" in post(client, "/v2/rerank", body, 413)["message"]


def test_rank_fields_choose_the_text(client):
    documents = [
        {"head": "It is late.", "text": QUERY, "year": 1815},
        {"head": QUERY, "text": "It is late."},
    ]
    body = {"model": "plain", "query": QUERY, "documents": documents}
    assert post(client, "/v1/rerank", body)["results"][0]["index"] == 0
    found = post(client, "/v1/rerank", body | {"rank_fields": ["head"]})["results"]
    assert found[0]["index"] == 1
    assert found[0]["document"] == documents[1]  # as it was given
    both = post(client, "/v1/rerank", body | {"rank_fields": ["year", "head", "text"]})
    assert "notes" not in both
    assert post(client, "/v1/rerank", body | {"rank_fields": []}, 400)
    missing = post(client, "/v1/rerank", body | {"rank_fields": ["body"]}, 400)
    assert missing["message"] == "document 0: expected one of the rank_fields body"


def test_rank_fields_leave_signals_alone():
    documents = [{"title": "A", "text": "b", "clicks": 3.0, "id": 7}]
    schema = Schema.infer([*documents, {"title": "B", "text": "c", "clicks": 1.0}])
    (passage,) = read_documents(documents, schema, ["title", "clicks"])
    assert (passage.text, passage.id, passage.metadata) == ("A", 7, {"clicks": 3.0})
    texts, attributes, report = schema.read([passage])
    assert attributes.signals["clicks"].tolist() == [3.0]
    assert texts == ["A"]
    assert report.unknown == {}
    assert sizes_of([passage], schema) == [1]


def test_scores_of_documents_are_those_of_the_first_stage(client):
    documents = [{"text": text, "score": float(n)} for n, text in enumerate(["a", "b", "c"])]
    body = {"model": "scored", "query": "a", "documents": documents}
    given = body | {"documents": ["a", "b", "c"], "scores": [0.0, 1.0, 2.0]}
    results = [post(client, "/v2/rerank", each)["results"] for each in (body, given)]
    assert results[0] == results[1]
    body["documents"] = [*documents, {"text": "d"}]
    assert "expected the first stage's scores" in post(client, "/v2/rerank", body, 400)["message"]
    assert first_scores([]) is None
    assert first_scores([{"text": "a", "score": True}]) is None


def test_a_pair_has_the_same_chance_as_in_a_list(client):
    documents = LISTED[:3]
    body = {"model": "plain", "query": QUERY, "documents": [one["text"] for one in documents]}
    found = post(client, "/score", body)
    assert [one["index"] for one in found["data"]] == [0, 1, 2]
    alone = [
        post(client, "/v1/score", body | {"documents": text})["data"][0]["score"]
        for text in body["documents"]
    ]
    ranked = post(client, "/v2/rerank", body)["results"]
    chance = {one["index"]: one["probability"] for one in ranked}
    assert [one["score"] for one in found["data"]] == alone == [chance[n] for n in range(3)]
    pairs = {"model": "plain", "text_1": [QUERY, QUERIES[1]["text"]], "text_2": ["a", "b"]}
    assert len(post(client, "/score", pairs)["data"]) == 2
    pairs["text_1"] = QUERY
    assert len(post(client, "/score", pairs)["data"]) == 2
    pairs["text_1"] = [QUERY] * 3
    assert post(client, "/score", pairs, 400)["message"] == "query: expected one, or 2, found 3"
    objects = {"model": "signals", "query": QUERY, "documents": {"text": "a", "colour": 1}}
    assert any("colour" in note for note in post(client, "/score", objects)["notes"])
    wrong = {
        "model": "signals",
        "query": [QUERY, "b"],
        "documents": ["a", {"text": "b", "clicks": "x"}],
    }
    message = post(client, "/score", wrong, 400)["message"]
    assert message.startswith("query 1: document 0, clicks: expected a finite number")


def test_several_requests_in_one(client):
    one = {"query": QUERY, "documents": LISTED, "query_vector": VECTOR, "top_n": 2}
    other = {"query": "a", "documents": ["b", "a"], "model": "plain"}
    found = post(client, "/v1/batch", {"model": "signals", "requests": [one, other]})["answers"]
    assert [answer["model"] for answer in found] == ["signals", "plain"]
    for body, answer in zip((one | {"model": "signals"}, other), found):
        assert post(client, "/v2/rerank", body)["results"] == answer["results"]
    too_many = {"requests": [other | {"documents": ["a"] * 26}] * 2}
    assert "52" in post(client, "/v1/batch", too_many, 413)["message"]
    wrong = {"requests": [other, one | {"documents": [{"year": 1}]}]}
    message = post(client, "/v1/batch", wrong, 400)["message"]
    assert message == "request 1: document 0: expected a text among year"
    assert post(client, "/v1/batch", {"requests": []})["answers"] == []


def test_models_are_listed(client):
    found = client.get("/v1/models").json()
    assert [one["id"] for one in found["data"]] == ["signals", "scored", "plain"]
    fields = client.get("/info").json()["models"]["signals"]["fields"]
    assert {"field": "clicks", "role": "signal"} in fields
    assert {"field": "vector", "role": "vector"} in fields


def test_an_index_gives_signals_to_the_reranker(reranker, tmp_path: Path):
    from didyma.text.index import PassageIndex

    index = PassageIndex.build([{**one, "id": n} for n, one in enumerate(LISTED)], tmp_path / "i")
    found = index.search(QUERY, 3, reranker=reranker)
    places = index.candidates(QUERY, 100).places
    wanted = reranker.rank(QUERY, [LISTED[place] for place in places.tolist()], 3)
    assert [one.raw for one in found] == [one.raw for one in wanted]
    assert found.notes == wanted.notes
    assert found[0].metadata["kind"] == LISTED[found[0].index]["kind"]
