"""Every reader keeps the fields, signals and vectors of documents, and no score is a label, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from didyma import DataError, Lists
from didyma.cli import app
from didyma.data import lists_folder
from didyma.data.texts import json_lines as json_texts
from didyma.data.texts import reader as texts
from didyma.errors import LeftOutWarning

ROWS: list[dict[str, Any]] = [
    {"title": "Emma", "text": "It is a novel.", "age": 3, "kind": "a b", "vector": [1.0, 0.5]},
    {"title": "Faust", "text": "He is a doctor.", "age": 1.5, "kind": "c", "vector": [0.0, 2.0]},
    {"title": "", "text": "It rains.", "kind": "c", "vector": [4.0, 1.0]},
    {"title": "No", "text": "It is late.", "age": 9, "kind": "c", "vector": [4.0, 1.0]},
    {"title": "Now", "text": "It was late.", "age": -2, "kind": "a b", "vector": [4.0, 1.0]},
    {"title": "So", "text": "It is early.", "age": 0, "kind": "a b"},
]
LABELS = [1, 0, 0, 1, 0, 0]


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def check(lists: Lists, order: list[int] | None = None) -> None:
    rows = [ROWS[n] for n in order or range(len(ROWS))]
    attributes = lists.attributes
    assert attributes is not None
    assert list(lists.items) == [f"{one['title']} {one['text']}".strip() for one in rows]
    assert list(attributes.fields["title"]) == [one["title"] for one in rows]
    np.testing.assert_equal(attributes.signals["age"], [one.get("age", np.nan) for one in rows])
    assert attributes.signals["kind"].tolist() == [one["kind"] for one in rows]
    assert attributes.vectors is not None
    wanted = [one.get("vector", [np.nan, np.nan]) for one in rows]
    np.testing.assert_equal(attributes.vectors, np.array(wanted, np.float32))
    assert attributes.first_stages == ()


def per_query(path: Path) -> Lists:
    query = {"text": "who?", "vector": [1, 2]}
    return texts.read(write(path / "a.jsonl", {"query": query, "passages": ROWS, "labels": LABELS}))


def test_an_object_for_each_query(tmp_path: Path) -> None:
    lists = per_query(tmp_path)
    check(lists)
    assert lists.query_vectors is not None
    assert lists.query_vectors.tolist() == [[1, 2]]
    beside = {"query": "who?", "query_vector": [1, 2], "passages": ROWS}
    again = texts.read(write(tmp_path / "b.jsonl", beside))
    assert again.query_vectors is not None
    assert again.query_vectors.tolist() == [[1, 2]]


def test_an_object_for_each_pair(tmp_path: Path) -> None:
    pairs = [
        {"query": "who?", "label": label, "id": f"d{n}", **row}
        for n, (row, label) in enumerate(zip(ROWS, LABELS))
    ]
    lists = texts.read(write(tmp_path / "a.jsonl", *pairs))
    check(lists)
    assert lists.y.tolist() == LABELS
    assert lists.docid is not None
    assert lists.docid.tolist() == [f"d{n}" for n in range(6)]


def test_an_object_for_each_contrast(tmp_path: Path) -> None:
    contrast = {"query": "who?", "positive": [ROWS[0], ROWS[3]], "negatives": ROWS}
    lists = texts.read(write(tmp_path / "a.jsonl", contrast))
    check(lists, [0, 3, 1, 2, 4, 5])
    assert lists.y.tolist() == [1, 1, 0, 0, 0, 0]


def columns() -> dict[str, list[Any]]:
    names = ("title", "text", "age", "kind", "vector")
    return {
        "query": ["who?"] * 6,
        **{name: [row.get(name) for row in ROWS] for name in names},
        "label": LABELS,
    }


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_text_tables(suffix: str, tmp_path: Path) -> None:
    delimiter = {".csv": ";", ".tsv": "\t"}[suffix]
    rows = [list(columns()), *zip(*columns().values())]
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if suffix == ".csv":
        delimiter = ","
        cells = [[f'"{cell}"' if "," in cell else cell for cell in row] for row in cells]
    path = tmp_path / f"a{suffix}"
    path.write_text("".join(delimiter.join(row) + "\n" for row in cells))
    check(texts.read(path))


def test_frames_and_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(columns(), strict=False)
    check(texts.from_frame(frame))
    frame.write_parquet(tmp_path / "a.parquet")
    check(texts.read(tmp_path / "a.parquet"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A collection as of BEIR, with two runs."""
    root = tmp_path / "beir"
    root.mkdir()
    corpus = [
        {"_id": f"d{n}", **{key: row[key] for key in ("title", "text")}}
        | {"metadata": {key: own for key, own in row.items() if key not in ("title", "text")}}
        for n, row in enumerate(ROWS)
    ]
    write(root / "corpus.jsonl", *corpus)
    write(root / "queries.jsonl", {"_id": "q", "text": "who?", "vector": [1, 2], "metadata": {}})
    (root / "qrels.tsv").write_text("q 0 d0 1\nq 0 d3 1\n")
    (tmp_path / "a.run").write_text("".join(f"q Q0 d{n} 1 {9 - n} bm25\n" for n in range(6)))
    (tmp_path / "b.run").write_text("q Q0 d5 1 0.5 dense\nq Q0 d0 2 0.25 dense\n")
    return root


def test_a_collection_has_metadata(folder: Path, tmp_path: Path) -> None:
    lists = texts.read(folder, run=tmp_path / "a.run")
    check(lists)
    assert lists.scores is not None
    assert lists.scores.tolist() == [9, 8, 7, 6, 5, 4]
    assert lists.query_vectors is not None
    assert lists.query_vectors.tolist() == [[1, 2]]


def test_several_runs_are_signals(folder: Path, tmp_path: Path) -> None:
    lists = texts.read(folder, run=[tmp_path / "b.run", tmp_path / "a.run"])
    attributes = lists.attributes
    assert lists.scores is None
    assert attributes is not None
    assert attributes.first_stages == ("dense", "bm25")
    assert lists.docid is not None
    assert lists.docid.tolist() == ["d5", "d0", "d1", "d2", "d3", "d4"]
    np.testing.assert_equal(attributes.signals["dense"], [0.5, 0.25, *[np.nan] * 4])
    assert attributes.signals["bm25"].tolist() == [4, 9, 8, 7, 6, 5]
    assert lists.y.tolist() == [0, 1, 0, 0, 1, 0]
    assert attributes.schema is not None
    assert ("dense", "signal", "the scores of a run") in attributes.schema.table()
    (tmp_path / "b.run").write_text("q Q0 d5 1 0.5 bm25\n")
    again = texts.read(folder, run=[tmp_path / "b.run", tmp_path / "a.run"])
    assert again.attributes is not None
    assert again.attributes.first_stages == ("b", "a")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    lists = per_query(tmp_path)
    json_texts.write(lists, tmp_path / "b.jsonl")
    again = texts.read(tmp_path / "b.jsonl")
    check(again)
    assert again.y.tolist() == LABELS
    np.testing.assert_equal(again.query_vectors, lists.query_vectors)


def test_a_folder_of_features_refuses_attributes(tmp_path: Path) -> None:
    lists = per_query(tmp_path)
    assert lists.attributes is not None
    rows = Lists(np.ones((6, 1)), lists.y, attributes=lists.attributes)
    with pytest.raises(DataError, match="attributes: expected rows of features only"):
        lists_folder.write(rows, tmp_path / "a.lists")


SCORED = [{"text": "a", "score": 0.9}, {"text": "b", "score": 0.1}, {"text": "c", "score": 0.5}]


@pytest.mark.parametrize(
    ("record", "labels", "scores"),
    [
        ({"passages": SCORED}, [0.9, 0.1, 0.5], None),
        ({"passages": SCORED, "scores": [3, 2, 1]}, [3, 2, 1], None),
        ({"passages": ["a", "b", "c"], "scores": [3, 2, 1]}, [3, 2, 1], None),
        ({"passages": SCORED, "score": [3, 2, 1]}, [3, 2, 1], None),
        ({"passages": [{**one, "relevance": 1} for one in SCORED]}, [0.9, 0.1, 0.5], None),
    ],
)
@pytest.mark.filterwarnings("ignore:.*relevance .a label:didyma.errors.LeftOutWarning")
def test_a_teachers_score_is_a_label_and_nothing_else(
    record: dict[str, Any], labels: list[float], scores: None, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", {"query": "who?", **record})
    lists = texts.read(path, label="score")
    assert lists.y.tolist() == labels
    assert lists.scores is scores
    assert lists.attributes is None or not lists.attributes.signals


def test_labels_beside_are_the_only_ones(tmp_path: Path) -> None:
    passages = [{"text": str(n), "label": n, "score": n} for n in range(3)]
    record = {"query": "who?", "passages": passages, "labels": [2, 1, 0], "scores": [5, 6, 7]}
    lists = texts.read(write(tmp_path / "a.jsonl", record))
    assert lists.y.tolist() == [2, 1, 0]
    assert lists.scores is not None
    assert lists.scores.tolist() == [5, 6, 7]
    assert lists.attributes is not None
    assert not lists.attributes.signals
    assert lists.attributes.schema is not None
    table = {name: (role, why) for name, role, why in lists.attributes.schema.table()}
    assert table["label"] == table["score"] == ("ignored", "given beside the documents")


def test_fields_of_queries_are_named(tmp_path: Path) -> None:
    record = {"query": "who?", "passages": ["a", "b"], "source": "web"}
    with pytest.warns(LeftOutWarning, match="fields of queries that are left out: source"):
        texts.read(write(tmp_path / "a.jsonl", record))


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        (
            "a.jsonl",
            '{"query": "q", "passages": [{"text": "a", "age": 1}, {"text": "b", "age": "x"}]}\n',
            "a.jsonl, line 1, passages 2, age: expected a number, as other documents have",
        ),
        (
            "a.jsonl",
            '{"query": "q", "text": "a", "age": 1}\n{"query": "q", "text": "b", "age": NaN}\n',
            "a.jsonl, line 2, age: expected a finite number or null, found nan",
        ),
        (
            "a.jsonl",
            '{"query": "q", "text": "a", "vector": [1, 2]}\n'
            '{"query": "q", "text": "b", "vector": [1]}\n',
            "a.jsonl, line 2, vector: expected 2 numbers, as other vectors have, found 1",
        ),
        (
            "a.csv",
            "query,text,age\nq,a,1\nq,b,2\nq,c,old\n",
            "a.csv, line 4, age: expected a number, as most documents have, found 'old'",
        ),
        (
            "a.csv",
            "query,text,age\nq,a,1\nq,b,inf\n",
            "a.csv, line 3, age: expected a finite number or none, found 'inf'",
        ),
    ],
)
def test_mistakes_are_named(name: str, contents: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(contents)
    with pytest.raises(DataError) as found:
        texts.read(tmp_path / name)
    assert message in str(found.value)


def test_a_choice_of_fields(tmp_path: Path) -> None:
    rows = [
        {"query": "q", "headline": f"Word {n}", "lede": f"It is {n}.", "label": n % 2, "age": n}
        for n in range(4)
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(DataError, match="expected a passage"):
        texts.read(path)
    lists = texts.read(path, fields=["headline", "lede"], ignore=["age"])
    assert lists.items[0] == "Word 0 It is 0."
    assert lists.attributes is not None
    assert not lists.attributes.signals
    with pytest.raises(DataError, match=r"a\.jsonl, agee: no such field among headline, lede, age"):
        texts.read(path, fields=["headline"], signals=["agee"])
    again = texts.read(path, schema=lists.attributes.schema)
    assert again.items == lists.items


def test_the_command_line_shows_the_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"query": f"who {n} ?", "text": f"It is {k} of {n}.", "label": int(k == 0)}
        | {"age": round(rng.random() - k, 3), "kind": "ab"[k % 2], "junk": {"a": 1}}
        for n in range(12)
        for k in range(4)
    ]
    path, model = write(tmp_path / "a.jsonl", *rows), tmp_path / "m.safetensors"
    asked = ["rerank", "fit", str(path), "-o", str(model), "--quick", "--ignore", "kind"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    shown = [line.split() for line in found.output.splitlines()]
    assert ["age", "signal", "numbers"] in shown
    assert ["kind", "ignored", "as", "you", "say"] in shown
    assert ["junk", "ignored", "a", "nested", "object"] in shown
    ranked = CliRunner().invoke(app, ["rerank", "rank", str(model), str(path), "--top-k", "1"])
    assert ranked.exit_code == 0, ranked.output
    wrong = CliRunner().invoke(app, ["rerank", "fit", str(path), "--signals", "agee"])
    assert wrong.exit_code != 0
    assert "agee: no such field among text, age, kind, junk, label" in wrong.output


def test_a_contrast_that_comes_again_with_other_fields(tmp_path: Path) -> None:
    path = tmp_path / "contrasts.jsonl"
    record = {
        "query": "who?",
        "positive": {"text": "a", "age": 1},
        "negative": {"text": "b", "age": 2},
    }
    again = {**record, "negative": {"text": "b", "age": 3}}
    path.write_text("".join(json.dumps(own) + "\n" for own in (record, record, again)))
    with pytest.warns(LeftOutWarning, match="1 passages come again with other fields: the first"):
        lists = texts.read(path)
    assert lists.attributes is not None
    assert lists.attributes.signals["age"].tolist() == [1, 2]


def test_a_line_is_told_where_fields_span_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = [f'who?,"a\n{n}",{n}' for n in range(4)]
    path.write_text("\n".join(["query,passage,age", *rows, "who?,b,old"]) + "\n")
    with pytest.raises(DataError, match=r"a\.csv, line 10, age: expected a number"):
        texts.read(path)


def test_queries_have_the_same_names_with_and_without_a_header(tmp_path: Path) -> None:
    """Ties of scores are broken by the names of queries, so equal rows make equal models."""
    (tmp_path / "plain.tsv").write_text(rows := "who?\ta b\t1\nwho?\tc\t0\nwhy?\td\t1\n")
    (tmp_path / "named.tsv").write_text(f"query\tpassage\tlabel\n{rows}")
    plain, named = (texts.read(tmp_path / f"{name}.tsv") for name in ("plain", "named"))
    assert plain.qid.tolist() == named.qid.tolist() == ["1", "1", "2"]
    assert (plain.items, plain.y.tolist()) == (named.items, named.y.tolist())
