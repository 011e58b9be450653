"""Structures: finite sets of outputs with a fast argmax."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
