"""Rerankers inside other libraries, in their own process; each name needs its library."""

from typing import TYPE_CHECKING, Any

from didyma.errors import MissingExtraError
from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.integrations.cross_encoder import RerankEncoder
    from didyma.integrations.haystack import RerankComponent
    from didyma.integrations.langchain import RerankCompressor
    from didyma.integrations.llama_index import RerankPostprocessor
    from didyma.integrations.pyterrier import RerankTransformer

__all__ = [
    "RerankComponent",
    "RerankCompressor",
    "RerankEncoder",
    "RerankPostprocessor",
    "RerankTransformer",
]

_HOMES = {
    "RerankComponent": "didyma.integrations.haystack",
    "RerankCompressor": "didyma.integrations.langchain",
    "RerankEncoder": "didyma.integrations.cross_encoder",
    "RerankPostprocessor": "didyma.integrations.llama_index",
    "RerankTransformer": "didyma.integrations.pyterrier",
}
_find = lazily(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("didyma"):
            raise
        extra = _HOMES[name].rpartition(".")[2].replace("_", "-")
        raise MissingExtraError(name, extra) from None
