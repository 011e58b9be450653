"""Searches of an index, ranked or not; steps after ranking; rerankers that ask a teacher."""

from __future__ import annotations

import json
import shlex
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma import DataError, TextReranker
from didyma.cli.rerankers import AskedTeacher, Embedding
from didyma.serve.access import BearerTokens
from didyma.serve.app import Service
from didyma.serve.limits import Limits
from didyma.serve.native import SEARCH
from didyma.serve.served import NamedSource, ServedIndexes, ServedModels
from didyma.text import Boost, Cascade, Diversity
from didyma.text.index import PassageIndex
from tests.serve.conftest import eventually, make_service, post, running
from tests.serve.test_dialects import DAMAGED, JSON
from tests.text.texts import made

PASSAGES = [
    {"id": "rain", "text": "it rains and rains and rains", "year": 1815},
    {"id": "sun", "text": "rain or shine"},
    {"id": "snow", "text": "it snows"},
]


def service(folder: Path, *models: str, **options: object) -> Service:
    """An index in a folder, and models with their bonus as name."""
    if not (folder / "index").exists():
        PassageIndex.build(PASSAGES, folder / "index", language="english")
    for bonus in models:
        (folder / bonus).write_text(bonus)
    indexes = ServedIndexes([NamedSource(folder / "index", None)])
    named = [f"{bonus}={folder / bonus}" for bonus in models]
    return make_service(*named, indexes=indexes, **options)


@pytest.fixture(scope="module")
def searcher(tmp_path_factory) -> Iterator[httpx.Client]:
    with running(service(tmp_path_factory.mktemp("search"), "0", "1")) as client:
        yield client


def search(client: httpx.Client, status: int = 200, **body: object) -> dict:
    return post(client, "/v1/search", body, status)


def test_without_a_model_the_order_is_that_of_bm25(tmp_path):
    with running(service(tmp_path)) as searcher:
        answer = search(searcher, query="rain")
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
        assert search(searcher, query="nobody")["results"] == []
        assert search(searcher, query="rain", top_n=1)["results"] == [first]
        assert search(searcher, query="rain", top_n=None, candidates=0)["results"] == [
            first,
            second,
        ]
        refused = search(searcher, 400, query="rain", explain=True)
        assert refused["message"] == "expected a model for reasons: a search has none"
        assert search(searcher, 404, query="rain", model="m")["message"] == "no models are served"
        refused = searcher.post("/v2/rerank", json={"query": "a", "documents": ["b"]})
        assert refused.status_code == 404
        info = searcher.get("/info").json()
        assert info["model_id"] is None
        assert info["indexes"]["index"]["passages"] == 3


def test_a_model_ranks_what_was_found(searcher):
    answer = search(searcher, query="rain or", explain=True)
    assert answer["model"] == "0"
    assert [one["id"] for one in answer["results"]] == ["sun", "rain"]
    assert [one["first_stage"]["rank"] for one in answer["results"]] == [2, 1]
    assert [one["relevance_score"] for one in answer["results"]] == [1.0, 0.0]
    assert answer["results"][0]["explanation"]["raw"] == 10
    assert search(searcher, query="rain or", model="1")["results"][0]["relevance_score"] == 2.0
    assert search(searcher, 404, query="rain", model="2")["message"].endswith("models 0, 1")
    alone = search(searcher, query="rain or", candidates=1, top_n=1)["results"]
    assert [one["id"] for one in alone] == ["rain"]
    assert search(searcher, query="rain", index="any name")["index"] == "index"


def test_a_server_without_an_index_says_so(client):
    assert search(client, 404, query="rain")["message"] == "no indexes are served"


def test_limits_and_tokens(tmp_path):
    limits = Limits(documents=100, characters=5)
    guarded = service(tmp_path, limits=limits, tokens=BearerTokens(["secret"]))
    with running(guarded) as searcher:
        assert search(searcher, 401, query="rain")
        searcher.headers["authorization"] = "Bearer secret"
        assert search(searcher, query="rain")["results"]
        assert "at most 100 candidates" in search(searcher, 400, query="a", top_n=101)["message"]
        assert (
            "at most 100 candidates" in search(searcher, 400, query="a", candidates=101)["message"]
        )
        assert "at most 5 characters" in search(searcher, 413, query="a" * 6)["message"]
        metrics = searcher.get("/metrics").text
        assert 'didyma_requests_total{dialect="search",status="200"} 1.0' in metrics
        assert 'didyma_search_seconds_count{index="index"} 1.0' in metrics
        assert 'didyma_index_loaded_timestamp{index="index"}' in metrics


def test_an_index_that_changes_is_opened_anew(tmp_path):
    with running(service(tmp_path)) as searcher:
        PassageIndex.build(["a storm"], tmp_path / "index", language="english")
        eventually(lambda: search(searcher, query="storm")["results"])
        (tmp_path / "index" / "manifest.json").write_text("damaged")
        eventually(lambda: "failed" in searcher.get("/metrics").text)
        assert search(searcher, query="storm")["results"]


def test_a_damaged_index_is_a_fault_and_its_place_is_not_told(tmp_path):
    with running(service(tmp_path)) as searcher:
        path = tmp_path / "index" / "passages.jsonl"
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.write(b"x" * size)
        answer = searcher.post("/v1/search", json={"query": "rain"})
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
def test_a_wrong_body_is_refused(searcher, body):
    answer = searcher.post("/v1/search", json=body)
    assert answer.status_code == 400
    assert answer.json()["message"] == answer.json()["detail"]


@pytest.mark.parametrize("body", DAMAGED, ids=lambda body: repr(body[:50]))
def test_damaged_json_is_refused_or_not_looked_at(searcher, body):
    assert searcher.post("/v1/search", content=body).status_code in (200, 400, 413)


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
def test_no_body_is_a_fault_of_the_server(searcher, body):
    text = json.dumps(body).encode()
    answer = searcher.post("/v1/search", content=text)
    assert answer.status_code in (200, 400, 404, 413), answer.text
    kind = SEARCH.answered if answer.status_code == 200 else SEARCH.error
    msgspec.json.decode(answer.content, type=kind)


def test_a_search_engine_is_served_and_its_faults_are_not_told(tmp_path, caplog):
    path = tmp_path / "notes.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE VIRTUAL TABLE notes USING fts5(id, body)")
        connection.execute("INSERT INTO notes VALUES ('rain', 'it rains')")
    indexes = ServedIndexes([NamedSource.of(f"notes=sqlite:///{path}?id=id")])
    with running(Service(ServedModels([]), indexes=indexes)) as searcher:
        answer = search(searcher, query="who rains?")
        assert [(one["id"], one["text"]) for one in answer["results"]] == [("rain", "it rains")]
        assert searcher.get("/info").json()["indexes"]["notes"]["engine"] == "SQLiteEngine"
        path.write_text("this is no database any more, and long enough to be looked at")
        failed = searcher.post("/v1/search", json={"query": "rains"})
        assert failed.status_code == 503
        assert failed.headers["retry-after"] == "1"
        assert str(tmp_path) not in failed.text
    assert any("file is not a database" in str(vars(record)) for record in caplog.records)


SHIP = "ship storm sails"


SHIPS: list[Any] = [
    {"text": "ship storm sails", "kind": "law"},
    {"text": "ship storm sails", "kind": "law"},
    {"text": "ship storm", "kind": "news"},
]


def ranked(client: httpx.Client, path: str = "/v2/rerank", **more: Any) -> list[int]:
    names = "texts" if path == "/rerank" else "documents"
    answer = post(client, path, {"query": SHIP, names: SHIPS, **more})
    return [one["index"] for one in (answer if isinstance(answer, list) else answer["results"])]


@pytest.mark.parametrize("path", ["/v2/rerank", "/v1/rerank", "/rerank"])
def test_a_request_asks_for_steps(client, path):
    assert ranked(client, path) == [0, 1, 2]
    diversity = {"step": "diversity", "weight": 0.5, "by": "kind"}
    assert ranked(client, path, then=[diversity]) == [0, 2, 1]
    boost = {"step": "boost", "field": "kind", "value": "news", "amount": 1}
    assert ranked(client, path, then=[boost]) == [2, 0, 1]
    assert ranked(client, path, then=None) == ranked(client, path, then=[]) == [0, 1, 2]


def test_each_result_says_what_steps_did_and_keeps_its_score(client):
    then = [
        {"step": "recency", "field": "date", "half_life": "30d"},
        {"step": "diversity", "weight": 0.5, "by": "kind"},
    ]
    body = {"query": SHIP, "documents": SHIPS, "then": then, "top_n": 2}
    answer = client.post("/v2/rerank", json=body).json()
    assert [one["relevance_score"] for one in answer["results"]] == [1.0, pytest.approx(2 / 3)]
    assert [step["step"] for step in answer["results"][0]["steps"]] == ["recency", "diversity"]
    assert answer["results"][1]["steps"][1] == {
        "step": "diversity",
        "value": pytest.approx(1 / 3),
        "rank_before": 3,
        "rank": 2,
        "reason": "like none before",
    }
    assert "recency: no document has date" in answer["notes"]


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ([{"step": "magic"}], "then"),
        ([{"step": "diversity", "weight": 2}], "then 0, weight"),
        ([{"step": "recency", "field": "d", "half_life": "soon"}], "then 0, half_life"),
        ([{"step": "boost", "field": "k", "value": {}, "amount": 1}], "value"),
        ([{"step": "diversity", "weight": 0.1}] * 2, "last step"),
        ([{"step": "boost", "field": "k", "value": 1, "amount": 1}] * 17, "at most 16"),
        ([{"step": "recency", "field": "kind", "half_life": "1d"}], "document 0, kind"),
        ("diversity", "then"),
    ],
)
def test_what_is_wrong_with_steps_is_told(client, then, said):
    body = {"query": SHIP, "documents": SHIPS, "then": then}
    assert said in post(client, "/v2/rerank", body, 400)["message"]


def test_the_server_has_steps_that_requests_can_do_without(model):
    with running(make_service(model, then=[Boost("kind", "news", 1), Diversity(0.5)])) as client:
        assert ranked(client) == [2, 0, 1]
        assert ranked(client, then=[]) == [0, 1, 2]
        # The stand-in tells no chances.
        post(client, "/score", {"query": SHIP, "documents": SHIPS}, 400)


TEACHER = """
import json, sys
for line in sys.stdin:
    texts = json.loads(line)["documents"]
    print(json.dumps({"scores": [float("gold" in text) for text in texts]}), flush=True)
"""


DOCUMENTS = ["who wrote the book", "gold", "nothing at all"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cascade")
    (folder / "teacher.py").write_text(TEACHER)
    reranker = TextReranker(quick=True).fit(made(20))
    reranker.save(folder / "plain.safetensors")
    Cascade(reranker, "http://127.0.0.1:9/rerank", 3, threshold=1e9).save(
        folder / "cascade.safetensors"
    )
    return folder


@pytest.mark.parametrize("name", ["plain", "cascade"])
def test_the_teacher_decides_what_is_unsure(folder: Path, name: str) -> None:
    teacher = shlex.join([sys.executable, "-S", str(folder / "teacher.py")])
    asked = AskedTeacher(teacher, teacher_timeout=30.0)
    load = partial(asked.load, embedding=Embedding())
    with running(make_service(folder / f"{name}.safetensors", load=load)) as client:
        body = {"query": "who wrote the book", "documents": DOCUMENTS}
        answer = post(client, "/v1/rerank", body)
        assert next(one["index"] for one in answer["results"]) == 1
        scores = [one["relevance_score"] for one in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        assert any("teacher: asked about 3 of 3" in note for note in answer["notes"])
        assert client.get("/info").status_code == 200


def test_a_dead_teacher_costs_no_answer(folder: Path) -> None:
    load = partial(AskedTeacher("http://127.0.0.1:9/rerank").load, embedding=Embedding())
    path = folder / "plain.safetensors"
    expected = TextReranker.load(path).rank("who wrote the book", DOCUMENTS)
    with running(make_service(path, load=load)) as client:
        body = {"query": "who wrote the book", "documents": DOCUMENTS}
        answer = post(client, "/v1/rerank", body)
    assert [one["index"] for one in answer["results"]] == [one.index for one in expected]
    assert any("the order is the reranker's" in note for note in answer["notes"])


def test_a_file_does_not_decide_who_is_asked(folder: Path) -> None:
    with pytest.raises(DataError, match="expected one that you name"):
        AskedTeacher().load(folder / "cascade.safetensors", embedding=Embedding())
