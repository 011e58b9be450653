"""What fields of documents are, and that none is dropped in silence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma import DataError, Lists, TextReranker, load
from didyma.data import Schema
from didyma.data.passage import Passage, flattened
from didyma.data.schema import SchemaField
from didyma.errors import LeftOutWarning
from tests.text.texts import made

BOOKS = ("novel", "play", "poem")


def documents(n: int = 12) -> list[dict[str, Any]]:
    return [
        {
            "_id": f"d{k}",
            "title": f"Title {k}",
            "body": f"It is number {k} of all.",
            "bm25": 0.5 * k,
            "popular": k % 2 == 0,
            "kind": BOOKS[k % 3],
            "tags": ["old", f"word{k}"],
            "published": f"1970-01-{k + 1:02}",
            "price": None if k == 1 else str(k / 4),
            "url": f"http://books.org/{k}",
            "embedding": [k, 1.0, -k],
            "others": [1.0] * (k + 1),
            "isbn": 3 * k + 1,
            "sku": f"x{k}",
            "lang": "en",
            "when": f"{k + 1}/13/1815",
            "nothing": None,
            "deep": {"a": 1},
        }
        for k in range(n)
    ]


def test_roles_by_name_and_by_value() -> None:
    schema = Schema.infer(documents())
    assert {name: role for name, role, _ in schema.table()} == {
        **dict.fromkeys(["title", "body", "tags", "url"], "text"),
        **dict.fromkeys(["bm25", "popular", "published", "price"], "signal"),
        **dict.fromkeys(["others", "isbn", "sku", "lang", "when", "nothing", "deep"], "ignored"),
        "kind": "category",
        "embedding": "vector",
        "_id": "id",
    }
    reasons = {name: reason for name, _, reason in schema.table()}
    assert reasons["lang"] == "the same in all documents"
    assert reasons["deep"] == "a nested object"
    assert "id" in reasons["sku"]
    with pytest.warns(LeftOutWarning, match=r"b\.jsonl: .*lang \(the same in all documents\)"):
        schema.warn_of_ignored("b.jsonl")


def test_what_is_read() -> None:
    schema = Schema.infer(documents())
    texts, attributes, report = schema.read(documents(3))
    assert texts[2] == "Title 2 It is number 2 of all. old word2 http://books.org/2"
    assert list(attributes.fields) == ["title", "body", "tags", "url"]
    assert attributes.signals["popular"].tolist() == [1, 0, 1]
    assert attributes.signals["published"].tolist() == [0, 1, 2]
    np.testing.assert_equal(attributes.signals["price"], [0, np.nan, 0.5])
    assert attributes.signals["kind"].tolist() == ["novel", "play", "poem"]
    assert attributes.first_stages == ("bm25",)
    assert attributes.vectors is not None
    assert attributes.vectors.tolist() == [[0, 1, 0], [1, 1, -1], [2, 1, -2]]
    assert attributes.schema == schema
    assert report.missing == {"price": 1}
    assert report.unknown == {}


def test_what_is_missing_or_unknown_is_counted() -> None:
    schema = Schema.infer(documents())
    given: list[Any] = ["plain", {"text": "b", "colour": "red", "id": 3, "score": 1.0}]
    for read in (given, [Passage.of(one) for one in given]):
        texts, attributes, report = schema.read(read)
        assert texts == ["plain", "b"]
        assert report.unknown == {"colour": 1}
        assert report.missing["kind"] == 2
        assert report.missing["embedding"] == 2
        assert np.isnan(attributes.signals["bm25"]).all()
        assert attributes.signals["kind"].tolist() == [None, None]


def test_the_caller_says_otherwise() -> None:
    schema = Schema.infer(
        documents(), fields=["isbn", "kind"], signals=["sku", "lang"], ignore=["url", "bm25"]
    )
    roles = {name: role for name, role, _ in schema.table()}
    assert [roles[name] for name in ("isbn", "kind")] == ["text", "text"]
    assert [roles[name] for name in ("sku", "lang")] == ["category", "category"]
    assert [roles[name] for name in ("url", "bm25")] == ["ignored", "ignored"]
    texts, _, _ = schema.read(documents(1))
    assert texts == ["Title 0 It is number 0 of all. novel old word0 1"]
    with pytest.raises(DataError, match="agee: no such field among _id, title, body"):
        Schema.infer(documents(), signals=["agee"])
    with pytest.raises(DataError, match="kind: expected one role, found text and ignored"):
        Schema.infer(documents(), fields=["kind"], ignore=["kind"])
    with pytest.raises(DataError, match="document 0, deep: expected a finite number"):
        Schema.infer(documents(), signals=["deep"])


@pytest.mark.parametrize(
    ("values", "place", "problem"),
    [
        ([1, "a"], "document 1, x", "expected a number, as other documents have, found str 'a'"),
        (["1", "2", "a"], "document 2, x", "expected a number, as most documents have, found 'a'"),
        ([1, math.inf], "document 1, x", "expected a finite number or none, found inf"),
        ([1, 10**400], "document 1, x", "expected a finite number"),
        (["1", "nan", "2"], "document 1, x", "expected a finite number or none, found 'nan'"),
        ([[1.0, 2.0], 3], "document 1, x", "expected a list of numbers"),
        ([[1.0, 2.0], [3.0, math.nan]], "document 1, x", "vector of finite numbers"),
    ],
)
def test_mistakes_name_document_and_field(values: list[Any], place: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem) as found:
        Schema.infer([{"text": f"t{n}", "x": value} for n, value in enumerate(values)])
    assert found.value.field == place


def test_vectors_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="document 1, vector: expected 2 numbers"):
        Schema.infer([{"text": "a", "vector": [1, 2]}, {"text": "b", "vector": [1]}])
    schema = Schema.infer([{"text": "a", "vector": [1, 2]}])
    with pytest.raises(DataError, match="document 0, vector: expected a vector of 2 numbers"):
        schema.read([{"text": "a", "vector": [1, 2, 3]}])
    with pytest.raises(DataError, match="document 0, vector: expected a vector of finite numbers"):
        schema.read([{"text": "a", "vector": [1, math.nan]}])


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_infinity=False)
kinds = [
    scalars,
    st.none() | st.text("abc /", max_size=4),
    st.dictionaries(st.text("ab", max_size=1), st.integers(), min_size=1, max_size=1),
    st.lists(st.integers(0, 3), min_size=2, max_size=2),
    st.lists(st.text("ab"), max_size=2),
]
FIELDS = {f"{'abcde'[k]}{n}": kind for k, kind in enumerate(kinds) for n in range(3)}
FIELDS |= {"title": kinds[1], "id": st.integers(), "score": scalars, "label": st.integers(0, 1)}
records = st.fixed_dictionaries(
    {"text": st.text()}, optional={**FIELDS, "metadata": st.fixed_dictionaries({}, optional=FIELDS)}
)


@given(st.lists(records, min_size=1, max_size=8))
def test_every_field_of_every_document_stands_in_one_row_of_the_table(
    read: list[dict[str, Any]],
) -> None:
    schema = Schema.infer(read)
    rows = [name for name, _, _ in schema.table()]
    assert len(rows) == len(set(rows))
    names = {name for record in read for name in flattened(record)}
    assert set(rows) == names
    assert all(reason for _, _, reason in schema.table())
    texts, attributes, report = schema.read(read)
    assert not report.unknown
    assert len(texts) == len(read)
    roles = {name: role for name, role, _ in schema.table()}
    held = {*attributes.fields, *attributes.signals}
    for name in names - held:
        one = roles[name] == "text" and sum(role == "text" for role in roles.values()) == 1
        assert one or roles[name] in ("id", "label", "score", "vector", "ignored")


def test_lists_of_documents() -> None:
    queries = [{"text": "who?", "vector": [1, 0]}, "why?"]
    rows = [{**one, "label": k % 2, "score": k} for k, one in enumerate(documents())]
    with pytest.warns(LeftOutWarning, match="left out"):
        lists = Lists.of_texts(queries, [rows[:5], rows[5:]])
    assert lists.query_texts == ["who?", "why?"]
    assert lists.query_vectors is not None
    np.testing.assert_equal(lists.query_vectors, [[1, 0], [np.nan, np.nan]])
    assert lists.y.tolist() == [k % 2 for k in range(12)]
    assert lists.scores is not None
    assert lists.scores.tolist() == list(range(12))
    assert lists.docid is not None
    assert lists.docid.tolist() == [f"d{k}" for k in range(12)]
    assert lists.attributes is not None
    assert "label" not in lists.attributes.signals
    assert "score" not in lists.attributes.signals


def test_labels_beside_documents_leave_those_inside_out() -> None:
    rows = [{"text": str(k), "label": k} for k in range(3)]
    lists = Lists.of_texts(["q"], [rows], [[2, 1, 0]])
    assert lists.y.tolist() == [2, 1, 0]
    assert lists.attributes is not None
    assert not lists.attributes.signals
    assert ("label", "ignored", "given beside the documents") in lists.attributes.schema.table()


def test_plain_texts_have_no_attributes() -> None:
    assert Lists.of_texts(["q"], [["a", "b"]]).attributes is None
    assert Lists.of_texts(["q"], [[{"text": "a"}, "b"]]).attributes is None


def test_a_reranker_keeps_its_schema(tmp_path: Any) -> None:
    judged = made(20)
    rows = [
        [
            {"body": judged.items[row], "popularity": float(row % 7), "label": judged.y[row]}
            for row in judged.groups.rows_of(number).tolist()
        ]
        for number in range(20)
    ]
    reranker = TextReranker(quick=True).fit(judged.queries, rows)
    assert [role for _, role, _ in reranker.schema_.table()] == ["text", "signal", "label"]
    reranker.save(tmp_path / "a.safetensors")
    again = load(tmp_path / "a.safetensors")
    assert again.schema_ == reranker.schema_
    assert again.rank(judged.queries[0], rows[0]) == reranker.rank(judged.queries[0], rows[0])
    flat = [(judged.queries[n], row) for n, own in enumerate(rows) for row in own]
    queries, passages = zip(*flat)
    same = TextReranker(quick=True).fit(queries, passages)
    assert same.schema_ == reranker.schema_


def test_a_text_is_known_to_a_model_without_other_texts() -> None:
    runs = Schema((SchemaField("bm25", "signal", "given"),))
    read = runs.read(["Emma.", {"text": "Faust.", "year": 1808}, {"body": "Late.", "id": 7}])
    assert read.texts == ["Emma.", "Faust.", "Late."]
    assert read.report.unknown == {"year": 1}
    assert read.report.missing == {"bm25": 3}
