"""Measures as values, evaluation with one tie rule, and paired significance tests."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
