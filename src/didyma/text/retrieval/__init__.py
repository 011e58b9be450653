"""Search engines that find the candidates of a reranker: SQLite, PostgreSQL, OpenSearch and others.

Each hands over passages with its own scores, which a reranker takes as signals.
"""

from didyma.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
