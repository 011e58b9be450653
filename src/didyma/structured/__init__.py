"""A task of your own: what outputs there are, what they cost, and learners for it."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
