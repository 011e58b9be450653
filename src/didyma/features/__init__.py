"""Transformers of features that know queries."""

from typing import TYPE_CHECKING

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.features.bags import Bag
    from didyma.features.featuriser import Featuriser, Joined
    from didyma.features.text import (
        ExtendedFeatures,
        FirstStage,
        SmallFeatures,
        TextFeatures,
        WordVectors,
    )
    from didyma.features.text.bm25 import BM25

__all__ = [
    "BM25",
    "Bag",
    "ExtendedFeatures",
    "Featuriser",
    "FirstStage",
    "Joined",
    "SmallFeatures",
    "TextFeatures",
    "WordVectors",
]

_HOMES = {
    "BM25": "didyma.features.text.bm25",
    "Bag": "didyma.features.bags",
    "ExtendedFeatures": "didyma.features.text.extended",
    "Featuriser": "didyma.features.featuriser",
    "FirstStage": "didyma.features.text.first_stage",
    "Joined": "didyma.features.featuriser",
    "SmallFeatures": "didyma.features.text.small",
    "TextFeatures": "didyma.features.text.features",
    "WordVectors": "didyma.features.text.word_vectors",
}
__getattr__ = lazily(__name__, _HOMES)
