"""Natural language inference with a latent alignment of words (extra ``torch``)."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
