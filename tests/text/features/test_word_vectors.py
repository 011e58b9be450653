"""Vectors of words: nearness against its definition, sources, and the table of a package."""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from didyma.data.lists import Lists
from didyma.errors import DataError, MissingExtraError
from didyma.text.encoders.static import TOKENISER, WEIGHTS, SubwordTable
from didyma.text.features.union import TextFeatures
from didyma.text.features.word_vectors import WordVectors
from tests.text.features import reference
from tests.text.features.texts import WORDS, texts

RNG = np.random.default_rng(0)
TERMS = sorted({reference.fold(w) for word in WORDS["english"] for w in reference.written(word)})
TABLE = {term: RNG.normal(size=5) for term in TERMS if "n" not in term}
TABLE |= {"pressure": np.zeros(5), "wing": RNG.normal(size=5)}
PASSAGES = [["the flow of pressure", "a flow, a wing"]]


def nearness(collection, query, passage):
    """The three columns, word by word."""
    pair = collection.pair(query, passage)
    a, b = (
        [t for t in dict.fromkeys(terms) if t not in pair.stop and np.any(TABLE.get(t, 0))]
        for terms in (pair.query, pair.passage)
    )
    if not a or not b:
        return [0.0, 0.0, 0.0]

    def cosine(x, y):
        return x @ y / np.sqrt(x @ x * (y @ y))

    def mean(values, terms):
        return np.average(values, weights=[collection.idf(term) for term in terms])

    total = [sum(collection.idf(term) * TABLE[term] for term in terms) for terms in (a, b)]
    each = np.array([[cosine(TABLE[x], TABLE[y]) for y in b] for x in a])
    return [cosine(*total), mean(each.max(axis=1), a), mean(each.max(axis=0), b)]


@given(st.lists(texts("english"), min_size=1, max_size=3), st.lists(texts("english"), max_size=3))
@settings(deadline=None)
def test_nearness_is_its_definition(queries, passages):
    lists = [[*passages, " ".join(TERMS)]] * len(queries)
    features = TextFeatures([WordVectors(TABLE)], "english").fit(Lists.of_texts(queries, lists))
    collection = reference.Collection(lists[0], "english")
    expected = [nearness(collection, query, p) for query in queries for p in lists[0]]
    found = features.transform(Lists.of_texts(queries, lists))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


class Model:
    """A model as others have it."""

    def __init__(self):
        self.asked = []

    def encode(self, words):
        self.asked += words
        return np.array([TABLE.get(word, np.zeros(5)) for word in words]).reshape(-1, 5)


def test_sources_are_one():
    sources = [TABLE, Model().encode, lambda words: [*Model().encode(words)]]  # lists, too
    values = [
        TextFeatures([WordVectors(source)])
        .fit(Lists.of_texts(["flow"], PASSAGES))
        .transform(Lists.of_texts(["flow"], PASSAGES))
        for source in sources
    ]
    assert values[0].tobytes() == values[1].tobytes() == values[2].tobytes()
    assert values[0].any()


def test_a_model_is_asked_once_about_a_word_of_the_collection():
    model = Model()
    features = TextFeatures([WordVectors(model.encode)]).fit(Lists.of_texts(["flow"], PASSAGES))
    for _ in range(3):
        features.transform(Lists.of_texts(["flow", "wing"], [["flow of flow"], ["new words"]]))
    asked = Counter(model.asked)
    assert {term for term, count in asked.items() if count > 1} == {"new", "words"}


def test_vectors_that_are_asked_for_by_threads():
    features = TextFeatures([WordVectors(TABLE)]).fit(Lists.of_texts(["flow"], PASSAGES))
    asked = [Lists.of_texts([term], [TERMS]) for term in TERMS]
    expected = [features.transform(lists).tobytes() for lists in asked]
    for _ in range(20):
        fresh = TextFeatures.from_state(*features.state())
        fresh.parts[0].attach(TABLE)
        with ThreadPoolExecutor(8) as pool:
            found = [X.tobytes() for X in pool.map(fresh.transform, asked)]
        assert found == expected


def test_a_table_without_a_name_is_given_back():
    features = TextFeatures([WordVectors(TABLE)]).fit(Lists.of_texts(["flow"], PASSAGES))
    again = TextFeatures.from_state(*json_copy(features.state()))
    with pytest.raises(DataError, match="vectors: expected the table the model was trained with"):
        again.transform(Lists.of_texts(["flow"], PASSAGES))
    with pytest.raises(DataError, match="vectors: other vectors than the model was trained with"):
        again.parts[0].attach({term: vector + 1 for term, vector in TABLE.items()})
    again.parts[0].attach(TABLE)
    expected = features.transform(Lists.of_texts(["flow"], PASSAGES))
    assert again.transform(Lists.of_texts(["flow"], PASSAGES)).tobytes() == expected.tobytes()


def json_copy(state):
    return state[0], json.loads(json.dumps(state[1]))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("glove", "expected 'wordllama' or a table, found 'glove'"),
        (3, "expected a mapping or a callable, found int"),
        (Model(), "expected vectors of single words, found Model, .*: give it as encoder="),
        ({}, "expected vectors of one length"),
        ({"a": [1.0], "b": [1.0, 2.0]}, "expected vectors of one length"),
        ({"a": 1.0}, "expected vectors of one length"),
        ({"a": [np.nan]}, r"expected .* finite vectors"),
        ({"zebra": [1.0]}, "expected vectors of some of the words, found none"),
        (lambda words: np.zeros(len(words)), r"expected 6 finite vectors, .*shape \(6,\)"),
        (lambda words: np.zeros((1, 2)), r"expected 6 finite vectors, .*shape \(1, 2\)"),
    ],
)
def test_sources_that_cannot_be_used(source, message):
    with pytest.raises(DataError, match=f"vectors: {message}"):
        TextFeatures([WordVectors(source)]).fit(Lists.of_texts(["a"], PASSAGES))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with the same two files, of a few pieces."""
    folder = tmp_path / "wordllama"
    pieces = ["<unk>", *(f"<0x{n:02X}>" for n in range(256)), *"▁abc", "▁a", "bc", "▁abc", "ab"]
    merges = ["b c", "▁ a", "▁a bc", "a b"]
    vectors = np.arange(2 * len(pieces), dtype=np.float16).reshape(-1, 2)
    for path in (WEIGHTS, TOKENISER):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    save_file({"embedding.weight": vectors}, folder / WEIGHTS)
    model = {"vocab": {piece: n for n, piece in enumerate(pieces)}, "merges": merges}
    (folder / TOKENISER).write_text(json.dumps({"model": model}))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wordllama", raising=False)
    return vectors, pieces


def test_words_are_cut_into_pieces(package):
    table = SubwordTable.installed()
    words = {"abc": ["▁abc"], "aab": ["▁a", "ab"], "cab": ["▁", "c", "ab"], "é": ["▁", "<0xC3>"]}
    assert {word: table.pieces(f" {word}")[: len(cut)] for word, cut in words.items()} == words
    vectors, pieces = package
    expected = [vectors[[pieces.index(piece) for piece in table.pieces(f" {w}")]] for w in words]
    means = [found.astype(np.float32).mean(axis=0) for found in expected]
    np.testing.assert_allclose(table(list(words)), means)
    assert table([]).shape == (0, 2)


def test_a_table_with_a_name_is_found_again(package):
    features = TextFeatures([WordVectors("wordllama")], None).fit(
        Lists.of_texts(["abc"], [["abc cab", "b"]])
    )
    again = TextFeatures.from_state(*json_copy(features.state()))
    X, Y = (f.transform(Lists.of_texts(["abc"], [["ab abc", "é"]])) for f in (features, again))
    assert X.tobytes() == Y.tobytes()
    assert X.any()


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("didyma.text.encoders.static.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"\.\[vectors\]"):
        WordVectors("wordllama")
