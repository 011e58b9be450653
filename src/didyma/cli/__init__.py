"""The command line: one thin command per verb, and what commands of applications are made of."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
