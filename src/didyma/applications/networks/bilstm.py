"""A bidirectional LSTM over padded sentences."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """States (B, n, 2 · hidden) of inputs (B, n, size): each word read from both sides.

    Padding stands after the words, so an LSTM that reads forwards meets it too late to matter; the
    other one reads each sentence reversed in its own place. Neither needs packed sequences, which
    cost half the speed.
    """

    def __init__(self, size: int, hidden: int, layers: int = 2, dropout: float = 0.0) -> None:
        super().__init__()
        sizes = [size] + [2 * hidden] * (layers - 1)
        self.forwards = nn.ModuleList(nn.LSTM(s, hidden, batch_first=True) for s in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(s, hidden, batch_first=True) for s in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """What stands beyond a sentence's length is meaningless."""
        place = torch.arange(x.shape[1], device=x.device)
        mirrored = lengths[:, None] - 1 - place
        mirror = torch.where(mirrored >= 0, mirrored, place)
        for forwards, backwards in zip(self.forwards, self.backwards):
            x = self.dropout(x)
            ahead, _ = forwards(x)
            behind, _ = backwards(_reorder(x, mirror))
            x = torch.cat([ahead, _reorder(behind, mirror)], dim=2)
        return self.dropout(x)


def _reorder(x: Tensor, places: Tensor) -> Tensor:
    return x.gather(1, places[:, :, None].expand(-1, -1, x.shape[2]))
