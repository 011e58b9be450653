"""Readers of judged texts and of collections: queries and passages as `Lists`."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
