"""Steps behind a reranker, a cascade and an index, and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from didyma.cli import app
from didyma.text import Boost, Cascade, Diversity, PassageIndex, Recency, TextReranker
from tests.text.texts import made

QUERY = "when does the ship of the storm sail?"
DOCUMENTS = [
    {"text": "The ship of the storm sails in 1902.", "kind": "law", "date": "2020-01-01"},
    {"text": "The ship of the storm sails in 1902.", "kind": "law", "date": "2026-01-01"},
    {"text": "A ship is near the storm, which sails there.", "kind": "news", "date": "2026-01-01"},
    {"text": "It is late.", "kind": "news", "date": "2026-01-01"},
]
THEN = [Recency("date", "1y", 0.9, "2026-01-01"), Boost("kind", "news", 0.1), Diversity(0.5)]


@pytest.fixture(scope="module")
def reranker() -> TextReranker:
    return TextReranker(quick=True).fit(made(12, 0))


def test_a_reranker_takes_steps_and_explains_what_is_left(reranker):
    plain = {one.index: one for one in reranker.rank(QUERY, DOCUMENTS)}
    found = reranker.rank(QUERY, DOCUMENTS, 2, then=THEN, explain=True)
    assert len(found) == 2
    assert found[0].index in (1, 2)
    for one in found:
        before = plain[one.index]
        assert (one.score, one.raw, one.probability) == (
            before.score,
            before.raw,
            before.probability,
        )
        assert one.explanation is not None
        assert one.explanation.raw == one.raw
        assert len(one.steps) == 3


def test_steps_follow_the_teacher(reranker):
    cascade = Cascade(reranker, lambda query, texts: [float("late" in text) for text in texts])
    found = cascade.rank(QUERY, DOCUMENTS, then=[Boost("kind", "law", 50.0)])
    assert found.asked == 4
    assert {one.metadata["kind"] for one in found[:2]} == {"law"}
    assert cascade.rank(QUERY, DOCUMENTS, 1)[0].text == "It is late."


def test_an_index_has_steps_with_and_without_a_reranker(reranker, tmp_path):
    index = PassageIndex.build(DOCUMENTS, tmp_path / "index")
    boost = [Boost("kind", "news", 50.0)]
    for ranks in (None, reranker):
        found = index.search("the ship of the storm", 1, reranker=ranks, then=boost)
        assert [one.metadata["kind"] for one in found] == ["news"]
        assert found[0].steps[0].rank_before > 1


def run(*arguments: object) -> str:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def test_commands_take_steps(reranker, tmp_path):
    model, data = tmp_path / "m.safetensors", tmp_path / "d.jsonl"
    reranker.save(model)
    lines = [{"query": QUERY, "qid": "1", "docid": n, **d} for n, d in enumerate(DOCUMENTS)]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    steps = ["--recency", "date=1y:1", "--boost", "kind=news:30", "--diversity", "0.2"]
    [query] = json.loads(run("rerank", "rank", model, data, *steps, "--json"))["queries"]
    assert query["passages"][0]["id"] == "2"
    assert [one["step"] for one in query["passages"][0]["steps"]] == [
        *("recency", "boost", "diversity")
    ]
    out = tmp_path / "run.txt"
    run("rerank", "rank", model, data, *steps, "-o", out)
    values = [float(line.split()[4]) for line in out.read_text().splitlines()]
    assert out.read_text().split()[2] == "2"
    assert values == sorted(values, reverse=True)
    asked = run("ask", folder(tmp_path), "the ship of the storm", "--diversity", "0.5")
    assert "diversity: like" in asked


def folder(path: Path) -> Path:
    (path / "texts").mkdir()
    for n, document in enumerate(DOCUMENTS):
        (path / "texts" / f"{n}.txt").write_text(document["text"])
    return path / "texts"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--recency", "date"], "FIELD=AGE"),
        (["--recency", "date=soon"], "half_life"),
        (["--boost", "kind=news"], "FIELD=VALUE:AMOUNT"),
        (["--boost", "kind=news:-3"], "amount"),
        (["--diversity", "2"], "diversity"),
        (["--diversity-by", "kind"], "needs --diversity"),
    ],
)
def test_misspelt_steps_are_refused(options, said):
    found = CliRunner().invoke(app, ["rerank", "rank", "model", "data", *options])
    assert found.exit_code == 2
    assert said in " ".join(found.output.replace("│", " ").split())


def test_dates_that_the_model_has_learned_are_dates_to_steps(tmp_path):
    lists = [
        {"query": f"q{n} ship", "text": f"{'ship' * (m == 0)} w{m}", "label": int(m == 0)}
        | {"date": f"2026-0{m + 1}-0{n + 1}", "qid": str(n), "docid": f"{n}-{m}"}
        for n in range(8)
        for m in range(3)
    ]
    data, model = tmp_path / "d.jsonl", tmp_path / "m.safetensors"
    data.write_text("".join(json.dumps(line) + "\n" for line in lists))
    run("rerank", "fit", data, "-o", model, "--quick")
    step = ["--recency", "date=1d:1", "--json"]
    passages = json.loads(run("rerank", "rank", model, data, *step))["queries"][0]["passages"]
    reasons = {one["id"]: one["steps"][0]["reason"] for one in passages}
    ages = {name: int(reason.split()[0]) for name, reason in reasons.items()}
    assert ages["0-0"] - ages["0-2"] == 59  # days from January to March
