"""Collections: texts by id, judgements and candidates, in folders of several layouts."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path

import pytest

from didyma.data.texts import reader as texts
from didyma.errors import DataError, LeftOutWarning
from didyma.text import BM25
from tests.data.texts.test_json_lines import contents

QUERIES = {"q1": "who wrote Emma", "q2": "what has hands"}
PASSAGES = {
    "d1": "Jane Austen wrote Emma",
    "d2": "A clock has hands",
    "d3": "Emma is a novel",
    "d4": "It is late",
}
RUN = [("q1", "d3", 2.5), ("q1", "d1", 1.5), ("q2", "d2", 3.0), ("q2", "d4", 1.0)]
QRELS = [("q1", "d1", 2), ("q2", "d2", 1), ("q1", "d3", 0)]
WANTED = {
    "who wrote Emma": [("Emma is a novel", 0.0, 2.5, "d3"), (PASSAGES["d1"], 2.0, 1.5, "d1")],
    "what has hands": [(PASSAGES["d2"], 1.0, 3.0, "d2"), ("It is late", 0.0, 1.0, "d4")],
}


def tabs(rows: object) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)  # type: ignore[attr-defined]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return folder


def trec_run() -> str:
    return "".join(f"{q} Q0 {d} {n} {s} tag\n" for n, (q, d, s) in enumerate(RUN, 1))


def plain() -> dict[str, str]:
    return {
        "queries.tsv": tabs(QUERIES.items()),
        "passages.tsv": tabs(PASSAGES.items()),
        "qrels.tsv": tabs(QRELS),
        "candidates.tsv": tabs((q, d, n, s) for n, (q, d, s) in enumerate(RUN, 1)),
    }


def beir() -> dict[str, str]:
    corpus = [
        {"_id": name, "title": text.split()[0], "text": text.split(" ", 1)[1], "metadata": {}}
        for name, text in PASSAGES.items()
    ]
    return {
        "queries.jsonl": "".join(
            json.dumps({"_id": name, "text": text}) + "\n" for name, text in QUERIES.items()
        ),
        "corpus.jsonl.gz": "".join(json.dumps(record) + "\n" for record in corpus),
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\n" + tabs(QRELS),
        "run.test.txt": trec_run(),
    }


@pytest.mark.parametrize("files", [plain(), beir()], ids=["plain", "beir"])
def test_folders(files: dict[str, str], tmp_path: Path) -> None:
    assert (
        contents(
            texts.read(write(tmp_path, files), part="test" if "run.test.txt" in files else None)
        )
        == WANTED
    )


def test_files_of_trec(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "topics.tsv": tabs(QUERIES.items()),
            "docs.tsv": tabs(PASSAGES.items()),
            "qrels.txt": "".join(f"{q} 0 {d} {y}\n" for q, d, y in QRELS),
            "bm25.run": trec_run(),
        },
    )
    names = {
        "queries": "topics.tsv",
        "passages": "docs.tsv",
        "qrels": "qrels.txt",
        "run": "bm25.run",
    }
    files = {role: tmp_path / name for role, name in names.items()}
    assert contents(texts.read_files(**files)) == WANTED
    del files["qrels"]
    assert texts.read_files(**files).labels is None


def test_msmarco(tmp_path: Path) -> None:
    """Ranks without scores, and candidates that bring their texts along."""
    files = {
        "queries.dev.tsv": tabs(QUERIES.items()),
        "collection.tsv": tabs(PASSAGES.items()),
        "qrels.dev.tsv": tabs((q, 0, d, y) for q, d, y in QRELS),
        "run.dev.tsv": tabs((q, d, 1 + n % 2) for n, (q, d, _) in enumerate(RUN)),
    }
    lists = texts.read(write(tmp_path, files), part="dev")
    assert lists.scores is not None
    assert lists.scores.tolist() == [-1, -2, -1, -2]
    assert lists.docid is not None
    assert lists.docid.tolist() == [d for _, d, _ in RUN]
    whole = tmp_path / "whole"
    whole.mkdir()
    top = tabs((q, d, QUERIES[q], PASSAGES[d]) for q, d, _ in RUN)
    write(whole, {"top1000.dev.tsv": top, "qrels.dev.tsv": files["qrels.dev.tsv"]})
    found = texts.read(whole, part="dev")
    assert found.scores is None
    assert found.items == lists.items
    assert found.labels is not None
    assert found.labels.tolist() == [0, 2, 1, 0]


def test_triples(tmp_path: Path) -> None:
    path = tmp_path / "triples.train.small.tsv"
    path.write_text("who?\ta\tb\nwhy?\tc\ta\nwho?\ta\tc\n")
    lists = texts.read(path)
    assert {query: [row[:2] for row in rows] for query, rows in contents(lists).items()} == {
        "who?": [("a", 1.0), ("b", 0.0), ("c", 0.0)],
        "why?": [("c", 1.0), ("a", 0.0)],
    }


def test_candidates_of_a_first_stage(tmp_path: Path) -> None:
    files = plain()
    del files["candidates.tsv"]
    folder = write(tmp_path, files)
    with pytest.raises(DataError, match=r"expected candidates: .* didyma\.text\.BM25\(\)"):
        texts.read(folder)
    lists = texts.read(folder, first_stage=BM25())
    assert lists.docid is not None
    assert sorted(lists.docid.tolist()[:2]) == ["d1", "d3"]
    (folder / "qrels.tsv").write_text(tabs([*QRELS, ("q1", "d4", 1)]))
    with pytest.warns(LeftOutWarning, match="1 relevant passages that are no candidates"):
        lists = texts.read(folder, first_stage=BM25(), depth=1)
    assert len(lists) == 2
    run = folder / "elsewhere"
    run.write_text(trec_run())
    (folder / "qrels.tsv").write_text(tabs(QRELS))
    assert contents(texts.read(folder, run=run)) == WANTED


def test_nothing_is_left_out_silently(tmp_path: Path) -> None:
    files = plain()
    files["qrels.tsv"] += tabs([("q1", "d9", 1), ("q1", "d4", 1), ("q3", "d1", 1), ("q4", "d1", 1)])
    files["candidates.tsv"] += tabs([("q1", "d8", 5, 0.1), ("q9", "d1", 6, 0.1)])
    files["queries.tsv"] += "q4\twhere\nq5\tnot judged\n"
    with pytest.warns(LeftOutWarning) as said:
        assert contents(texts.read(write(tmp_path, files))) == WANTED
    (message,) = (str(warning.message) for warning in said)
    for count in (
        "1 judged queries without a text",
        "1 candidates that are unknown passages",
        "1 queries without candidates",
        "1 judgements of unknown passages",
        "1 relevant passages that are no candidates",
    ):
        assert count in message
    assert message.startswith(str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts.read(write(tmp_path, plain()))


def test_parts(tmp_path: Path) -> None:
    folder = write(tmp_path, {**plain(), "split.tsv": "q1\ttrain\nq2\ttest\n"})
    assert list(contents(texts.read(folder, part="test"))) == ["what has hands"]
    assert len(contents(texts.read(folder))) == 2
    with pytest.raises(DataError, match="expected one of train, test, found 'dev'"):
        texts.read(folder, part="dev")
    (folder / "qrels.tsv").unlink()
    for part in ("train", "test"):
        write(folder, {f"qrels/{part}.tsv": tabs(QRELS)})
    with pytest.raises(DataError, match=r"expected a part, one of test, train$"):
        texts.read(folder)
    with pytest.raises(DataError, match="one of test, train, found 'dev'"):
        texts.read(folder, part="dev")
    assert list(contents(texts.read(folder, part="train"))) == ["who wrote Emma"]


def test_scores_that_are_all_equal_tell_nothing(tmp_path: Path) -> None:
    rows = tabs((q, d, n, 0) for n, (q, d, _) in enumerate(RUN))
    assert texts.read(write(tmp_path, {**plain(), "candidates.tsv": rows})).scores is None


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("passages.tsv", "d1\n", r"passages\.tsv, line 1: expected 2 fields \(id, text\), found 1"),
        ("passages.tsv", "d1\ta\nd1\tb\n", r"line 2, id: expected each id once, found 'd1' again"),
        ("passages.tsv", "", r"passages\.tsv: expected ids and texts, found none"),
        ("queries.tsv", "q1\ta\tb\n", r"queries\.tsv, line 1: expected 2 fields"),
        ("qrels.tsv", "q1\td1\tx\nq1\td1\ty\n", r"qrels\.tsv, line 2, relevance"),
        ("qrels.tsv", "q1 d1\n", r"qrels\.tsv, line 1: expected 4 fields"),
        ("candidates.tsv", "q1\td1\t1\tx\n", r"candidates\.tsv, line 1, score"),
        ("candidates.tsv", "q1\td1\t1\t2\nq1\td1\n", r"candidates\.tsv, line 2: expected 4 fields"),
        ("candidates.tsv", "q7\td1\t1\t2\n", "expected candidates of some query, found none"),
        (
            "candidates.tsv",
            "q1\td1\twho?\ta b\nq1\td1\twho?\ta b\n",
            "line 2, docid: expected each",
        ),
        ("candidates.tsv", "q1\td1\twho?\ta b\nq1\td2\twhy?\ta b\n", "line 2, query: expected the"),
    ],
)
def test_mistakes_are_named(name: str, text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=problem):
        texts.read(write(tmp_path, {**plain(), name: text}))


def test_folders_that_are_no_collection(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected a file queries\.jsonl or queries\.tsv"):
        texts.read(tmp_path)
    write(
        tmp_path, {"corpus.jsonl": '{"text": "a"}\n', "queries.jsonl": '{"_id": 1, "text": "b"}\n'}
    )
    with pytest.raises(DataError, match=r"corpus\.jsonl, line 1, id: expected an id, found none"):
        texts.read(tmp_path)


def test_shared_collections(shared_data: Path) -> None:
    lists = texts.read(shared_data / "rerank" / "insuranceqa-en", part="test")
    assert (len(lists), len(lists.groups), lists.scores) == (24_000, 400, None)
    with pytest.warns(LeftOutWarning, match="relevant passages that are no candidates"):
        lists = texts.read(shared_data / "rerank" / "cranfield", first_stage=BM25())
    assert len(lists.groups) == 225
    assert lists.groups.sizes.max() == 50
    assert len(texts.read(shared_data / "wikiqa" / "test.txt").groups) == 633
    assert len(texts.read(shared_data / "trecqa" / "clean-test").groups) == 68
    assert len(texts.read(shared_data / "trecqa" / "train-all.tsv").groups) == 1229
