"""Structures: finite sets of outputs with a fast argmax."""

from didyma.lazy import attach

FORMER = {
    "HigherOrderSequence": "didyma.structures.HigherOrderChain",
    "Path": "didyma.structures.ShortestPath",
    "Sequence": "didyma.structures.Chain",
}

__getattr__, __dir__, __all__ = attach(__name__, __file__, FORMER)
