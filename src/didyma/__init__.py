"""Structured prediction from an argmax.

    >>> import didyma
    >>> train = didyma.read("train.txt")                   # doctest: +SKIP
    >>> ranker = didyma.SVMRanker(loss="ap").fit(train)     # doctest: +SKIP
    >>> test = didyma.read("test.txt", like=train)          # doctest: +SKIP
    >>> ranker.predict(test)                                # doctest: +SKIP

Names are imported when they are first used, so that ``import didyma`` costs nothing.
"""

from didyma.lazy import attach

__version__ = "0.3.0.dev0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
