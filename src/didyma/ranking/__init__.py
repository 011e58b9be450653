"""Rankings: losses, oracles and learners that are exact for the measure that is reported."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
