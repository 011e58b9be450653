"""Dependency parsing: a network scores arcs, and a structured loss trains it (extra ``torch``)."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
