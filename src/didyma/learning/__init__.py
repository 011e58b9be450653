"""Learners of structural SVMs, over problems that answer with cuts, and of what clicks mean."""

from typing import TYPE_CHECKING

from didyma.lazy import lazily

if TYPE_CHECKING:
    from didyma.learning.bcfw import BCFW
    from didyma.learning.bundle import ProximalBundle
    from didyma.learning.cccp import CCCP
    from didyma.learning.clicks import ClickModel
    from didyma.learning.cutting_plane import NSlack, OneSlack
    from didyma.learning.perceptron import Perceptron
    from didyma.learning.problem import Cut, PythonProblem

__all__ = [
    "BCFW",
    "CCCP",
    "ClickModel",
    "Cut",
    "NSlack",
    "OneSlack",
    "Perceptron",
    "ProximalBundle",
    "PythonProblem",
]

_HOMES = {
    "BCFW": "didyma.learning.bcfw",
    "CCCP": "didyma.learning.cccp",
    "ClickModel": "didyma.learning.clicks",
    "Cut": "didyma.learning.problem",
    "NSlack": "didyma.learning.cutting_plane",
    "OneSlack": "didyma.learning.cutting_plane",
    "Perceptron": "didyma.learning.perceptron",
    "ProximalBundle": "didyma.learning.bundle",
    "PythonProblem": "didyma.learning.problem",
}
__getattr__ = lazily(__name__, _HOMES)
