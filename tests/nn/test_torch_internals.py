"""Layers without the private names of torch: the same numbers, by its public way."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from didyma.nn import SparseMAP, torch_internals
from didyma.nn.torch_internals import is_plain, private
from didyma.structures import Chain, Choice

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
NAMES = ["transforms_active", "unwrap_dead_wrappers", "is_legacy_batched", "interpreters"]


def marginals_and_gradient(structure, shape):
    torch.manual_seed(0)
    scores, weights = torch.randn(shape, requires_grad=True), torch.randn(shape)
    marginals = SparseMAP(structure)(scores)
    (gradient,) = torch.autograd.grad(marginals, scores, weights)
    return marginals.detach(), gradient


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("structure", "shape"), [(Choice(), (3,)), (Chain(), (2, 4, 3))], ids=str)
def test_a_version_without_a_name_finds_the_same(monkeypatch, name, structure, shape):
    expected = marginals_and_gradient(structure, shape)
    monkeypatch.setattr(torch_internals, name, None)
    for one, other in zip(expected, marginals_and_gradient(structure, shape)):
        torch.testing.assert_close(one, other, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("name", [None, *NAMES])
def test_transforms_work_without_a_name(monkeypatch, name):
    if name is not None:
        monkeypatch.setattr(torch_internals, name, None)
    layer, scores = SparseMAP(Choice()), torch.tensor([1.0, 0.8, 0.0])
    expected = torch.tensor([[0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    torch.testing.assert_close(torch.func.jacrev(layer)(scores), expected)
    batched = torch.autograd.functional.jacobian(layer, scores, vectorize=True)
    torch.testing.assert_close(batched, expected)


def test_forward_mode_is_refused_where_torch_does_not_say_how_often_it_is_used(monkeypatch):
    layer, scores = SparseMAP(Choice()), torch.tensor([1.0, 0.8, 0.0])
    torch.func.jvp(layer, (scores,), (scores,))
    monkeypatch.setattr(torch_internals, "interpreters", None)
    with pytest.raises(NotImplementedError, match="does not say how many"):
        torch.func.jvp(layer, (scores,), (scores,))


@pytest.mark.parametrize("name", [None, "transforms_active", "unwrap_dead_wrappers"])
def test_which_way_is_taken(monkeypatch, name):
    """The public way looks at the signature of ``forward``; ours does not, where it can."""
    looked = []
    signature = torch.autograd.function.inspect.signature
    monkeypatch.setattr(
        torch.autograd.function.inspect, "signature", lambda f: looked.append(f) or signature(f)
    )
    if name is not None:
        monkeypatch.setattr(torch_internals, name, None)
    marginals_and_gradient(Choice(), (3,))
    assert bool(looked) == (name is not None)


def test_names():
    assert all(getattr(torch_internals, name) is not None for name in NAMES)
    assert private("_C.nothing.of.this") is None
    with torch.no_grad():
        assert is_plain(torch.zeros(2))
        assert not is_plain(None)
    assert not is_plain(torch.zeros(2))
