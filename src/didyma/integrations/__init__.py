"""Rerankers inside other libraries, in their own process; each name needs its library."""

from typing import Any

from didyma.errors import MissingExtraError
from didyma.lazy import attach

_find, __dir__, __all__ = attach(__name__, __file__)

_EXTRAS = {
    "RerankComponent": "haystack",
    "RerankCompressor": "langchain",
    "RerankPostprocessor": "llama-index",
    "RerankTransformer": "pyterrier",
}


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("didyma"):
            raise
        raise MissingExtraError(name, _EXTRAS[name]) from None
