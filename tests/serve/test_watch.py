"""Counts, drift, shadow models and samples of a server that is asked for real."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from scipy.stats import spearmanr

from didyma.serve.access import BearerTokens
from didyma.serve.app import Service
from didyma.serve.samples import SampleFile
from didyma.serve.served import NamedSource, ServedModels
from didyma.serve.watch import DAYS, ShadowComparison, Watch, rank_correlation
from didyma.text import Cascade, TextReranker
from didyma.text.observation import Scored, observing
from tests.serve.conftest import eventually, make_service, running, trained_service
from tests.text.texts import made

QUERY = "when does the ship of the storm sail?"
PASSAGES = ["It is late.", "The ship of the storm sails in 1902.", "A ship.", "The tree grows."]
SECRET = "xylograph"


def metrics(client: httpx.Client) -> dict[tuple[str, frozenset], float]:
    found = client.get("/metrics")
    assert found.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(found.text)
        for sample in family.samples
    }


def value(client: httpx.Client, name: str, **labels: str) -> float:
    return metrics(client)[name, frozenset(labels.items())]


def ask(client: httpx.Client, query: str = QUERY, **more: Any) -> httpx.Response:
    return client.post("/v2/rerank", json={"query": query, "documents": PASSAGES, **more})


def done(client: httpx.Client, work: str, n: int, outcome: str = "done") -> None:
    eventually(lambda: client.get("/watch").json()["afterwards"].get(work, {}).get(outcome, 0) >= n)


def trained(path: Path, *seeds: int) -> list[Path]:
    paths = [path / f"{seed}.safetensors" for seed in seeds]
    for seed, own in zip(seeds, paths):
        TextReranker(quick=True).fit(made(12, seed)).save(own)
    return paths


@pytest.fixture
def looks_at_all(monkeypatch):
    monkeypatch.setattr("didyma.serve.watch.PAUSE", 0.0)


def test_queries_are_looked_at_now_and_then(model_file, monkeypatch):
    monkeypatch.setattr("didyma.serve.watch.PAUSE", 1000.0)
    with running(trained_service(f"first={model_file}")) as client:
        for _ in range(40):
            ask(client)
        done(client, "drift", 1)
        assert client.get("/watch").json()["models"]["first"]["days"][0]["n_queries"] == 1
        assert value(client, "didyma_probability_count", model="first") == 160


@pytest.mark.usefixtures("looks_at_all")
def test_answers_probabilities_and_drift_are_counted(model_file):
    models = ServedModels([NamedSource(model_file, "first")])
    with running(Service(models)) as client:
        for top_n in (None, 1, 2):
            assert ask(client, top_n=top_n).status_code == 200
        assert ask(client, "xylograph zyx").status_code == 200
        assert client.post("/v2/rerank", json={"query": "q", "documents": []}).status_code == 200
        done(client, "drift", 4)
        assert value(client, "didyma_answers_total", model="first") == 5
        assert value(client, "didyma_empty_answers_total", model="first") == 1
        assert value(client, "didyma_probability_count", model="first") == 16
        assert value(client, "didyma_query_words_total", model="first") == 3 * 8 + 2
        assert value(client, "didyma_unseen_words_total", model="first") >= 2
        assert value(client, "didyma_drift_queries", model="first") == 4
        assert 0 <= value(client, "didyma_drift", model="first", of="untried") <= 2
        told = client.get("/watch").json()["models"]["first"]
        assert sum(told["probabilities"]["counts"]) == 16
        [day] = told["days"]
        assert (day["n_queries"], day["version"]) == (4, models.by_name["first"].version)
        chances = [one["probability"] for one in ask(client).json()["results"]]
        for above in told["above"]:
            name = "didyma_documents_above_threshold_total"
            count = value(client, name, model="first", precision=above["precision"])
            expected = sum(chance >= above["threshold"] for chance in chances)
            assert count >= 4 * expected >= 0


def test_sums_are_those_of_a_batch(model_file):
    models = ServedModels([NamedSource(model_file, "first")])
    lists = made(6, 3)
    reranker: Any = models.by_name["first"].reranker
    seen: list[Scored] = []
    with observing(seen.append):
        for n in range(len(lists.groups)):
            rows = lists.groups.rows_of(n).tolist()
            reranker.rank(lists.queries[n], [lists.items[row] for row in rows])
    watch = Watch(models, {}, today=lambda: date(2026, 1, 1))
    for scored in seen:
        watch.by_name["first"].look(scored, "v")
    drift, expected = watch.by_name["first"].days[-1].drift, reranker.drift(lists)
    assert drift.departure == pytest.approx(expected.departure)
    assert drift.distance == pytest.approx(expected.distance, abs=1e-6)
    assert drift.level == expected.level


def test_days_and_versions_are_told_apart_and_bounded(model_file):
    models = ServedModels([NamedSource(model_file, "first")])
    seen: list[Scored] = []
    with observing(seen.append):
        models.by_name["first"].reranker.rank(QUERY, PASSAGES)
    day = date(2026, 1, 1)
    watch = Watch(models, {}, today=lambda: day)
    for _ in range(DAYS + 5):
        watch.by_name["first"].look(seen[0], "v")
        watch.by_name["first"].look(seen[0], "v")
        day += timedelta(days=1)
    days = watch.by_name["first"].days
    assert len(days) == DAYS
    assert {own.observed.n_queries for own in days} == {2}
    watch.by_name["first"].look(seen[0], "w")
    assert days[-1].version == "w"


def test_a_shadow_ranks_and_is_not_answered(tmp_path):
    live, shadow = trained(tmp_path, 0, 5)
    shadows = ServedModels([NamedSource(shadow, "live")])
    with running(trained_service(f"live={live}", shadows=shadows)) as client:
        plain = TextReranker.load(live).rank(QUERY, PASSAGES)
        answer = ask(client, top_n=1).json()
        assert [one["index"] for one in answer["results"]] == [plain[0].index]
        done(client, "shadow", 1)
        told = client.get("/watch").json()["models"]["live"]["shadow"]
        other = TextReranker.load(shadow).rank(QUERY, PASSAGES)
        assert told["requests"] == 1
        assert told["displaced_tops"] == (other[0].index != plain[0].index)
        assert told["overlap"]["mean"] == 1.0  # four documents
        assert value(client, "didyma_shadow_overlap_count", model="live") == 1
        assert "live" in client.get("/info").json()["models"]
        shadow.write_bytes(live.read_bytes())  # a shadow is loaded anew as others are
        eventually(
            lambda: (
                (
                    "didyma_shadow_reloads_total",
                    frozenset({("shadow", "live"), ("outcome", "done")}),
                )
                in metrics(client)
            )
        )


def test_a_shadow_that_fails_harms_nobody(tmp_path, caplog):
    [live] = trained(tmp_path, 0)
    scored = tmp_path / "scored.safetensors"
    TextReranker(quick=True).fit(made(12, 1, scores=True)).save(scored)
    shadows = ServedModels([NamedSource(scored, "live")])
    with running(trained_service(f"live={live}", shadows=shadows)) as client:
        assert ask(client, f"{SECRET}?").status_code == 200
        done(client, "shadow", 1, "failed")
        assert value(client, "didyma_afterwards_total", work="shadow", outcome="failed") == 1
    assert SECRET not in caplog.text


def test_a_sample_is_kept_as_it_was_answered(tmp_path, model_file):
    models = ServedModels([NamedSource(model_file, "first")])
    samples = SampleFile(tmp_path / "s.jsonl", 1.0)
    with running(Service(models, samples=samples)) as client:
        results = ask(client, top_n=2).json()["results"]
        done(client, "sample", 1)
        [line] = (tmp_path / "s.jsonl").read_text().splitlines()
        record = json.loads(line)
        assert record["query"] == QUERY
        assert record["version"] == models.by_name["first"].version
        assert not any("id" in one for one in record["documents"])  # none was given
        assert [one["text"] for one in record["documents"]] == [
            PASSAGES[one["index"]] for one in results
        ]
        assert value(client, "didyma_samples_total", outcome="written") == 1


def test_teachers_are_counted(tmp_path):
    [live] = trained(tmp_path, 0)

    def load(path: Path) -> Cascade:
        def teacher(query: str, documents: list[str]) -> list[float]:
            if "fail" in query:
                raise RuntimeError
            return [0.0] * len(documents)

        return Cascade(TextReranker.load(path), teacher)

    with running(make_service(f"live={live}", load=load)) as client:
        ask(client)
        ask(client, "fail now")
        calls = "didyma_teacher_calls_total"
        assert value(client, calls, model="live", outcome="asked") == 1
        assert value(client, calls, model="live", outcome="failed") == 1
        assert value(client, "didyma_teacher_documents_total", model="live") == 4


def test_missing_signals_are_counted(tmp_path):
    passages = [
        [{"text": "It sails.", "clicks": 30 + n}, {"text": "It sails.", "clicks": n}]
        for n in range(40)
    ]
    queries = [f"when does it sail {n}?" for n in range(40)]
    reranker = TextReranker(quick=True).fit(queries, passages, [[1, 0]] * 40)
    reranker.save(tmp_path / "m.safetensors")
    with running(trained_service(tmp_path / "m.safetensors")) as client:
        documents = [{"text": "It sails.", "clicks": 4}, {"text": "No."}, {"text": "Yes."}]
        for n in range(20):  # whatever else documents have, its names do not become labels
            more = [{**document, f"field{n}": n} for document in documents]
            client.post("/v2/rerank", json={"query": "when?", "documents": more})
        assert value(client, "didyma_imputed_signals_total", model="m", signal="clicks") == 40
        names = {name for name, _ in metrics(client)}
        assert not any("field" in str(key) for key in metrics(client))
        assert "didyma_imputed_signals_total" in names


@pytest.mark.parametrize("path", ["/v2/rerank", "/rerank", "/v1/score"])
def test_nothing_that_clients_send_makes_new_metrics(client, path):
    def keys() -> set[Any]:
        return {key for key in metrics(client) if "_created" not in key[0]}

    client.post(path, json={"query": "a", "documents": ["b"], "texts": ["b"]})
    client.post(path, content=b"{")
    before = keys()
    for n in range(10):
        body = {"query": f"{SECRET}{n}", "documents": [{"text": f"w{n}", f"f{n}": 1}]}
        client.post(path, json={**body, "model": f"m{n}", f"key{n}": n})
        client.post(path, json={**body, "then": [{"step": f"s{n}"}]})
    assert keys() == before
    assert SECRET not in client.get("/metrics").text


def test_watching_needs_a_token(model):
    with running(make_service(model, tokens=BearerTokens(["secret"]))) as client:
        assert client.get("/watch").status_code == 401
        headers = {"authorization": "Bearer secret"}
        assert client.get("/watch", headers=headers).status_code == 200


def test_correlation_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 50):
        scores, others = rng.integers(0, 5, n) + 0.0, rng.normal(size=n).round(1)
        scores[0] += 10
        others[-1] -= 10
        assert rank_correlation(scores, others) == pytest.approx(spearmanr(scores, others)[0])
    assert rank_correlation([1.0, 1.0], [1.0, 2.0]) is None


def test_tops_are_compared():
    comparison = ShadowComparison()
    scores = np.arange(20.0)
    comparison.add(scores, scores)
    comparison.add(scores, -scores)
    comparison.add(np.zeros(0), np.zeros(0))
    told = comparison.to_dict()
    assert (told["requests"], told["displaced_tops"]) == (2, 1)
    assert told["overlap"]["mean"] == pytest.approx(0.5)
    assert told["correlation"]["mean"] == pytest.approx(0.0)
    assert dict(comparison.overlap.cumulative)["0.0"] == 1
    assert dict(comparison.correlation.cumulative)["-1.0"] == 1
