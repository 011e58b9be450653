"""Transformers of features that know queries."""

from typing import TYPE_CHECKING

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.features.bags import Bag
    from didyma.features.text.bm25 import BM25

__all__ = ["BM25", "Bag"]

_HOMES = {
    "BM25": "didyma.features.text.bm25",
    "Bag": "didyma.features.bags",
}
__getattr__ = lazily(__name__, _HOMES)
