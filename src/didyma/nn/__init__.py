"""Structured layers and losses for PyTorch (extra ``torch``).

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

from didyma.nn.layers import SparseMAP, sparsemap
from didyma.nn.losses import FenchelYoungLoss

__all__ = ["FenchelYoungLoss", "SparseMAP", "sparsemap"]
