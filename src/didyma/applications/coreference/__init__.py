"""Coreference: which mentions of a document mean the same thing."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
