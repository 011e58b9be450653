"""What the reader of a page has beforehand, and what must have come of it in the end.

A function for a page of that name (`docs/large_data.md` is ``large_data``): before ``yield`` it
writes files and names that the page takes for granted, after it looks at what the page has made.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import config_context

import didyma
from didyma.data import formats
from didyma.protocol import Estimator
from tests.applications.clicks.test_command import write_log
from tests.applications.coreference.test_command import tale
from tests.applications.motif.conftest import write as write_fasta
from tests.cli.conftest import make
from tests.docs.blocks import ROOT, blocks_of
from tests.docs.session import Session
from tests.text.texts import made

DATA = ROOT / "examples" / "data"
Given = Iterator[None]


def head(source: Path, target: Path, n_lines: int) -> None:
    """The first lines of a file."""
    target.write_text("\n".join(source.read_text().splitlines()[:n_lines]) + "\n")


def write_rows(folder: Path, suffix: str = "txt", *, names: bool = False) -> None:
    """Judged rows to train on, to choose by and to test on."""
    for seed, name in enumerate(("train", "dev", "test")):
        formats.write(make(seed, names=names), folder / f"{name}.{suffix}")


def write_tales(folder: Path) -> None:
    """Documents with coreference."""
    for part, seeds in (("train", range(4)), ("dev", [4]), ("test", [5])):
        (folder / part).mkdir()
        for seed in seeds:
            (folder / part / f"tale{seed}.conll").write_text(tale(seed))
    shutil.copy(folder / "test" / "tale5.conll", folder / "test.conll")


def write_sequences(folder: Path) -> None:
    """Sequences with a motif, and others."""
    for seed, (name, n, motif) in enumerate(
        (("bound", 20, "TTTACGTTTAC"), ("unbound", 20, None), ("others", 10, None))
    ):
        write_fasta(folder / f"{name}.fa", seed, n, motif)
    write_fasta(folder / "test.fa", 8, 10, "TTTACGTTTAC")
    write_fasta(folder / "genome.fa", 9, 5, "TTTACGTTTAC")
    with gzip.open(folder / "genome.fa.gz", "wt") as file:
        file.write((folder / "genome.fa").read_text())


def write_treebank(folder: Path, n_sentences: int) -> None:
    """A few sentences with their trees."""
    for part in ("train", "dev", "test"):
        sentences = (DATA / f"treebank-{part}.conllu").read_text().split("\n\n")[:n_sentences]
        (folder / f"{part}.conllu").write_text("\n\n".join(sentences) + "\n\n")


def write_examples(folder: Path, *kinds: str, n_lines: int | None = None) -> None:
    """The files of examples/data, or the first lines of each."""
    (folder / "examples" / "data").mkdir(parents=True)
    for kind in kinds:
        for path in DATA.glob(f"{kind}-*"):
            head(path, folder / "examples" / "data" / path.name, n_lines or 10**6)


@contextmanager
def by_default(kind: type, **values: Any) -> Iterator[None]:
    """Let parameters that a page does not name have other values, for less work."""
    defaults = kind.__init__.__kwdefaults__  # type: ignore[misc]
    before = {name: defaults[name] for name in values}
    defaults |= values
    try:
        yield
    finally:
        defaults |= before
        if issubclass(kind, Estimator):  # which remembers its defaults
            kind._parameters_of_class.cache_clear()  # type: ignore[attr-defined]


def additive(session: Session) -> Given:
    write_rows(session.folder)
    rows = make(0)
    session.names |= {"X": rows.X, "y": rows.y, "qid": rows.qid}
    yield
    assert (session.folder / "functions.png").exists()


def clicks(session: Session) -> Given:
    write_log(session.folder)
    yield
    assert len(session.names["judged"].lists) == 360


def coreference(session: Session) -> Given:
    write_tales(session.folder)
    yield
    assert len(session.names["labels"]) == 1


def export(session: Session) -> Given:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    write_rows(session.folder, "csv", names=True)
    yield
    if (node := shutil.which("node")) is None:
        return
    page = (ROOT / "docs" / "export.md").read_text()
    (script,) = (block.code for block in blocks_of(page) if block.language == "js")
    (session.folder / "page.mjs").write_text(script)
    scorer = ROOT / "src" / "didyma" / "exports" / "npm" / "score.js"
    shutil.copy(scorer, session.folder / "score.js")
    (session.folder / "package.json").write_text('{"type": "module"}')
    shown = subprocess.run([node, "page.mjs"], capture_output=True, text=True, check=True).stdout
    by_place, by_name = map(float, shown.split())
    columns = ("bm25", "length", "age", "clicks")
    row = didyma.Lists(np.array([[1.5, 0.2, 3.0, np.nan]]), feature_names=columns)
    expected = didyma.load("additive.didyma.safetensors").predict(row)
    np.testing.assert_allclose([by_place, by_name], [expected[0]] * 2, rtol=1e-12)


def write_shop(folder: Path) -> None:
    """Documents with a popularity and a vector, and judgements of four documents for a query."""
    lists, rng = made(30), np.random.default_rng(0)
    assert lists.queries is not None
    meanings = rng.normal(size=(30, 4))
    near = (
        np.repeat(meanings, 6, axis=0) + rng.normal(size=(180, 4)) * (0.2 + (lists.y == 0))[:, None]
    )
    popularity = rng.lognormal(3, 1, 180) * (1 + 3 * lists.y)
    documents = [
        {
            "_id": f"d{n}",
            "title": text.partition(" of ")[0],
            "text": text,
            "popularity": float(popularity[n].round(1)),
            "vector": (near[n] / np.linalg.norm(near[n])).round(3).tolist(),
        }
        for n, text in enumerate(lists.items)
    ]
    queries = [
        {"_id": f"q{n}", "text": text, "vector": (own / np.linalg.norm(own)).round(3).tolist()}
        for n, (text, own) in enumerate(zip(lists.queries, meanings))
    ]
    (folder / "qrels").mkdir(parents=True)
    for name, records in (("corpus", documents), ("queries", queries)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text)
    for part, of in (("train", range(25)), ("test", range(25, 30))):
        lines = ["query-id\tcorpus-id\tscore\n"]
        for query in of:
            rows = sorted(lists.groups.rows_of(query).tolist(), key=lambda row: -lists.y[row])[:4]
            lines += [f"q{query}\td{row}\t{lists.y[row]:.0f}\n" for row in rows]
        (folder / "qrels" / f"{part}.tsv").write_text("".join(lines))


def hybrid(session: Session) -> Given:
    write_shop(session.folder / "shop")
    page = (ROOT / "docs" / "hybrid.md").read_text().partition("\n## ")[0]
    lines = [line for block in blocks_of(page) for line in block.code.splitlines() if line.strip()]
    assert len(lines) <= 40
    yield
    judged = (session.folder / "shop" / "qrels" / "train.tsv").read_text().splitlines()
    assert len(judged) == 1 + 100
    model = didyma.load("shop.didyma.safetensors")
    roles = {field.name: field.role for field in model.schema_.fields}
    assert roles == {
        **dict.fromkeys(("title", "text"), "text"),
        **dict.fromkeys(("popularity", "bm25", "dense"), "signal"),
        "vector": "vector",
    }
    orders = {order.name for order in model.gate_.opponents}
    signals = {"signal.bm25", "signal.dense", "signal.popularity"}
    assert signals | {"meaning", "stem_bm25", "z-sum", "RRF"} <= orders
    assert [own["index"] for own in session.answers[-1]["results"]] == [1, 0]


def large_data(session: Session) -> Given:
    write_rows(session.folder)
    yield
    scores = (session.folder / "scores.txt").read_text().splitlines()
    assert len(scores) == len(make(2))
    session.didyma(["convert", "train.lists", "back.txt"])
    assert formats.read("back.txt").qid.tolist() == make(0).qid.tolist()


def judgements(session: Session) -> Given:
    write_ratings(session.folder)
    session.didyma(["rerank", "fit", "judged.tsv", "-o", "live.safetensors"])
    for copy in ("new.safetensors", "candidates.jsonl"):
        source = "test.jsonl" if copy.endswith("jsonl") else "live.safetensors"
        shutil.copy(session.folder / source, session.folder / copy)
    for name, text in (
        ("topics.tsv", "q1\twho rang?\n"),
        ("docs.tsv", "d7\tThey rang.\nd8\tIt rains.\n"),
        ("qrels.txt", "q1 0 d7 1\nq1 0 d8 0\n"),
        ("tokens.txt", "secret\n"),
    ):
        (session.folder / name).write_text(text)
    yield
    assert session.answers == [{"stored": 1}]
    assert len(session.names["lists"].groups) == 1
    assert (session.folder / "work.jsonl").read_text().count("\n") == 50


def compare(session: Session) -> Given:
    write_ratings(session.folder)
    session.didyma(["rerank", "fit", "judged.tsv", "-o", "live.safetensors"])
    shutil.copy(session.folder / "live.safetensors", session.folder / "other.safetensors")
    session.didyma(["judge", "import", "judgements/", "ratings.csv"])
    yield
    assert session.printed.count("Promote new") == 2
    assert (session.folder / "compared.html").exists()


def low_rank(session: Session) -> Given:
    yield
    assert "n_components" in session.printed


def constraints(session: Session) -> Given:
    yield
    assert session.names["solution"].converged.all()


def motif(session: Session) -> Given:
    write_sequences(session.folder)
    session.names["labels"] = np.repeat([1, -1], 20)
    yield
    assert "<svg" in (session.folder / "motif.svg").read_text()


def nbest(session: Session) -> Given:
    for part in ("train", "dev", "test"):
        head(DATA / f"nbest-{part}.jsonl", session.folder / f"{part}.jsonl", 40)
    write_treebank(session.folder, 30)
    yield
    assert session.names["best"].index == session.names["chosen"][1]


def nli(session: Session) -> Given:
    pytest.importorskip("torch", reason="torch is not installed")
    write_examples(session.folder, "nli", n_lines=40)
    for part in ("train", "dev"):
        head(DATA / f"nli-{part}.jsonl", session.folder / f"{part}.jsonl", 12)
    from didyma.applications.alignment import EntailmentClassifier

    with by_default(EntailmentClassifier, epochs=1):
        yield
    assert (session.folder / "alignments.html").exists()


def parsing(session: Session) -> Given:
    pytest.importorskip("torch", reason="torch is not installed")
    write_treebank(session.folder, 8)
    from didyma.applications.parsing import DependencyParser

    with by_default(DependencyParser, epochs=1):
        yield
    assert (session.folder / "trees.html").exists()


def passages(session: Session) -> Given:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    write_examples(session.folder, "passages", n_lines=60)
    for part in ("train", "dev", "test"):
        head(DATA / f"passages-{part}.tsv", session.folder / f"passages-{part}.tsv", 60)
        head(DATA / f"passages-{part}.tsv", session.folder / f"{part}.tsv", 60)
    rows = make(0)
    session.names |= {"network": torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0))}
    session.names |= {"rows": torch.tensor(rows.X, dtype=torch.float32)}
    session.names |= {"relevance": rows.y > 0, "qid": rows.qid}
    yield
    assert session.names["loss"] > 0


def rankers(session: Session) -> Given:
    write_rows(session.folder)
    write_tales(session.folder)
    write_sequences(session.folder)
    formats.write(make(5), session.folder / "small.txt")
    session.didyma(["fit", "small.txt", "-o", "other.safetensors"])
    yield
    assert session.names["ranker"].result_.converged


def write_passages(folder: Path) -> None:
    """Judged passages, and some to be ranked."""
    for name, n_lines in (("train", 300), ("test", 120)):
        head(DATA / f"passages-{name}.tsv", folder / f"{name}.tsv", n_lines)
    passages = (
        "It rains today .",
        "The castle of Ulm was built by Ida Roth .",
        "A clock has hands .",
    )
    (folder / "passages.txt").write_text("\n".join(passages) + "\n")


def rerank(session: Session) -> Given:
    pytest.importorskip("polars", reason="polars is not installed")
    write_passages(session.folder)
    yield
    assert (session.folder / "ranked.jsonl").exists()
    assert session.names["best"].id == "d2"


def scaling(session: Session) -> Given:
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
    )
    session.names |= {"address": cluster, "folder": session.folder}
    yield
    names = session.names
    expected = names["lists"].X @ names["ranker"].coef_
    np.testing.assert_allclose(names["scores"].compute(), expected, atol=0.1)
    names["client"].close()
    cluster.close()


def searching(session: Session) -> Given:
    """Notes, queries and judgements."""
    lists = made(12)
    names = {text: f"n{n}.txt" for n, text in enumerate(dict.fromkeys(lists.items))}
    (session.folder / "notes").mkdir()
    for text, name in names.items():
        (session.folder / "notes" / name).write_text(text)
    queries = [f"q{n}\t{query}\n" for n, query in enumerate(lists.queries)]
    (session.folder / "queries.tsv").write_text("".join(queries))
    rows = zip(lists.groups.codes.tolist(), lists.items, lists.labels.tolist())
    judged = [f"q{q} 0 {names[text]}#1 {label:.0f}\n" for q, text, label in rows]
    (session.folder / "qrels.txt").write_text("".join(judged))
    yield
    (answer,) = session.answers
    assert len(answer["results"]) == 3
    assert answer["model"] == "model"


def serve(session: Session) -> Given:
    judged = (DATA / "passages-train.tsv").read_text().splitlines()[:400]
    (session.folder / "judged.tsv").write_text("\n".join(["query\tpassage\tlabel", *judged]) + "\n")
    session.names |= {"query": "who built it ?", "passages": ["It rains .", "Ida built it ."]}
    yield
    health, answer, with_fields, with_steps = session.answers
    assert all(result["steps"] for result in with_steps["results"])
    assert health == {"status": "ok"}
    high, low = answer["results"]
    assert [high["index"], low["index"]] == [1, 0]
    assert high["relevance_score"] > 0.5 > low["relevance_score"]
    ignored = [note.partition(":")[0] for note in with_fields["notes"]]  # by a model of texts alone
    assert ignored == ["clicks", "kind", "vector", "vector of the query"]


def write_ratings(folder: Path) -> None:
    """Few judgements, those of two judges in columns, and others to test on.

    Each query has a document of its own words twice, which BM25 takes for the answer.
    """
    lists = made(110)
    rows: list[list[list[Any]]] = []
    for number, query in enumerate(lists.query_texts):
        words = sorted(query.strip("?").split()) * 2
        texts = {lists.items[row]: int(lists.y[row]) for row in lists.groups.rows_of(number)}
        rows.append([[query, *item] for item in (texts | {" ".join(words): 0}).items()])
    for name, part in (("judged", rows[:6]), ("test", rows[80:])):
        judged = [row for query in part for row in query]
        lines = ["\t".join(map(str, row)) + "\n" for row in judged]
        (folder / f"{name}.tsv").write_text("query\tpassage\tlabel\n" + "".join(lines))
        objects = [dict(zip(("query", "passage", "label"), row)) for row in judged]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    with open(folder / "ratings.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["query", "passage", "anna", "bert"])
        rated = [row for query in rows[6:80] for row in query]
        table.writerows([*row, row[2] if n % 9 else ""] for n, row in enumerate(rated))


def production(session: Session) -> Given:
    write_ratings(session.folder)
    yield
    asked, first, stored, before, watched, after, promoted, metrics, rolled, restored = (
        session.answers
    )
    served = [info["models"]["live"]["version"] for info in (first, promoted, restored)]
    orders = [[own["index"] for own in answer["results"]] for answer in (asked, before, after)]
    assert orders == [[1, 0], [0, 1], [1, 0]]
    assert stored == {"stored": 2}
    assert "anna" in session.printed
    assert "carl" in session.printed
    assert served[1]["parent"] == served[0]["id"] != served[1]["id"]
    assert watched["models"]["live"]["answers"] == 2
    assert f'version="{served[1]["id"]}"' in metrics
    assert re.search(r'didyma_shadow_displaced_tops_total{model="live"} [1-3]\.0', metrics)
    assert re.search(r'didyma_drift{model="live",of="features"} \d', metrics)
    assert rolled == {"model": "live", "version": served[0]["id"], "before": served[1]["id"]}
    assert served[2] == served[0]
    sampled = (session.folder / "sample.jsonl").read_text().splitlines()
    assert len(sampled) == 3
    assert (session.folder / "compared.html").exists()
    assert (session.folder / "next.safetensors").exists()  # which was refused


def sklearn(session: Session) -> Given:
    with config_context():  # which restores what the page sets
        yield
    assert session.names["search"].best_score_ > 0.7


def survive(session: Session) -> Given:
    write_rows(session.folder)
    yield
    assert session.names["ranker"].result_.converged


def teachers(session: Session) -> Given:
    from didyma.data.texts import reader

    write_passages(session.folder)
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    lists = reader.read(session.folder / "train.tsv")
    with open(session.folder / "queries.jsonl", "w") as file:
        for n, query in enumerate((lists.queries or [])[:60]):
            passages = [lists.items[row] for row in lists.groups.rows_of(n)]
            file.write(json.dumps({"query": query, "passages": passages}) + "\n")
    yield
    os.environ["PATH"] = before
    assert "Of the teacher's gain" in session.printed
    assert session.names["ranking"].failure is None
    assert session.names["best"].text == "The castle was built by Ida ."
    assert "<svg" in (session.folder / "curve.svg").read_text()
    session.names["teacher"].close()


def tagging(session: Session) -> Given:
    write_treebank(session.folder, 30)
    yield
    assert len(session.names["lists"]) == 30


def readme(session: Session) -> Given:
    lists = made(12)
    bounds = list(pairwise(lists.groups.starts))
    session.names |= {
        "queries": lists.queries,
        "passages": [lists.items[a:b] for a, b in bounds],
        "labels": [lists.labels[a:b].tolist() for a, b in bounds],
        "documents": lists.items[:6],
    }
    for name in ("train", "test"):
        objects = [
            {"query": query, "passages": own, "labels": labels}
            for query, own, labels in zip(
                lists.queries, session.names["passages"], session.names["labels"]
            )
        ]
        text = "".join(json.dumps(one) + "\n" for one in objects)
        (session.folder / f"{name}.jsonl").write_text(text)
    (session.folder / "folder-of-texts").mkdir()
    (session.folder / "folder-of-texts" / "a.txt").write_text(lists.items[0])
    write_log(session.folder)
    (session.folder / "ids.csv").rename(session.folder / "log.csv")
    yield
    assert (session.folder / "reranker.safetensors").exists()


def start_passages(session: Session) -> Given:
    write_examples(session.folder, "passages")
    with by_default(didyma.TextReranker, time_budget=0.0):  # of the minute that a reader has
        yield


def start_nbest(session: Session) -> Given:
    write_examples(session.folder, "nbest")
    yield


def structures(session: Session) -> Given:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    blocks = blocks_of((ROOT / "docs" / "structures.md").read_text())
    (source,) = (block.code for block in blocks if block.language == "c")
    (session.folder / "run.c").write_text(source)
    command = source.partition(":")[2].partition("*/")[0].split()
    subprocess.run([compiler, *command[1:]], cwd=session.folder, check=True)
    yield
    np.testing.assert_allclose(session.names["runs"], [0.6, 0.75, 1.0, 0.4, 0.25])


def nothing(session: Session) -> Given:
    yield


def given(page: Path) -> Any:
    """What belongs to a page."""
    path = page.relative_to(ROOT).with_suffix("")
    name = "_".join(part for part in path.parts if part != "docs").lower()
    return globals().get(name, nothing)
