"""The static encoder gives the numbers of the package `wordllama`."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from didyma.text.encoders import resolve, static
from didyma.text.encoders.static import SubwordTable

ALPHABET = "ab  ▁é河\n.,ther"


def odd_texts(n: int) -> list[str]:
    draw = random.Random(0)
    texts = ["".join(draw.choices(ALPHABET, k=draw.randint(1, 60))) for _ in range(n)]
    return ["Hello world", " leading", "trailing  ", "a  b   c", "tab\tand\n\n  line", *texts]


@pytest.fixture
def small(monkeypatch):
    """A table of a few pieces, with spaces inside, instead of the installed one."""
    pieces = ["<unk>", *(f"<0x{n:02X}>" for n in range(256)), *"▁abc", "▁▁", "▁a", "▁▁a", "bc"]
    merges = ["▁ ▁", "b c", "▁ a", "▁▁ a", "▁ ▁a"]
    vectors = np.random.default_rng(0).normal(size=(len(pieces), 4)).astype(np.float16)
    table = SubwordTable({piece: n for n, piece in enumerate(pieces)}, merges, vectors)
    monkeypatch.setattr(static, "_table", lambda: table)
    return table


def test_a_text_is_the_mean_of_its_pieces(small):
    """Cut word by word or as a whole, the pieces are the same."""
    texts = odd_texts(200)
    expected = np.array([small.mean(small.numbers(f" {text}")) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    encoder = resolve("wordllama")
    np.testing.assert_allclose(encoder.encode_documents(texts), expected, atol=1e-6)
    assert np.array_equal(encoder.encode_queries(texts), encoder.encode_documents(texts))
    words = encoder.encode_documents(["bc", "a"])
    expected = small(["bc", "a"])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(words, expected, atol=1e-6)


def test_it_equals_the_package():
    wordllama = pytest.importorskip("wordllama", reason="the extra vectors is not installed")
    tokenizers = pytest.importorskip("tokenizers")
    from safetensors.numpy import load_file
    from wordllama.inference import WordLlamaInference

    folder = Path(wordllama.__file__).parent
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    model = WordLlamaInference(weights, tokenizers.Tokenizer.from_file(str(tokenizer)))
    texts = odd_texts(200)
    found = resolve("wordllama").encode_documents(texts)
    np.testing.assert_allclose(found, model.embed(texts, norm=True), atol=1e-6)
