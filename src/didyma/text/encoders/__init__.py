"""Sentence encoders: texts become vectors whose dot product says how near their meanings are."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
