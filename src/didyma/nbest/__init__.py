"""N-best lists: the outputs that a decoder proposes for an input, and rerankers of them."""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
