"""Structured layers, losses and models for PyTorch (extra ``torch``).

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

from typing import TYPE_CHECKING

from didyma.lazy import lazily
from didyma.nn.layers import SparseMAP, sparsemap
from didyma.nn.losses import FenchelYoungLoss

if TYPE_CHECKING:
    from didyma.nn.distributions import StructureDistribution
    from didyma.nn.embedding import PassageEmbedding
    from didyma.nn.esim import EntailmentClassifier
    from didyma.nn.local import LocalSparseMAP
    from didyma.nn.parser import DependencyParser
    from didyma.nn.passage import PassageRanker
    from didyma.nn.ranking_loss import RankingLoss

__all__ = [
    "DependencyParser",
    "EntailmentClassifier",
    "FenchelYoungLoss",
    "LocalSparseMAP",
    "PassageEmbedding",
    "PassageRanker",
    "RankingLoss",
    "SparseMAP",
    "StructureDistribution",
    "sparsemap",
]

# What needs learners, models or other solvers, imported when it is first used.
_HOMES = {
    "DependencyParser": "didyma.nn.parser",
    "EntailmentClassifier": "didyma.nn.esim",
    "LocalSparseMAP": "didyma.nn.local",
    "PassageEmbedding": "didyma.nn.embedding",
    "PassageRanker": "didyma.nn.passage",
    "RankingLoss": "didyma.nn.ranking_loss",
    "StructureDistribution": "didyma.nn.distributions",
}
__getattr__ = lazily(__name__, _HOMES)
