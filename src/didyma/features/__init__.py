"""Transformers of features that know queries."""

from typing import TYPE_CHECKING

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.features.bags import Bag

__all__ = ["Bag"]

_HOMES = {
    "Bag": "didyma.features.bags",
}
__getattr__ = lazily(__name__, _HOMES)
