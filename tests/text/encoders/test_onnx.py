"""A tiny ONNX model with a tokeniser beside it."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from didyma.errors import DataError, MissingExtraError, MissingPackageError
from didyma.text.encoders import ONNXEncoder, resolve

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
WORDS = ["[PAD]", "[UNK]", "query", "passage", ":", "swifts", "sleep", "rain"]
TABLE = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


class Tokenizer:
    """The methods of `tokenizers.Tokenizer` that are used, for where it is not installed."""

    @classmethod
    def from_file(cls, path: str) -> Tokenizer:
        made = cls()
        made.vocab = json.loads(Path(path).read_text())["model"]["vocab"]
        return made

    def enable_truncation(self, max_length: int, stride: int = 0) -> None:
        self.max_length = max_length

    def enable_padding(self, direction: str = "right", pad_id: int = 0) -> None:
        self.pad_id = pad_id

    def encode_batch(self, input: list[str]) -> list[SimpleNamespace]:
        ids = [cut(text, self.vocab)[: self.max_length] for text in input]
        longest = max(map(len, ids))
        return [
            SimpleNamespace(
                ids=own + [self.pad_id] * (longest - len(own)),
                attention_mask=[1] * len(own) + [0] * (longest - len(own)),
                type_ids=[0] * longest,
            )
            for own in ids
        ]


def cut(text: str, vocab: dict[str, int]) -> list[int]:
    return [vocab.get(word, 1) for word in text.replace(":", " :").split()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model whose hidden states are rows of a table, as hubs lay it out."""
    from onnx import TensorProto, helper, numpy_helper

    values = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["n", "length", 5])
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "table",
        values,
        [out],
        [numpy_helper.from_array(TABLE, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    place = tmp_path / "e5-small" / "onnx"
    place.mkdir(parents=True)
    onnx.save(model, place / "model.onnx")
    try:
        import tokenizers
    except ImportError:
        module = ModuleType("tokenizers")
        module.Tokenizer = Tokenizer
        monkeypatch.setitem(sys.modules, "tokenizers", module)
        written = {"model": {"vocab": {word: n for n, word in enumerate(WORDS)}}}
        (place.parent / "tokenizer.json").write_text(json.dumps(written))
    else:
        vocab = {word: n for n, word in enumerate(WORDS)}
        made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="[UNK]"))
        made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        made.save(str(place.parent / "tokenizer.json"))
    return place.parent


def expected(texts: list[str], pooling: str = "mean") -> np.ndarray:
    vocab = {word: n for n, word in enumerate(WORDS)}
    rows = [TABLE[cut(text, vocab)] for text in texts]
    vectors = np.array([own.mean(axis=0) if pooling == "mean" else own[0] for own in rows])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_pieces_are_averaged_and_prefixes_are_those_of_the_model(folder):
    encoder = resolve(str(folder / "onnx" / "model.onnx"))
    texts = ["swifts sleep", "rain", "swifts swifts swifts rain"]
    for side, prefix in (("query", "query: "), ("document", "passage: ")):
        asked = [prefix + text for text in texts]
        np.testing.assert_allclose(encoder.encode(texts, side), expected(asked), atol=1e-6)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.encode_queries(texts), encoder.encode_queries(texts))


def test_settings_beside_the_file_and_by_hand(folder):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "sleep: "}}')
    path = folder / "onnx" / "model.onnx"
    texts, encoder = ["swifts rain", "rain rain"], ONNXEncoder(path)
    first = expected([f"sleep: {text}" for text in texts], "first")
    np.testing.assert_allclose(encoder.encode_queries(texts), first, atol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(texts), expected(texts, "first"), atol=1e-6)
    by_hand = ONNXEncoder(path, pooling="mean", query_prefix="", max_length=1)
    np.testing.assert_allclose(
        by_hand.encode_queries(texts), expected(["swifts", "rain"]), atol=1e-6
    )
    (folder / "1_Pooling" / "config.json").write_text("[")
    with pytest.raises(DataError, match=r"config\.json: is damaged"):
        ONNXEncoder(path)


def test_what_is_missing_or_damaged(folder, monkeypatch):
    path = folder / "onnx" / "model.onnx"
    with pytest.raises(DataError, match="expected a file of ONNX"):
        resolve("absent.onnx")
    with pytest.raises(DataError, match="pooling: expected 'mean' or 'first'"):
        ONNXEncoder(path, pooling="max")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "tokenizers", None)
        with pytest.raises(MissingPackageError, match="pip install tokenizers"):
            ONNXEncoder(path)
        patch.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(MissingExtraError, match=r"\.\[onnx\]"):
            ONNXEncoder(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"model\.onnx: is damaged"):
        ONNXEncoder(path)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(DataError, match=r"tokenizer\.json: is damaged"):
        ONNXEncoder(path)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"expected a file tokenizer\.json beside it"):
        ONNXEncoder(path)
