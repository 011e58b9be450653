"""`didyma rerank fit`: from texts and judgements to a model."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import didyma
from didyma.data.texts import reader as texts
from didyma.data.trec import read_run
from didyma.model import version_of
from tests.cli.conftest import Run, interrupt

QUERY = "who built the castle of Belaford ?"


def test_fit_says_what_was_chosen_and_why(data: Path, model: Path) -> None:
    shown = json.loads((data / "fit.json").read_text())
    assert shown["model"] == str(model)
    assert shown["bytes"] == model.stat().st_size < 2_000_000
    assert shown["train"]["passages"] == 500
    assert shown["gate"]["verdict"]
    assert shown["trials"]
    before, after = shown["held_out"]["systems"]
    assert {"AP", "RR", "nDCG@10"} == before["means"].keys() == after["means"].keys()
    assert after["p_value"] is not None
    assert 0 <= shown["calibration"]["expected_calibration_error"] <= 1
    assert shown["interrupted"] is False


def test_a_model_says_how_it_came_about(run: Run, data: Path, model: Path) -> None:
    text = run("inspect", model).stdout
    assert "TextReranker" in text
    assert "passages: 500" in text
    assert "calibration on held-out queries" in text
    compared = json.loads(run("inspect", model, "--json").stdout)["calibration"]
    assert compared == json.loads((data / "fit.json").read_text())["calibration"]["compared"]
    assert [own["of"] for own in compared] == ["probability"] * 3 + ["score"] * 3
    assert json.loads((data / "fit.json").read_text())["gate"]["verdict"] in text


def test_fit_in_words_and_as_a_page(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path, page = tmp_path / "again.safetensors", tmp_path / "report.html"
    found = run(
        *("rerank", "fit", data / "train.tsv", "-o", path, "--quick", "--html", page, "--seed", 0),
    )
    verdict = json.loads((data / "fit.json").read_text())["gate"]["verdict"]
    assert verdict in found.stdout
    for word in ("reranker", "nDCG@10", "two-tailed", "ranks by", "calibration", "threshold"):
        assert word in found.stdout
    assert f"{data / 'train.tsv'}: " in found.stderr
    assert re.search(r"1/\d", found.stderr)  # what was tried
    assert verdict[:40] in page.read_text()
    again, before = (
        didyma.load(file).predict(texts.read(data / "test.tsv")) for file in (path, model)
    )
    assert again.tolist() == before.tolist()  # equal seeds, equal results


def test_folders_and_files_of_trec(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    """BM25 finds candidates where there are none."""
    lists = texts.read(data / "test.tsv")
    passages = list(dict.fromkeys(lists.items))
    numbers = {text: f"d{n}" for n, text in enumerate(passages)}
    assert lists.queries is not None
    files = {
        "queries.tsv": [f"{n}\t{query}" for n, query in enumerate(lists.queries)],
        "passages.tsv": [f"{name}\t{text}" for text, name in numbers.items()],
        "qrels.tsv": [
            f"{n}\t{numbers[lists.items[row]]}\t{int(lists.y[row])}"
            for n in range(len(lists.groups))
            for row in dict.fromkeys(
                lists.groups.rows[lists.groups.starts[n] : lists.groups.starts[n + 1]]
            )
        ],
    }
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(dict.fromkeys(lines)) + "\n")
    shown = json.loads(run("rerank", "eval", model, tmp_path, "--depth", 5, "--json").stdout)
    by_file = [
        word
        for name in ("queries", "passages", "qrels")
        for word in (f"--{name}", tmp_path / f"{name}.tsv")
    ]
    assert shown == json.loads(
        run("rerank", "eval", model, *by_file, "--depth", 5, "--json").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ("fit", 2, "--queries and --passages"),
        ("fit {data}/train.tsv --queries {data}/train.tsv", 2, "give DATA or these"),
        ("fit {data}/train.tsv --names rating=x", 2, "expected query, passage"),
        ("fit {data}/train.tsv --quick --features extended", 2, "small set only"),
        ("fit {data}/train.tsv --measure MAPP", 2, "MAPP"),
        ("fit {data}/train.tsv --language klingon -o {tmp}/m", 1, "language"),
        ("fit {data}/train.tsv -o {data}/train.tsv", 1, "overwritten"),
        ("fit {data}/train.tsv -o {tmp}/none/m", 1, "no folder"),
        ("fit {tmp}/plain.jsonl -o {tmp}/m --measure AP", 2, "--measure: needs labels"),
        ("fit {tmp}/plain.jsonl -o {tmp}/m --increasing a", 2, "--increasing: needs labels"),
        ("fit {tmp}/plain.jsonl -o {tmp}/m --html {tmp}/h", 2, "--html: needs labels"),
        ("fit {tmp}/wrong.jsonl -o {tmp}/m", 1, "wrong.jsonl, line 2, label"),
        ("fit {tmp}/alike.tsv -o {tmp}/m", 1, "expected a query with a relevant"),
        ("fit {tmp}/nothing -o {tmp}/m", 1, "No such file"),
        ("eval {model} {tmp}/alike.tsv", 1, "expected a query with relevant passages and others"),
        ("eval {model} {tmp}/plain.jsonl", 1, "plain.jsonl, label: expected labels"),
        ("eval {data}/train.tsv {data}/train.tsv", 1, "not a model"),
        ("rank {model} {data}/test.tsv -o {model}", 1, "overwritten"),
        ("rank {model} {data}/test.tsv --threshold .5 --precision .5", 2, "give one of them"),
        ("rank {model} {data}/test.tsv -o {tmp}/x --json", 2, "give one of them"),
        ("rank {model} {tmp}/empty --query who", 1, "expected passages, one a line"),
        ("rank {model} {tmp}/half.jsonl --query who", 1, "half.jsonl, score"),
        ("rank {model} {tmp}/broken.jsonl --query who", 1, "broken.jsonl, line 2"),
        ("explain {model} {tmp}/empty --query who", 1, "expected passages, one a line"),
    ],
)
def test_users_mistakes(
    arguments: str, code: int, problem: str, run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    for name, contents in {
        "plain.jsonl": '{"query": "who?", "passage": "a"}\n',
        "wrong.jsonl": '{"query": "who?", "passage": "a", "label": 1}\n'
        '{"query": "who?", "passage": "a", "label": "x"}\n',
        "alike.tsv": "query\tpassage\tlabel\nwho?\tAda\t0\nwho?\tIda\t0\n",
        "empty": "\n",
        "half.jsonl": '{"text": "a", "score": 1}\n{"text": "b"}\n',
        "broken.jsonl": '{"text": "a"}\n{"text": 3}\n',
    }.items():
        (tmp_path / name).write_text(contents)
    words = arguments.format(data=data, tmp=tmp_path, model=model).split()
    assert problem in run("rerank", *words, code=code).stderr
    assert not (tmp_path / "m").exists()


def test_ctrl_c_keeps_the_best_so_far(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    words = ["rerank", "fit", str(data / "train.tsv"), "-o", str(path)]
    said = interrupt(words, signal.SIGINT, "small set", 130)  # the first that was tried
    assert "interrupted: the best reranker so far was kept" in said
    assert path.exists()
    assert not list(tmp_path.glob(".*"))


def test_a_teachers_scores(run: Run, data: Path, tmp_path: Path) -> None:
    """Real numbers are learned from, and the comparison is by grades."""
    lists = texts.read(data / "train.tsv")
    assert lists.queries is not None
    path = tmp_path / "scored.jsonl"
    random = np.random.default_rng(0)
    values = (lists.y + random.normal(size=len(lists)) / 8).round(3)
    codes = lists.groups.codes.tolist()
    rows: list[dict[str, Any]] = [
        {"query": lists.queries[code], "passage": text, "score": value}
        for code, text, value in zip(codes, lists.items, values.tolist())
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = json.loads(
        run(
            *("rerank", "fit", path, "--names", "label=score", "--features", "small", "--json"),
            *("-o", tmp_path / "student.safetensors"),
        ).stdout
    )
    assert shown["gate"]["measure"].startswith("nDCG")


def test_signals_and_opponents_are_shown(run: Run, data: Path, tmp_path: Path) -> None:
    lists = texts.read(data / "train.tsv")
    assert lists.queries is not None
    rng = np.random.default_rng(0)
    rows = [
        {"query": lists.queries[q], "text": text, "label": y, "clicks": float(rng.normal() + y)}
        for q, text, y in zip(lists.groups.codes.tolist(), lists.items, lists.y.tolist())
    ]
    train, model = tmp_path / "train.jsonl", tmp_path / "model.safetensors"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = run("rerank", "fit", train, "-o", model, "--quick", "--increasing", "clicks")
    assert shown.stderr.count("clicks  signal") == 1
    assert "clicks  signal" not in shown.stdout  # said once, before the search
    assert "signal.clicks" in shown.stdout
    passages = tmp_path / "passages.jsonl"
    passages.write_text('{"text": "It rains .", "clicks": 2}\n{"text": "No ."}\n')
    said = run("rerank", "explain", model, "--query", QUERY, passages, "--top-k", 2)
    assert "raw" in said.stdout


def test_without_labels_nothing_is_learned(run: Run, data: Path, tmp_path: Path) -> None:
    lists = texts.read(data / "train.tsv")
    assert lists.queries is not None
    rows = [
        {"query": lists.queries[q], "text": text, "dense": n % 7}
        for n, (q, text) in enumerate(zip(lists.groups.codes.tolist(), lists.items))
    ]
    train, model = tmp_path / "train.jsonl", tmp_path / "model.safetensors"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = run("rerank", "fit", train, "-o", model)
    assert "train.jsonl: without labels nothing is learned" in told.stderr
    assert "the sum of z-scores of signal.dense, stem_bm25" in told.stdout
    shown = json.loads(run("rerank", "fit", train, "-o", model, "--json").stdout)
    assert shown["calibration"] is shown["held_out"] is None
    assert shown["gate"]["kept"] == "z-sum"
    ranked = run("rerank", "rank", model, "--query", QUERY, data / "passages.txt").stdout
    assert "Belaford" in ranked.splitlines()[1]
    passages = data / "passages.txt"
    said = run("rerank", "rank", model, "--query", QUERY, passages, "--precision", 0.5, code=1)
    assert "a threshold needs at least 10 held-out passages" in said.stderr


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of queries, passages and judgements, with two runs that have tags."""
    folder, random = tmp_path_factory.mktemp("runs"), np.random.default_rng(0)
    lists = texts.read(data / "train.tsv")
    assert lists.queries is not None
    files: dict[str, list[str]] = {"queries.tsv": [], "corpus.tsv": [], "qrels.tsv": []}
    files["queries.tsv"] = [f"q{n}\t{query}" for n, query in enumerate(lists.queries)]
    files |= {"lexical.run": [], "dense.run": []}
    rows = enumerate(zip(lists.groups.codes.tolist(), lists.items, lists.y.tolist()))
    for row, (q, text, label) in rows:
        files["corpus.tsv"].append(f"d{row}\t{text}")
        files["qrels.tsv"].append(f"q{q} 0 d{row} {label:.0f}")
        for name in ("lexical", "dense"):
            if row % 5 or name == "lexical":
                score = random.normal() + 2 * label
                files[f"{name}.run"].append(f"q{q} Q0 d{row} 1 {score:.3f} {name}")
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def test_several_runs(run: Run, runs: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    both = ("--run", runs / "lexical.run", "--run", runs / "dense.run")
    fitted = json.loads(run("rerank", "fit", runs, *both, "-o", model, "--quick", "--json").stdout)
    assert [row["field"] for row in fitted["schema"]] == ["lexical", "dense"]
    reranker = didyma.TextReranker.load(model)
    lists = texts.read(runs, run=[both[1], both[3]], schema=reranker.schema_)
    assert lists.attributes is not None
    assert set(lists.attributes.first_stages) == {"lexical", "dense"}
    shown = json.loads(run("rerank", "eval", model, runs, *both, "--json").stdout)
    assert shown["systems"][1]["means"]["AP"] > 0.7
    ranked = run("rerank", "rank", model, runs, *both, "-o", tmp_path / "run.txt")
    assert f"{len(lists)} passages" in ranked.stderr
    written = read_run(tmp_path / "run.txt")
    scores = dict(zip(zip(lists.qid.tolist(), lists.docid.tolist()), reranker.predict(lists)))  # type: ignore[union-attr]
    of_query = written.qid == written.qid[0]
    raw = [scores[pair] for pair in zip(written.qid[of_query], written.docid[of_query])]
    assert raw == sorted(raw, reverse=True)


@pytest.mark.filterwarnings("ignore::didyma.errors.LeftOutWarning")
def test_runs_are_those_of_training(run: Run, runs: Path, tmp_path: Path) -> None:
    model, one = tmp_path / "model.safetensors", tmp_path / "one.safetensors"
    both = ("--run", runs / "lexical.run", "--run", runs / "dense.run")
    run("rerank", "fit", runs, *both, "-o", model, "--quick")
    said = run("rerank", "eval", model, runs, "--run", runs / "dense.run").stderr
    assert "no run lexical, which the model was trained with" in said
    schema = didyma.TextReranker.load(model).schema_
    lists = texts.read(runs, run=runs / "dense.run", schema=schema)
    assert lists.attributes is not None
    assert lists.scores is None
    assert np.isnan(lists.attributes.signals["lexical"]).all()
    assert not np.isnan(lists.attributes.signals["dense"]).any()
    other = tmp_path / "other.run"
    other.write_text((runs / "dense.run").read_text().replace(" dense", " cosine"))
    said = run("rerank", "rank", model, runs, "--run", other, code=1).stderr
    assert "expected runs with tags lexical, dense, as in training, found 'cosine'" in said
    run("rerank", "fit", runs, *both[:2], "-o", one, "--quick")
    said = run("rerank", "rank", one, runs, *both, code=1).stderr
    assert "scores that the model was not trained with: lexical, dense" in said
    assert "expected the first stage's scores, found none" in said


def test_a_new_model_is_held_against_the_live_one(run: Run, pair: Path, tmp_path: Path) -> None:
    live, new = pair / "old.safetensors", tmp_path / "m.safetensors"
    arguments = ("rerank", "fit", pair / "all.jsonl", "--quick", "-o", new, "--against", live)
    document = json.loads(run(*arguments, "--json").stdout)
    assert document["version"]["parent"] == version_of(live).id == version_of(new).parent
    compared = document["against"]
    trained = didyma.load(new).trained_on_
    queries = [own["query"] for own in compared["queries"]]
    assert queries
    assert not trained.seen(queries).any()
    assert not didyma.load(live).trained_on_.seen(queries).any()
    assert trained.n_queries + len(queries) + compared["left_out"]["passages of one kind"] <= 40
    again = run(*arguments, "--if-better", code=0 if compared["promote"] else 3)
    assert compared["verdict"] in again.stdout
    refused = run(*arguments, "--test", pair / "test.jsonl", code=1)
    assert "20 were seen in training" in refused.stderr
    run("rerank", "fit", pair / "all.jsonl", "--if-better", code=2)
