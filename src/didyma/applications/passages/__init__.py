"""A convolutional network that ranks passages by how well they answer (extra ``torch``)."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
