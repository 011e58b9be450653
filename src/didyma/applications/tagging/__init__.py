"""Tagging by a second-order hidden Markov model, with n-best lists."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
