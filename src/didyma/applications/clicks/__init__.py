"""Judgements from logs of clicks, freed of the bias of positions."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
