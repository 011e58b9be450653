"""`didyma rerank`: from texts and judgements to a model, rankings and reasons."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import didyma
from didyma.cli import app
from didyma.data.texts import reader as texts
from didyma.data.trec import read_run
from didyma.report.explanations import marked
from tests.cli.conftest import Run
from tests.text.texts import made

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
PASSAGES = "It rains today .\nThe castle of Belaford was built by Ada Falk .\nA clock has hands .\n"
QUERY = "who built the castle of Belaford ?"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rerank")
    for name, n_lines in (("train", 500), ("test", 120)):
        lines = (EXAMPLES / f"passages-{name}.tsv").read_text().splitlines()[:n_lines]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    (folder / "passages.txt").write_text(PASSAGES)
    return folder


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    path = data / "model.didyma.safetensors"
    arguments = ["rerank", "fit", str(data / "train.tsv"), "-o", str(path), "--quick", "--json"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    (data / "fit.json").write_text(found.stdout)
    return path


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


def test_eval_compares_with_the_order_before(run: Run, data: Path, model: Path) -> None:
    shown = json.loads(run("rerank", "eval", model, data / "test.tsv", "--json").stdout)
    before, after = shown["systems"]
    assert before["name"] == shown["baseline"]
    assert shown["measure"] == "AP"
    assert shown["n_queries"] + shown["left_out"] == len(texts.read(data / "test.tsv").groups)
    assert shown["drift"]["verdict"]
    every = json.loads(run("rerank", "eval", model, data / "test.tsv", "--all", "--json").stdout)
    assert every["left_out"] == 0
    text = run("rerank", "eval", model, data / "test.tsv", "--measures", "RR").stdout
    assert after["name"] in text
    assert "of RR against" in text
    assert "left out" in text


def test_drift_is_said(run: Run, model: Path, tmp_path: Path) -> None:
    path, learned = tmp_path / "far.tsv", tmp_path / "learned"
    lines, random = ["query\tpassage\tlabel"], np.random.default_rng(0)
    for n in range(60):
        asked = " ".join(f"word{k}" for k in random.integers(20, size=9))
        for k in range(6):
            long = " ".join(f"word{k}" for k in random.integers(40, size=random.integers(5, 300)))
            lines.append(f"{n} {asked}\t{long}\t{int(k == 0)}")
    path.write_text("\n".join(lines) + "\n")
    reranker = didyma.TextReranker(quick=True).fit(made())
    assert reranker.gate_.passed
    reranker.save(learned)
    warning = "warning: these queries are not like those of training"
    for command in ("eval", "rank"):
        assert warning in run("rerank", command, learned, path).stderr
    # This one has kept the order of BM25, which it can do no harm to; probabilities may be off.
    assert not didyma.load(model).gate_.passed
    found = run("rerank", "eval", model, path, "--json")
    assert f"{warning}: uncalibrated: the order rests little on" in found.stderr
    assert json.loads(found.stdout)["drift"]["level"] == "uncalibrated"


def test_rankings_in_three_formats(run: Run, data: Path, model: Path, tmp_path: Path) -> None:
    lists = texts.read(data / "test.tsv")
    for name in ("ranked.jsonl", "ranked.tsv.gz", "ranked.run"):
        found = run("rerank", "rank", model, data / "test.tsv", "-o", tmp_path / name)
        assert f"{len(lists)} passages for {len(lists.groups)} queries" in found.stderr
    by_objects, by_table = (
        texts.read(tmp_path / name) for name in ("ranked.jsonl", "ranked.tsv.gz")
    )
    assert list(by_objects.items) == list(by_table.items)
    assert by_objects.queries == by_table.queries == lists.queries
    assert sorted(by_objects.items) == sorted(lists.items)
    assert by_objects.scores is not None
    assert by_objects.docid is not None
    for n in range(len(by_objects.groups)):
        own = by_objects.scores[by_objects.groups.starts[n] : by_objects.groups.starts[n + 1]]
        assert (np.diff(own) <= 0).all()
        assert ((own > 0) & (own < 1)).all()
    order = read_run(tmp_path / "ranked.run")
    pairs = set(zip(order.qid.tolist(), order.docid.tolist()))
    assert pairs == set(zip(by_objects.qid.tolist(), by_objects.docid.tolist()))
    short = run("rerank", "rank", model, data / "test.tsv", "--top-k", 1).stdout.splitlines()
    assert short[0].split("\t") == [
        "qid",
        "rank",
        "score",
        "probability",
        "docid",
        "query",
        "passage",
    ]
    assert len(short) == 1 + len(lists.groups)


def test_one_query(run: Run, data: Path, model: Path) -> None:
    arguments = ["rerank", "rank", str(model), "--query", QUERY]
    table = run(*arguments, data / "passages.txt").stdout.splitlines()
    assert table[0] == "rank\tscore\tprobability\tdocid\tpassage"
    assert table[1].endswith("1-2\tThe castle of Belaford was built by Ada Falk .")
    piped = CliRunner().invoke(app, arguments, input=PASSAGES)
    assert piped.stdout.splitlines() == table
    lines = [{"id": f"p{n}", "text": line} for n, line in enumerate(PASSAGES.splitlines())]
    lines[1]["year"] = "1375"
    given = "\n".join(map(json.dumps, lines))
    (first,) = json.loads(CliRunner().invoke(app, [*arguments, "--json"], input=given).stdout)[
        "queries"
    ]
    best, *_ = first["passages"]
    assert (best["id"], best["rank"], best["year"]) == ("p1", 1, "1375")
    titled = '{"_id": 3, "title": "Belaford", "passage": "A castle ."}'
    found = CliRunner().invoke(app, [*arguments, "--json"], input=titled)
    (only,) = json.loads(found.stdout)["queries"][0]["passages"]
    assert (only["id"], only["text"]) == ("3", "Belaford A castle .")


def test_thresholds(run: Run, data: Path, model: Path) -> None:
    arguments = ("rerank", "rank", model, data / "passages.txt", "--query", QUERY)
    every = run(*arguments).stdout.splitlines()[1:]
    scores = [float(line.split("\t")[1]) for line in every]
    cut = run(*arguments, "--threshold", (scores[0] + scores[1]) / 2).stdout.splitlines()[1:]
    assert cut == every[:1]
    found = run(*arguments, "--threshold", 1)
    assert found.stdout.splitlines()[1:] == []
    assert "1 of 1 queries have no passage that reaches the threshold" in found.stderr
    found = run(*arguments, "--precision", 0.2)
    assert re.search(r"threshold 0\.\d+: with 90% confidence 20% of a query's", found.stderr)


def test_explanations(run: Run, data: Path, model: Path) -> None:
    arguments = ("rerank", "explain", model, data / "passages.txt", "--query", QUERY)
    text = run(*arguments, "--top-k", 2).stdout
    assert "1. score 0." in text
    assert "2. score 0." in text
    assert "raw score" in text
    assert "[castle" in text
    (best,) = json.loads(run(*arguments, "--json").stdout)["passages"]
    total = best["intercept"] + sum(part["amount"] for part in best["contributions"])
    assert total == pytest.approx(best["raw"])
    assert best["text"][best["spans"][0]["start"] : best["spans"][0]["stop"]].split()[0] in QUERY


def test_marks() -> None:
    assert marked("a b c", []) == "a b c"
    assert marked("äß c", [(0, 2), (3, 4)]) == "[äß] [c]"


def test_a_first_stage_is_asked_for_again(run: Run, data: Path, tmp_path: Path) -> None:
    lists = texts.read(data / "train.tsv")
    assert lists.queries is not None
    noise = np.random.default_rng(0).normal(size=len(lists)).round(3)
    rows = zip(lists.groups.codes.tolist(), lists.items, lists.y.tolist(), noise.tolist())
    lines = [f"{lists.queries[q]}\t{text}\t{y}\t{y + score}" for q, text, y, score in rows]
    scored, model = tmp_path / "scored.tsv", tmp_path / "model.safetensors"
    scored.write_text("\n".join(["query\tpassage\tlabel\tscore", *lines]) + "\n")
    shown = run("rerank", "fit", scored, "-o", model, "--quick").stdout
    assert "of z-sum, the best of 5 orders that need no training" in shown
    assert run("rerank", "rank", model, scored, "--top-k", 1).stdout
    for command in ("rank", "eval"):
        said = run("rerank", command, model, data / "test.tsv", code=1).stderr
        assert "test.tsv, scores: expected the first stage's scores, found none" in said
    given = '{"text": "It rains .", "score": 2}\n{"text": "No .", "score": 1}\n'
    arguments = ["rerank", "rank", str(model), "--query", "does it rain ?"]
    assert CliRunner().invoke(app, arguments, input=given).exit_code == 0


def test_scores_beside_passages_may_be_of_no_use(
    run: Run, data: Path, model: Path, tmp_path: Path
) -> None:
    objects = [{"text": text, "score": 1.0} for text in PASSAGES.splitlines()]
    scored = tmp_path / "scored.jsonl"
    scored.write_text("".join(json.dumps(own) + "\n" for own in objects))
    for command in ("rank", "explain"):
        found, expected = (
            run("rerank", command, model, passages, "--query", QUERY, "--json").stdout
            for passages in (scored, data / "passages.txt")
        )
        assert found == expected
    (tmp_path / "plain.tsv").write_text("query\tpassage\nwho is it ?\tit is me\n")
    (tmp_path / "scored.tsv").write_text("query\tpassage\tscore\nwho is it ?\tit is me\t3\n")
    found, expected = (
        run("rerank", "rank", model, tmp_path / name).stdout for name in ("scored.tsv", "plain.tsv")
    )
    assert found == expected


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
        ("fit {data}/train.tsv --measure MAPP", 1, "MAPP"),
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
    command = [
        sys.executable,
        "-m",
        "didyma",
        "rerank",
        "fit",
        str(data / "train.tsv"),
        "-o",
        str(path),
    ]
    said: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if line.startswith("1/"):
                os.kill(process.pid, signal.SIGINT)
                break
        said.append(process.stderr.read())
    assert process.returncode == 130, said
    assert "interrupted: the best reranker so far was kept" in said[-1]
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
