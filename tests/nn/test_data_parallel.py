"""Layers and losses in two processes that share gradients: those of one process."""

from __future__ import annotations

import sys

import pytest
import torch
from torch import distributed, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from didyma.nn import FenchelYoungLoss, SparseMAP
from didyma.structures.chain import Chain

pytestmark = [
    pytest.mark.skipif(not distributed.is_gloo_available(), reason="torch was built without gloo"),
    pytest.mark.skipif(sys.platform == "win32", reason="processes meet in a file"),
]

N, LENGTH, TAGS, WIDTH = 4, 3, 2, 5
REGULARIZERS = ("perceptron", "crf", "sparsemap")


class Tagger(nn.Module):
    """A layer inside of a network, scores and transitions at its end."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inside = nn.Linear(WIDTH, TAGS).double()
        self.layer = SparseMAP(Chain())
        self.outside = nn.Linear(TAGS, TAGS).double()
        self.transitions = nn.Parameter(torch.randn(TAGS, TAGS).double())

    def forward(self, x):
        marginals = self.layer(self.inside(x), transitions=self.transitions)
        return self.outside(marginals), self.transitions


def gradients(network, x, gold):
    """Of the sum of all losses; they are means over a batch."""
    network.zero_grad()
    scores, transitions = network(x)
    losses = [FenchelYoungLoss(Chain(), r) for r in REGULARIZERS]
    sum(loss(scores, gold, transitions=transitions) for loss in losses).backward()
    return [parameter.grad.clone() for parameter in network.parameters()]


def batch():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(N, LENGTH, WIDTH, generator=generator, dtype=torch.float64)
    return x, torch.randint(TAGS, (N, LENGTH), generator=generator)


def work(rank, folder):
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    x, gold = (part.chunk(2)[rank] for part in batch())
    found = gradients(DistributedDataParallel(Tagger()), x, gold)
    torch.save(found, f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_have_the_gradients_of_one(tmp_path):
    expected = gradients(Tagger(), *batch())
    assert all(gradient.abs().max() > 0 for gradient in expected)
    spawn(work, (str(tmp_path),), nprocs=2)
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        for gradient, other in zip(expected, found, strict=True):
            torch.testing.assert_close(other, gradient, atol=1e-9, rtol=1e-7)
