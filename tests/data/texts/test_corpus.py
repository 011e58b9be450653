"""Passages alone, in every form that users have."""

from __future__ import annotations

import gzip
import json

import pytest

from didyma.data.passage import Passage
from didyma.data.texts import corpus
from didyma.errors import DataError, LeftOutWarning

WANTED = [("Jane Austen.", "a", {}), ("It is late.", "b", {})]
FORMS = {
    "x.jsonl": '{"_id": "a", "text": "Jane Austen."}\n\n{"docid": "b", "passage": "It is late."}\n',
    "x.csv": 'docid,text\na,Jane Austen.\nb,"It is late."\n',
    "x.tsv": "id\ttext\na\tJane Austen.\nb\tIt is late.\n",
    "collection.tsv": "a\tJane Austen.\nb\tIt is late.\n",
    "plain": '{"id": "a", "title": "Jane", "text": "Austen."}\n{"id":"b","text":"It is late."}',
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_forms(tmp_path, name, packed):
    path = tmp_path / (name + ".gz" * packed)
    contents = FORMS[name].encode()
    path.write_bytes(gzip.compress(contents) if packed else contents)
    assert [passage[:3] for passage in corpus.read(path)] == WANTED


def test_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    table = {"id": ["a", "b"], "text": ["Jane Austen.", "It is late."], "year": [1815, None]}
    polars.DataFrame(table).write_parquet(tmp_path / "x.parquet")
    found = list(corpus.read(tmp_path / "x.parquet"))
    assert [own[:2] for own in found] == [own[:2] for own in WANTED]
    assert found[0].metadata == {"year": 1815}


def test_a_folder_with_a_corpus_is_that(tmp_path):
    (tmp_path / "corpus.jsonl").write_text(FORMS["x.jsonl"])
    (tmp_path / "readme.md").write_text("Not a passage.")
    assert [passage[:3] for passage in corpus.read(tmp_path)] == WANTED


def test_further_fields_are_kept(tmp_path):
    path = tmp_path / "x.jsonl"
    record = {"text": "a", "year": 1815, "metadata": {"page": 2}}
    path.write_text(json.dumps(record))
    assert list(corpus.read(path)) == [Passage("a", None, {"year": 1815, "page": 2})]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("x.jsonl", '{"text": "a"}\n{"text": 7}', "line 2, text: expected a text, found 7"),
        ("x.jsonl", '{"other": "a"}', "line 1: expected a text among other"),
        ("x.jsonl", "", "expected passages, found none"),
        ("x.csv", "id,text\na\n", "line 2: expected 2 fields, found 1"),
        ("x.tsv", "a\tb\tc\n", r"line 1: expected 2 fields \(id, text\), found 3"),
        ("x.tsv", "", "expected passages, found none"),
    ],
)
def test_mistakes_have_a_place(tmp_path, name, text, problem):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=f"{name}(, |: ){problem}"):
        list(corpus.read(tmp_path / name))


def test_folders_of_texts(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("b.md", "sub/a.txt", ".hidden/c.txt", "sub/.d.txt", "e.png"):
        (tmp_path / name).write_text(f"# Title\n\nText of {name}.")
    with pytest.warns(LeftOutWarning, match="left out 1 files"):
        found = list(corpus.read(tmp_path))
    assert [own.id for own in found] == ["b.md#1", "sub/a.txt#1"]
    assert found[0].text == "Title\n\nText of b.md."
    assert found[0].metadata == {"file": "b.md", "line": 3}
    assert list(corpus.read(tmp_path / "b.md")) == [found[0]]
    (tmp_path / "b.md").write_bytes(b"a\n\xff")
    with pytest.raises(DataError, match=r"b.md, line 2: expected UTF-8 text"):
        list(corpus.read(tmp_path / "b.md"))
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match=r"expected a corpus, or text files \(.txt"):
        list(corpus.read(tmp_path / "none"))
