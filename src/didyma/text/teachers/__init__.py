"""Teachers: models too slow for every query, which a reranker learns from or asks when unsure."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
