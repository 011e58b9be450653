"""Encoders that users have: objects of other libraries, and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from didyma.errors import DataError
from didyma.text.encoders.encoder import PrefixedEncoder, Prefixes, Side, prefixes_of
from didyma.values import kind_of

# Methods that encode several queries and several documents, in the order in which they are looked
# for: sentence-transformers since 5, fastembed; then one for both: sentence-transformers,
# model2vec, fastembed.
PAIRS = (
    ("encode_queries", "encode_documents"),
    ("encode_query", "encode_document"),
    ("query_embed", "passage_embed"),
    ("encode", "encode"),
    ("embed", "embed"),
)
PROMPTS: Mapping[Side, tuple[str, ...]] = {
    "query": ("query",),
    "document": ("document", "passage", "corpus"),
}


class ObjectEncoder(PrefixedEncoder):
    """A model of another library, or a function from texts to vectors, as an `Encoder`.

    Models of sentence-transformers, model2vec and fastembed, embeddings of LangChain, and whatever
    else has a method ``encode`` or ``embed``, are taken as they are.

    >>> from didyma.text.encoders import resolve
    >>> lengths = resolve(lambda texts: [[len(text), 3.0] for text in texts])
    >>> lengths.encode_queries(["four"]).round(2)
    array([[0.8, 0.6]], dtype=float32)

    Parameters
    ----------
    model : object or callable
        What encodes texts.
    query_prefix, document_prefix : str, optional
        What stands before each text. Unless given, they are those that the model is known to want,
        by its name (e5, bge, nomic), and none if it has prompts of its own.
    name : str, optional
        What to call it.
    """

    def __init__(
        self,
        model: Any,
        *,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        name: str | None = None,
    ) -> None:
        self.model = model
        called = _model_name(model)
        self.name = name or called or str(getattr(model, "__name__", type(model).__name__))
        _method(model, "query")  # which refuses what is none
        has_prompts = any((getattr(model, "prompts", None) or {}).values())
        usual = Prefixes() if has_prompts else prefixes_of(name or called or "")
        self._use_prefixes(usual, query_prefix, document_prefix)
        self.is_static = type(model).__module__.partition(".")[0] in ("model2vec", "wordllama")

    def _encode(self, texts: list[str], side: Side) -> Any:
        return _method(self.model, side)(self._prefixed(texts, side))


def _method(model: Any, side: Side) -> Callable[[list[str]], Any]:
    """What encodes several texts of one side."""
    if callable(one := getattr(model, "embed_query", None)) and hasattr(model, "embed_documents"):
        # An embedding of LangChain encodes one query at a time.
        several: Any = model.embed_documents
        return several if side == "document" else lambda texts: [one(text) for text in texts]
    for names in PAIRS:
        if all(callable(getattr(model, name, None)) for name in names):
            method: Any = getattr(model, names[side == "document"])
            prompts = getattr(model, "prompts", None) or {}
            prompt = next((name for name in PROMPTS[side] if name in prompts), None)
            if names[0] == "encode" and prompt is not None:  # sentence-transformers before 5
                return lambda texts: method(texts, prompt_name=prompt)
            return method
    if callable(model):
        return model
    raise DataError(
        f"expected an object with a method encode or embed, a function or a name, found "
        f"{kind_of(model)}",
        field="encoder",
    )


def _model_name(model: Any) -> str | None:
    """What a model is called by its library."""
    card = getattr(model, "model_card_data", None)  # sentence-transformers
    names = (getattr(model, "model_name", None), getattr(card, "base_model", None))
    return next((name for name in names if isinstance(name, str) and name), None)
