"""Layers and losses in graphs that torch compiles: one operator each, the same numbers."""

from __future__ import annotations

import pytest
import torch

from didyma import DataError
from didyma.nn import FenchelYoungLoss, LocalSparseMAP, SparseMAP, sparsemap
from didyma.structures import AtMost, Chain, Choice, Composition, Factor, FactorGraph, Tree
from tests.nn.outputs import CASES, Contiguous, tensors

# torch loads parts of itself that it calls deprecated
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]


@pytest.fixture(autouse=True)
def _forget_graphs():
    yield
    torch.compiler.reset()


def values_and_gradients(function, scores, additional):
    value = function(scores, additional)
    return [value, *torch.autograd.grad(value.sum(), [scores, *additional.values()])]


def check(function, backend, scores, additional):
    compiled = torch.compile(function, backend=backend, fullgraph=True)
    expected = values_and_gradients(function, scores, additional)
    for one, other in zip(expected, values_and_gradients(compiled, scores, additional)):
        assert torch.equal(one, other)


def layer_of(case, **settings):
    layer = SparseMAP(case.structure, **settings)
    return lambda scores, additional: layer(scores, case.lengths, **additional).square()


@pytest.mark.parametrize("case", [CASES[1], CASES[4]], ids=str)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_layer_is_one_graph(case, backend):
    check(layer_of(case, temperature=0.7), backend, *tensors(case))


def test_a_structure_of_ones_own_is_one_graph():
    layer = SparseMAP(Contiguous())
    scores = torch.tensor([[0.9, 0.3, 1.0, 0.2]], requires_grad=True)
    bonus = torch.tensor([0.1, 0.3, -0.2], requires_grad=True)
    check(lambda s, a: layer(s, **a).square(), "aot_eager", scores, {"bonus": bonus})


@pytest.mark.parametrize("regularizer", ["perceptron", "crf", "sparsemap"])
def test_a_loss_is_one_graph(regularizer):
    case = CASES[1]
    loss = FenchelYoungLoss(case.structure, regularizer, margin=0.5, reduction="sum")
    mask = torch.tensor([False, True])

    def function(scores, additional):
        return loss(scores, case.gold, case.lengths, mask, **additional)

    check(function, "aot_eager", *tensors(case))


def test_one_graph_for_batches_of_all_sizes():
    transitions, made = torch.randn(2, 2), []

    def backend(graph, inputs):
        made.append(graph)
        return graph

    layer = SparseMAP(Chain())
    function = torch.compile(
        lambda scores: layer(scores, transitions=transitions),
        backend=backend,
        fullgraph=True,
        dynamic=True,
    )
    for size in (3, 5, 7):
        scores = torch.randn(size, 4, 2)
        assert torch.equal(function(scores), layer(scores, transitions=transitions))
    assert len(made) == 1


def test_half_precision_and_one_instance():
    layer = SparseMAP(Tree())
    scores = torch.randn(4, 4, dtype=torch.bfloat16, generator=torch.Generator().manual_seed(0))
    check(lambda s, a: layer(s, torch.tensor(3)).square(), "aot_eager", scores.requires_grad_(), {})


def test_what_graphs_cannot_hold_is_run_outside():
    """A structure that the function makes, a solution that it returns: right, in two graphs."""

    def function(scores):
        marginals, solution = sparsemap(scores, Tree(single_root=True), return_solution=True)
        other = sparsemap(scores, Tree(single_root=True))
        return marginals.sum() + (other * other).sum() + int(solution.converged.all())

    scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(1))
    compiled = torch.compile(function, backend="eager")
    assert torch.equal(compiled(scores), function(scores))


@pytest.mark.parametrize(
    ("backend", "error", "message"),
    [
        ("eager", NotImplementedError, "a compiled graph has first derivatives only"),
        ("aot_eager", RuntimeError, "create_graph=False|double backward"),  # torch's own
    ],
)
@pytest.mark.parametrize("regularizer", ["layer", "crf"])
def test_second_derivatives_are_refused(backend, error, message, regularizer):
    layer, loss = SparseMAP(Choice()), FenchelYoungLoss(Choice(), "crf")

    def function(scores):
        return layer(scores).square().sum() if regularizer == "layer" else loss(scores, [0])

    compiled = torch.compile(function, backend=backend, fullgraph=True)
    scores = torch.tensor([[0.4, 0.3, 0.2]], dtype=torch.float64, requires_grad=True)

    def second_derivative():
        (gradient,) = torch.autograd.grad(compiled(scores), scores, create_graph=True)
        torch.autograd.grad(gradient.square().sum(), scores)

    with pytest.raises(error, match=message):
        second_derivative()


def test_errors_are_those_of_the_layer():
    layer = SparseMAP(Choice())
    compiled = torch.compile(lambda scores: layer(scores), backend="aot_eager", fullgraph=True)
    with pytest.raises(DataError, match=r"expected numbers .* found nan at index"):
        compiled(torch.tensor([[1.0, torch.nan]]))


GRAPHS = {
    "composition": Composition(
        4, [Factor(Choice(), [0, 1])], edges=[(1, 2)], logic=[AtMost(1, [1, 2, 3])]
    ),
    "factor graph": FactorGraph(4, 2, edges=[(0, 1), (1, 2)], logic=[AtMost(2, range(4))]),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", GRAPHS)
def test_factors_that_share_parts_are_one_graph(name, backend):
    graph = GRAPHS[name]
    layer = LocalSparseMAP(graph, temperature=0.7)
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()

    shape = (4,) if name == "composition" else (4, 2)
    of_pairs = (1,) if name == "composition" else (2, 2, 2)
    for scores, pairs in (
        (normal(3, *shape), normal(*of_pairs)),  # pairs that the batch shares
        (normal(3, *shape), normal(3, *of_pairs)),
        (normal(*shape), normal(*of_pairs)),
    ):
        check(
            lambda s, more: layer(s.tanh(), **more).square(), backend, scores, {"pairwise": pairs}
        )
