"""Tensors that live elsewhere: results and gradients come back to where they came from.

CUDA is rarely at hand where tests run, so that every law has a device that is made here as well.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from didyma.nn import (
    FenchelYoungLoss,
    LocalSparseMAP,
    RankingLoss,
    SparseMAP,
    StructureDistribution,
)
from didyma.structures import AtMost, Chain, FactorGraph

LENGTHS = torch.tensor([3, 2])
GRAPH = FactorGraph(3, edges=[(0, 1), (1, 2)], logic=[AtMost(2, range(3))])


class Far(torch.Tensor):
    """A tensor on the device ``meta`` that has data nevertheless; they lie in ``near``."""

    @staticmethod
    def __new__(cls, near):
        far = torch.Tensor._make_wrapper_subclass(
            cls, near.shape, strides=near.stride(), dtype=near.dtype, device="meta"
        )
        far.near = near
        return far

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), keywords=None):
        raise AssertionError(f"{function} outside of FarDevice")


class FarDevice(TorchDispatchMode):
    """Computes with `Far` tensors, counts transfers, and refuses to mix devices as CUDA does."""

    transfers = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = dict(keywords or {})
        tensors = [t for t in tree_leaves((arguments, keywords)) if isinstance(t, torch.Tensor)]
        far = any(isinstance(t, Far) for t in tensors)
        # Numbers may join: CUDA takes those from the CPU, too.
        if far and any(t.ndim and not isinstance(t, Far) for t in tensors):
            raise RuntimeError(f"{function} of tensors on two devices")
        if keywords.get("device") is not None:
            goes_far = keywords["device"].type == "meta"
            self.transfers += bool(tensors) and goes_far != far
            keywords["device"], far = torch.device("cpu"), goes_far
        arguments, keywords = tree_map_only(Far, lambda t: t.near, (arguments, keywords))
        found = function(*arguments, **keywords)
        return tree_map_only(torch.Tensor, Far, found) if far else found


def layer(scores, additional, send):
    return SparseMAP(Chain())(scores, lengths=send(LENGTHS), transitions=additional)


def loss(scores, additional, send):
    gold = send(torch.tensor([[0, 1, 1], [1, 0, 0]]))
    mask = send(torch.tensor([True, True]))
    return FenchelYoungLoss(Chain())(
        scores, gold, lengths=send(LENGTHS), mask=mask, transitions=additional
    )


def local(scores, additional, send):
    return LocalSparseMAP(GRAPH)(scores, pairwise=additional.expand(2, 2, 2))


def marginals(scores, additional, send):
    return _distribution(scores, additional, send).marginals


def log_partition(scores, additional, send):
    return _distribution(scores, additional, send).log_partition


def entropy(scores, additional, send):
    return _distribution(scores, additional, send).entropy()


def log_prob(scores, additional, send):
    distribution = _distribution(scores, additional, send)
    drawn = distribution.mode
    assert drawn.device == distribution.sample().device == scores.device
    return distribution.log_prob(drawn)


def ranking(scores, additional, send):
    relevance = send(torch.tensor([0, 1, 0, 1, 0, 0]))
    qid = send(torch.tensor([0, 0, 0, 1, 1, 1]))
    return RankingLoss()(scores.flatten()[:6] + additional.sum(), relevance, qid=qid)


def _distribution(scores, additional, send):
    return StructureDistribution(Chain(), scores, lengths=send(LENGTHS), transitions=additional)


CALLS = [layer, loss, local, marginals, log_partition, entropy, log_prob, ranking]
TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def passed(call, dtype, send):
    """The result of a call, and the gradients of what it is given."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, 2, generator=generator, dtype=torch.float64).to(dtype)
    additional = torch.randn(2, 2, generator=generator, dtype=torch.float64).to(dtype)
    inputs = send(scores).requires_grad_(), send(additional).requires_grad_()
    found = call(*inputs, send)
    found.backward(send(torch.ones(found.shape, dtype=found.dtype)))
    results = found.detach(), *(t.grad for t in inputs)
    assert all(t.device == inputs[0].device and t.dtype == dtype for t in results)
    return results


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_results_and_gradients_come_back(call, dtype):
    expected = passed(call, dtype, torch.clone)
    with FarDevice():
        found = passed(call, dtype, Far)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one.near, other, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize(
    ("call", "given", "gradients"),
    [(layer, 3, 2), (loss, 5, 2), (local, 2, 2), (ranking, 3, 1)],
    ids=["layer", "loss", "local", "ranking"],
)
def test_every_tensor_is_transferred_once(call, given, gradients, dtype):
    with FarDevice() as device:
        passed(call, dtype, Far)
    result_and_its_gradient = 2
    assert device.transfers == given + result_and_its_gradient + gradients


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_cuda(call, dtype):
    expected = passed(call, dtype, torch.clone)
    for one, other in zip(passed(call, dtype, lambda t: t.to("cuda")), expected):
        torch.testing.assert_close(one.cpu(), other)
