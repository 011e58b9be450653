"""LocalSparseMAP as a layer."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import didyma
from didyma.nn import LocalSparseMAP
from didyma.structures import AtMost, Chain, Composition, ExactlyOne, Factor, FactorGraph, Tree

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

HEADS = np.vstack([np.full(4, -1), np.arange(12).reshape(3, 4)])
TREE = Composition(
    12, [Factor(Tree(), HEADS)], edges=[(1, 2)], logic=[ExactlyOne([0, 4, 8]), AtMost(1, [2, 3])]
)
GRID = FactorGraph(4, edges=[(0, 1), (1, 2), (2, 3), (3, 0)], logic=[AtMost(2, range(4))])
STATES = FactorGraph(3, 3, edges=[(0, 1), (1, 2), (2, 0)])
TAGS = Composition(6, [Factor(Chain(), np.arange(6).reshape(3, 2))], logic=[AtMost(2, [0, 2, 4])])


def draw(graph, batch):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        tensor = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return tensor.requires_grad_()

    scores = normal(batch, *graph.score_shape)
    additional = {}
    if graph.edges:
        shape = () if isinstance(graph, Composition) else (graph.n_states, graph.n_states)
        additional["pairwise"] = normal(len(graph.edges), *shape)
    if graph is TAGS:
        additional["transitions"] = normal(2, 2, 2)  # of each step
    return scores, additional


@pytest.mark.parametrize(
    "graph", [TREE, GRID, STATES, TAGS], ids=["tree", "grid", "states", "tags"]
)
def test_gradients(graph):
    scores, additional = draw(graph, 3)
    layer, names = LocalSparseMAP(graph, temperature=0.8), list(additional)

    def run(scores, *tensors):
        return layer(scores, **dict(zip(names, tensors)))

    found = run(scores, *additional.values())
    arrays = {name: t.detach().numpy() for name, t in additional.items()}
    plain = didyma.local_sparsemap(scores.detach().numpy(), graph, temperature=0.8, **arrays)
    np.testing.assert_allclose(found.detach().numpy(), plain.marginals, atol=1e-12)
    assert torch.autograd.gradcheck(run, (scores, *additional.values()), atol=1e-5, fast_mode=True)
    assert torch.autograd.gradgradcheck(
        run, (scores, *additional.values()), atol=1e-5, fast_mode=True
    )
    assert torch.autograd.gradcheck(
        run, (scores, *additional.values()), atol=1e-5, fast_mode=True,
        check_forward_ad=True, check_backward_ad=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "graph", [TREE, GRID, STATES, TAGS], ids=["tree", "grid", "states", "tags"]
)
def test_maps_and_batches_of_gradients(graph):
    scores, additional = draw(graph, 3)
    layer = LocalSparseMAP(graph)
    whole = layer(scores, **additional)
    weights = torch.randn(4, *whole.shape, dtype=torch.float64)
    inputs = [scores, *additional.values()]
    batched = torch.autograd.grad(whole, inputs, weights, retain_graph=True, is_grads_batched=True)
    for i, one in enumerate(weights):
        single = torch.autograd.grad(whole, inputs, one, retain_graph=True)
        for many, gradient in zip(batched, single):
            torch.testing.assert_close(many[i], gradient)
    shared = {name: t.detach() for name, t in additional.items()}
    mapped = torch.func.vmap(lambda one: layer(one, **shared))(scores.detach())
    torch.testing.assert_close(mapped, whole.detach())
    squares = torch.func.grad(lambda one: layer(one, **shared).square().sum())
    (expected,) = torch.autograd.grad(whole.square().sum(), scores)
    torch.testing.assert_close(torch.func.vmap(squares)(scores.detach()), expected)


def test_types_solutions_and_warm_starts():
    layer = LocalSparseMAP(TREE)
    scores = torch.randn(3, 12, generator=torch.Generator().manual_seed(1)).bfloat16()
    found, solution = layer(scores, return_solution=True)
    assert found.dtype == torch.bfloat16
    assert solution.converged.all()
    again, warm = layer(scores, return_solution=True, warm_start=solution)
    torch.testing.assert_close(again, found)
    assert (warm.n_iter <= 1).all()
    single = layer(scores[0].float())
    torch.testing.assert_close(single.bfloat16(), found[0])
    assert "Composition" in repr(layer)


def test_bad_input():
    with pytest.raises(didyma.DataError, match="FactorGraph or a Composition"):
        LocalSparseMAP(Tree())
    with pytest.raises(didyma.DataError, match="floating-point"):
        LocalSparseMAP(TREE)(torch.zeros(12, dtype=torch.int64))
    with pytest.raises(didyma.DataError, match="12 variables"):
        LocalSparseMAP(TREE)(torch.zeros(11))
