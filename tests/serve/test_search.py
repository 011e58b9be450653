"""`/v1/search`: passages of an index, ranked or not, and never a fault of the server."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.serve.access import BearerTokens
from didyma.serve.app import EVERY, Service
from didyma.serve.limits import Limits
from didyma.serve.native import SEARCH
from didyma.serve.served import NamedSource, ServedIndexes, ServedModels
from didyma.text.index import PassageIndex
from tests.serve.conftest import running
from tests.serve.standin import load
from tests.serve.test_dialects import DAMAGED, JSON

PASSAGES = [
    {"id": "rain", "text": "it rains and rains and rains", "year": 1815},
    {"id": "sun", "text": "rain or shine"},
    {"id": "snow", "text": "it snows"},
]


def service(folder: Path, *models: str, **options: object) -> Service:
    """An index in a folder, and models with their bonus as name."""
    if not (folder / "index").exists():
        PassageIndex.build(PASSAGES, folder / "index", language="english")
    sources = []
    for bonus in models:
        path = folder / bonus
        path.write_text(bonus)
        sources.append(NamedSource(path, bonus))
    indexes = ServedIndexes([NamedSource(folder / "index", None)])
    return Service(ServedModels(sources, load), indexes=indexes, **options)


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[httpx.Client]:
    with running(service(tmp_path_factory.mktemp("search"), "0", "1")) as found:
        yield found


def found(client: httpx.Client, status: int = 200, **body: object) -> dict:
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_without_a_model_the_order_is_that_of_bm25(tmp_path):
    with running(service(tmp_path)) as client:
        answer = found(client, query="rain")
        assert (answer["index"], answer["model"]) == ("index", None)
        first, second = answer["results"]
        assert first == {
            "id": "rain",
            "text": PASSAGES[0]["text"],
            "relevance_score": first["relevance_score"],
            "first_stage": {"score": first["relevance_score"], "rank": 1},
            "metadata": {"year": 1815},
        }
        assert second["id"] == "sun"
        assert "metadata" not in second
        assert found(client, query="nobody")["results"] == []
        assert found(client, query="rain", top_n=1)["results"] == [first]
        assert found(client, query="rain", top_n=None, candidates=0)["results"] == [first, second]
        refused = found(client, 400, query="rain", explain=True)
        assert refused["message"] == "expected a model for reasons: a search has none"
        assert found(client, 404, query="rain", model="m")["message"] == "no models are served"
        refused = client.post("/v2/rerank", json={"query": "a", "documents": ["b"]})
        assert refused.status_code == 404
        info = client.get("/info").json()
        assert info["model_id"] is None
        assert info["indexes"]["index"]["passages"] == 3


def test_a_model_ranks_what_was_found(client):
    answer = found(client, query="rain or", explain=True)
    assert answer["model"] == "0"
    assert [one["id"] for one in answer["results"]] == ["sun", "rain"]
    assert [one["first_stage"]["rank"] for one in answer["results"]] == [2, 1]
    assert [one["relevance_score"] for one in answer["results"]] == [1.0, 0.0]
    assert answer["results"][0]["explanation"]["raw"] == 10
    assert found(client, query="rain or", model="1")["results"][0]["relevance_score"] == 2.0
    assert found(client, 404, query="rain", model="2")["message"].endswith("models 0, 1")
    alone = found(client, query="rain or", candidates=1, top_n=1)["results"]
    assert [one["id"] for one in alone] == ["rain"]
    assert found(client, query="rain", index="any name")["index"] == "index"


def test_a_server_without_an_index_says_so(tmp_path):
    path = tmp_path / "model"
    path.write_text("0")
    with running(Service(ServedModels([NamedSource(path, None)], load))) as client:
        assert found(client, 404, query="rain")["message"] == "no indexes are served"


def test_limits_and_tokens(tmp_path):
    limits = Limits(documents=100, characters=5)
    guarded = service(tmp_path, limits=limits, tokens=BearerTokens(["secret"]))
    with running(guarded) as client:
        assert found(client, 401, query="rain")
        client.headers["authorization"] = "Bearer secret"
        assert found(client, query="rain")["results"]
        assert "at most 100 candidates" in found(client, 400, query="a", top_n=101)["message"]
        assert "at most 100 candidates" in found(client, 400, query="a", candidates=101)["message"]
        assert "at most 5 characters" in found(client, 413, query="a" * 6)["message"]
        metrics = client.get("/metrics").text
        assert 'didyma_requests_total{dialect="search",status="200"} 1.0' in metrics
        assert 'didyma_search_seconds_count{index="index"} 1.0' in metrics
        assert 'didyma_index_loaded_timestamp{index="index"}' in metrics


def test_an_index_that_changes_is_opened_anew(tmp_path):
    served = service(tmp_path)
    with running(served) as client:
        PassageIndex.build(["a storm"], tmp_path / "index", language="english")
        ends = time.monotonic() + 20 * EVERY
        while not found(client, query="storm")["results"]:
            assert time.monotonic() < ends
            time.sleep(0.05)
        (tmp_path / "index" / "manifest.json").write_text("damaged")
        while "failed" not in client.get("/metrics").text:
            assert time.monotonic() < ends
            time.sleep(0.05)
        assert found(client, query="storm")["results"]


def test_a_damaged_index_is_a_fault_and_its_place_is_not_told(tmp_path):
    served = service(tmp_path)
    with running(served) as client:
        path = tmp_path / "index" / "passages.jsonl"
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.write(b"x" * size)
        answer = client.post("/v1/search", json={"query": "rain"})
        assert answer.status_code == 500
        assert "passages.jsonl" not in answer.text


WRONG = [
    None,
    {},
    {"query": None},
    {"query": 7},
    {"query": "a", "top_n": -1},
    {"query": "a", "top_n": "3"},
    {"query": "a", "candidates": 1.5},
    {"query": "a", "model": 7},
    {"query": "a", "index": []},
    {"query": "a", "explain": "yes"},
]


@pytest.mark.parametrize("body", WRONG, ids=json.dumps)
def test_a_wrong_body_is_refused(client, body):
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == 400
    assert answer.json()["message"] == answer.json()["detail"]


@pytest.mark.parametrize("body", DAMAGED, ids=lambda body: repr(body[:50]))
def test_damaged_json_is_refused_or_not_looked_at(client, body):
    assert client.post("/v1/search", content=body).status_code in (200, 400, 413)


NEARLY = st.fixed_dictionaries(
    {"query": st.text()},
    optional={
        "top_n": st.none() | st.integers(),
        "candidates": st.none() | st.integers() | JSON,
        "index": st.none() | st.text(),
        "model": st.none() | st.sampled_from(["0", "1"]) | st.text(),
        "explain": st.booleans() | JSON,
        "documents": JSON,
    },
)
KEYS = ["query", "top_n", "candidates", "index", "model", "explain", "other"]


@settings(max_examples=150)
@given(body=NEARLY | st.dictionaries(st.sampled_from(KEYS), JSON) | JSON)
def test_no_body_is_a_fault_of_the_server(client, body):
    text = json.dumps(body).encode()
    answer = client.post("/v1/search", content=text)
    assert answer.status_code in (200, 400, 404, 413), answer.text
    kind = SEARCH.answered if answer.status_code == 200 else SEARCH.error
    msgspec.json.decode(answer.content, type=kind)


def test_the_description_has_it(client):
    described = client.get("/openapi.json").json()
    assert "SearchBody" in json.dumps(described["paths"]["/v1/search"])
    assert "SearchAnswer" in described["components"]["schemas"]
    assert client.get("/v1/search").status_code == 405


def test_a_search_engine_is_served_and_its_faults_are_not_told(tmp_path, caplog):
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(id, body)")
        connection.execute("INSERT INTO notes VALUES ('rain', 'it rains')")
    indexes = ServedIndexes([NamedSource.of(f"notes=sqlite:///{path}?id=id")])
    with running(Service(ServedModels([]), indexes=indexes)) as client:
        answer = found(client, query="who rains?")
        assert [(one["id"], one["text"]) for one in answer["results"]] == [("rain", "it rains")]
        assert client.get("/info").json()["indexes"]["notes"]["engine"] == "SQLiteEngine"
        path.write_text("this is no database any more, and long enough to be looked at")
        failed = client.post("/v1/search", json={"query": "rains"})
        assert failed.status_code == 503
        assert failed.headers["retry-after"] == "1"
        assert str(tmp_path) not in failed.text
    assert any("file is not a database" in str(vars(record)) for record in caplog.records)
