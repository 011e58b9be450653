"""Motif finding in DNA sequences by a latent structural SVM."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
