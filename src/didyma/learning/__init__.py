"""Learners of structural SVMs, over problems that answer with cuts."""

from didyma.lazy import attach

# Names of 0.2 that are elsewhere now.
_FORMER = {
    "ClickModel": "didyma.applications.clicks.ClickModel",
}
__getattr__, __dir__, __all__ = attach(__name__, __file__, _FORMER)
