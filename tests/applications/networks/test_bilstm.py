"""The bidirectional LSTM against that of PyTorch."""

from __future__ import annotations

import torch
from torch import nn

from didyma.applications.networks.bilstm import BiLSTM


def test_a_bilstm_is_that_of_packed_sequences():
    torch.manual_seed(0)
    ours, theirs = BiLSTM(3, 5, 2), nn.LSTM(3, 5, 2, bidirectional=True, batch_first=True)
    for layer, (ahead, behind) in enumerate(zip(ours.forwards, ours.backwards)):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            for suffix, own in (("", ahead), ("_reverse", behind)):
                getattr(theirs, f"{name}_l{layer}{suffix}").data = getattr(own, f"{name}_l0").data
    x, lengths = torch.randn(3, 7, 3), torch.tensor([4, 7, 1])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    found = ours(x, lengths)
    for b, n in enumerate(lengths):
        torch.testing.assert_close(found[b, :n], expected[b, :n])
