"""Structured layers, losses and distributions for PyTorch (extra ``torch``).

>>> import torch
>>> from didyma.nn import SparseMAP
>>> from didyma.structures import Choice
>>> scores = torch.tensor([[1.0, 0.8, 0.0]], requires_grad=True)
>>> SparseMAP(Choice())(scores).detach()
tensor([[0.6000, 0.4000, 0.0000]])
"""

from didyma.errors import MissingExtraError

try:
    import torch as torch
except ModuleNotFoundError as error:
    raise MissingExtraError("didyma.nn", "torch") from error

from didyma.lazy import attach

# Names of 0.2 that are elsewhere now.
_FORMER = {
    "DependencyParser": "didyma.applications.parsing.DependencyParser",
    "EntailmentClassifier": "didyma.applications.alignment.EntailmentClassifier",
    "PassageEmbedding": "didyma.applications.passages.PassageEmbedding",
    "PassageRanker": "didyma.applications.passages.PassageRanker",
}
__getattr__, __dir__, __all__ = attach(__name__, __file__, _FORMER)
