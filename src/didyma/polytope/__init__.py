"""Solvers over the convex hull of what an oracle can name."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
