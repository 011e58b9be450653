"""Stand-ins for models of other libraries, with the public signatures of those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np


def vectors_of(texts: Iterable[str]) -> np.ndarray:
    """Counts of some letters and of words, so that every text has another direction."""
    return np.array([[text.count(c) for c in "aeiou: "] + [len(text) % 7] for text in texts], float)


class SentenceTransformer5:
    """sentence-transformers 5 and 6."""

    def __init__(
        self, prompts: dict[str, str] | None = None, base_model: str | None = None
    ) -> None:
        self.prompts = {"query": "", "document": ""} | (prompts or {})
        self.model_card_data = SimpleNamespace(base_model=base_model)

    def encode(
        self,
        inputs: Sequence[str] | str,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        **kwargs: Any,
    ) -> np.ndarray:
        before = prompt if prompt is not None else self.prompts.get(prompt_name or "", "")
        return vectors_of(before + text for text in inputs)

    def encode_query(self, inputs: Sequence[str] | str, prompt_name: str | None = None, **kwargs):
        return self.encode(inputs, prompt_name or "query", **kwargs)

    def encode_document(
        self, inputs: Sequence[str] | str, prompt_name: str | None = None, **kwargs
    ):
        return self.encode(inputs, prompt_name or "document", **kwargs)


class SentenceTransformer3:
    """sentence-transformers before 5."""

    def __init__(self, prompts: dict[str, str] | None = None) -> None:
        self.prompts = prompts or {}

    def encode(
        self,
        sentences: str | list[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
    ) -> np.ndarray:
        before = "" if prompt_name is None else self.prompts[prompt_name]
        return vectors_of(before + text for text in sentences)


class StaticModel:
    """model2vec; encode takes all but the texts by name."""

    def encode(
        self,
        sentences: Sequence[str],
        *,
        show_progress_bar: bool = False,
        normalize: bool | None = None,
        batch_size: int = 1024,
        **kwargs: Any,
    ) -> np.ndarray:
        return vectors_of(sentences).astype(np.float32)


StaticModel.__module__ = "model2vec.model"


class TextEmbedding:
    """fastembed: generators of arrays; a query has no prefix."""

    def __init__(self, model_name: str = "BAAI/bge-small-en-v1.5") -> None:
        self.model_name = model_name

    def embed(
        self, documents: str | Iterable[str], batch_size: int = 256, parallel: int | None = None
    ) -> Iterable[np.ndarray]:
        yield from vectors_of(documents)

    def query_embed(self, query: str | Iterable[str], **kwargs: Any) -> Iterable[np.ndarray]:
        yield from self.embed([query] if isinstance(query, str) else query)

    def passage_embed(self, texts: Iterable[str], **kwargs: Any) -> Iterable[np.ndarray]:
        yield from self.embed(texts)


class LangChainEmbeddings:
    """An embedding of LangChain."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return vectors_of(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        assert isinstance(text, str)
        return vectors_of([f"query: {text}"])[0].tolist()
