"""`didyma judge` from files to a model and a work list."""

from __future__ import annotations

import json
from pathlib import Path

import didyma
from didyma.data.texts import json_lines
from didyma.judgements import Judgement, JudgementStore
from tests.cli.conftest import Run
from tests.text.texts import made


def test_from_ratings_to_a_model_and_what_is_next(run: Run, tmp_path: Path) -> None:
    lists = made(12, 0)
    json_lines.write(lists, tmp_path / "train.jsonl")
    store = tmp_path / "judgements"
    found = run("judge", "import", store, tmp_path / "train.jsonl", "--who", "anna")
    assert f"{len(lists)} judgements added" in found.stderr
    model = tmp_path / "m.safetensors"
    run("rerank", "fit", store, "-o", model, "--quick")
    assert didyma.load(model).trained_on_.seen(lists.queries).all()
    run("judge", "export", store, tmp_path / "again.jsonl")
    run("rerank", "fit", tmp_path / "again.jsonl", "-o", tmp_path / "n.safetensors", "--quick")
    assert didyma.load(tmp_path / "n.safetensors").version_.data == didyma.load(model).version_.data

    json_lines.write(made(6, 1), tmp_path / "test.jsonl")
    enough = run("judge", "enough", model, tmp_path / "test.jsonl", "--gain", ".3", "--json")
    assert json.loads(enough.stdout)["n_queries"] == 6
    work = tmp_path / "work.jsonl"
    run("judge", "next", model, tmp_path / "test.jsonl", "--top", 5, "-o", work)
    first = json.loads(work.read_text().splitlines()[0])
    JudgementStore(store).add([Judgement(first["query"], first["document"], 1, who="bert")])
    left = run("judge", "next", model, tmp_path / "test.jsonl", "--judgements", store, "--json")
    pairs = [(own["query"], own["document"]) for own in json.loads(left.stdout)["work"]]
    assert (first["query"], first["document"]) not in pairs


def test_agreement_and_weights(run: Run, tmp_path: Path) -> None:
    store = tmp_path / "s"
    for who, labels in (("anna", [1, 0, 1]), ("llm", [1, 0, 0])):
        rows = "".join(f"who?,d{n},{label}\n" for n, label in enumerate(labels))
        (tmp_path / f"{who}.csv").write_text(f"query,docid,label\n{rows}")
        run("judge", "import", store, tmp_path / f"{who}.csv")
    assert "Krippendorff's alpha" in run("judge", "agree", store).stdout
    judges = json.loads(run("judge", "agree", store, "--json").stdout)["judges"]
    assert [own["who"] for own in judges] == ["anna", "llm"]
    run("judge", "export", store, tmp_path / "q.csv", "--format", "quepid", "--weights", "llm=.5")
    assert "who?,d2,1" in (tmp_path / "q.csv").read_text()
    run("judge", "export", store, tmp_path / "q.csv", "--format", "quepid")
    assert "who?,d2,0" in (tmp_path / "q.csv").read_text()
    run("judge", "export", store, tmp_path / "r.csv", "--weights", "agreement")
    assert (
        "one of anna, llm"
        in run("judge", "export", store, tmp_path / "x.jsonl", "--weights", "me=1", code=1).stderr
    )
    run("judge", "export", store, tmp_path / "x.jsonl", "--weights", "me", code=2)


def test_mistakes_are_one_line(run: Run, tmp_path: Path) -> None:
    assert "found none" in run("judge", "agree", tmp_path / "none", code=1).stderr
    (tmp_path / "a.csv").write_text("query,docid,label\nq,d,good\n")
    refused = run("judge", "import", tmp_path / "s", tmp_path / "a.csv", code=1)
    assert "a.csv, line 2, label: expected a number, found 'good'" in refused.stderr
    assert not (tmp_path / "s").exists()
