"""Judgements as a store: who found which document how relevant to which query, and how surely."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
