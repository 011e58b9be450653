"""Texts: what their words say about a query, rerankers of them, and an index to search."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
