"""The layer: values, derivatives, transforms, types."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.utils._python_dispatch import TorchDispatchMode

import didyma
from didyma import DataError
from didyma.nn import FenchelYoungLoss, SparseMAP, sparsemap
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.structures.chain import Chain
from didyma.structures.choice import Choice
from didyma.structures.matching import Matching
from didyma.structures.tree import Tree
from tests.nn.outputs import CASES, Contiguous, tensors

# torch loads its formulas for forward mode through a part of itself that it calls deprecated
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


def of_tuple(case, names, **settings):
    def function(scores, *additional):
        return sparsemap(
            scores,
            case.structure,
            lengths=case.lengths,
            **dict(zip(names, additional)),
            **settings,
        )

    return function


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives(case):
    scores, additional = tensors(case)
    function = of_tuple(case, additional, temperature=0.7)
    inputs = (scores, *additional.values())
    assert gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, inputs, check_batched_grad=True)
    marginals = function(*inputs).detach().numpy()
    expected, _ = didyma.sparsemap(
        scores.detach().numpy(),
        case.structure,
        lengths=case.lengths,
        temperature=0.7,
        return_solution=True,
        **{name: t.detach().numpy() for name, t in additional.items()},
    )
    np.testing.assert_array_equal(marginals, expected)
    assert (marginals % 1 > 0).sum() > 0  # the case has something to differentiate


def test_double_backward_is_the_derivative_of_the_gradient():
    """The gradient of a quadratic of marginals depends on the scores: u'u has J u, whose is J."""
    scores = torch.tensor([[1.0, 0.8, 0.3, -2.0]], dtype=torch.float64, requires_grad=True)

    def function(scores):
        return sparsemap(scores, Choice()).square().sum()

    assert gradgradcheck(function, scores)
    (first,) = torch.autograd.grad(function(scores), scores, create_graph=True)
    (second,) = torch.autograd.grad(first[0, 0], scores)
    assert second.abs().max() > 0.5


def test_users_structure():
    scores = torch.tensor([[0.9, 0.3, 1.0, 0.2], [0.1, 0.5, 0.3, 0.7]], dtype=torch.float64)
    shared = torch.tensor([0.1, 0.3, -0.2], dtype=torch.float64)
    inputs = scores.requires_grad_(), shared.requires_grad_()

    def function(scores, bonus):
        return sparsemap(scores, Contiguous(), bonus=bonus)

    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs)


def test_one_instance_is_a_batch_of_one():
    scores = torch.randn(3, 2, dtype=torch.float64)
    lengths = torch.tensor(2)
    alone, solution = sparsemap(scores, Chain(), lengths=lengths, return_solution=True)
    assert alone.shape == (3, 2)
    assert len(solution) == 1
    torch.testing.assert_close(alone, sparsemap(scores[None], Chain(), lengths=lengths[None])[0])


def test_solution_and_warm_start():
    scores = torch.randn(2, 3, 2)
    marginals, solution = sparsemap(scores, Chain(), return_solution=True)
    assert solution.converged.all()
    np.testing.assert_allclose(solution.marginals, marginals.numpy(), rtol=1e-6)
    _, again = sparsemap(scores, Chain(), return_solution=True, warm_start=solution)
    assert (again.n_iter == 1).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_types_come_back(dtype):
    case = CASES[1]
    scores, additional = tensors(case, dtype)
    additional["end"] = additional["end"].detach().double().requires_grad_()
    marginals = of_tuple(case, additional)(scores, *additional.values())
    assert marginals.dtype == dtype
    weights = torch.arange(12.0, dtype=dtype).reshape(2, 3, 2)
    (marginals * weights).sum().backward()
    assert scores.grad.dtype == dtype
    assert additional["transitions"].grad.dtype == dtype
    assert additional["end"].grad.dtype == torch.float64
    exact = {name: t.detach().double().requires_grad_() for name, t in additional.items()}
    same = scores.detach().double().requires_grad_()
    (of_tuple(case, exact)(same, *exact.values()) * weights.double()).sum().backward()
    torch.testing.assert_close(scores.grad, same.grad.to(dtype))
    torch.testing.assert_close(additional["transitions"].grad, exact["transitions"].grad.to(dtype))


class Copies(TorchDispatchMode):
    """Counts the tensors that are copied to another type or device."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.count += function is torch.ops.aten._to_copy.default
        return function(*arguments, **(keywords or {}))


def test_scores_are_copied_once_each_way():
    """What is counted here between types is, between devices, the transfers that a pass costs."""
    scores = torch.randn(2, 3, 2, dtype=torch.float16, requires_grad=True)
    with Copies() as forward:
        marginals = sparsemap(scores, Chain(), lengths=torch.tensor([3, 2]))
    assert forward.count == 2
    with Copies() as backward:
        marginals.backward(torch.ones_like(marginals))
    assert backward.count == 2


def test_forbidden_parts_have_no_gradient():
    scores = torch.tensor([1.0, 0.8, -torch.inf], requires_grad=True)
    marginals = sparsemap(scores, Choice())
    marginals.square().sum().backward()
    assert marginals[2] == 0
    assert scores.grad[2] == 0
    assert scores.grad.isfinite().all()


def test_without_gradients():
    scores = torch.randn(2, 4, requires_grad=True)
    with torch.no_grad():
        assert not sparsemap(scores, Choice()).requires_grad
    with torch.inference_mode():
        assert sparsemap(scores, Choice()).shape == (2, 4)
    assert not sparsemap(scores.detach(), Choice()).requires_grad
    fixed = torch.randn(2, 2)
    transitions = torch.randn(2, 2, requires_grad=True)
    sparsemap(torch.zeros(2, 3, 2), Chain(), transitions=transitions).square().sum().backward()
    sparsemap(scores.reshape(2, 2, 2), Chain(), transitions=fixed).square().sum().backward()
    assert transitions.grad.shape == scores.grad.shape[:1] * 2
    assert fixed.grad is None


@pytest.mark.parametrize(
    ("structure", "shape"),
    [(Choice(), (4,)), (Chain(), (3, 2)), (Tree(), (4, 4)), (Matching(), (2, 3))],
)
def test_empty_batch(structure, shape):
    scores = torch.zeros(0, *shape, requires_grad=True)
    marginals, solution = sparsemap(scores, structure, return_solution=True)
    marginals.sum().backward()
    assert marginals.shape == scores.grad.shape == (0, *shape)
    assert len(solution) == 0


def test_in_place_changes_afterwards_do_not_matter():
    scores = torch.tensor([[1.0, 0.8, 0.0]], dtype=torch.float64, requires_grad=True)
    marginals = sparsemap(scores, Choice())
    with torch.no_grad():
        scores += 5 * torch.eye(3, dtype=torch.float64)[:1]
    marginals[0, 0].backward()
    torch.testing.assert_close(scores.grad, torch.tensor([[0.5, -0.5, 0]], dtype=torch.float64))


# torch.func


@pytest.mark.parametrize("case", CASES, ids=str)
def test_jacobians(case):
    scores, additional = tensors(case)
    function = of_tuple(case, additional)
    inputs = tuple(t.detach() for t in (scores, *additional.values()))
    each = tuple(range(len(inputs)))
    expected = torch.autograd.functional.jacobian(function, inputs)
    for transform in (jacrev, jacfwd):
        for found, one in zip(transform(function, argnums=each)(*inputs), expected):
            torch.testing.assert_close(found, one)
    directions = tuple(torch.randn_like(t) for t in inputs)
    _, moved = jvp(function, inputs, directions)
    by_hand = sum(
        torch.tensordot(one, direction, direction.ndim)
        for one, direction in zip(expected, directions)
    )
    torch.testing.assert_close(moved, by_hand)


def test_vmap_over_instances_is_the_batch():
    case = CASES[1]
    scores, additional = tensors(case)
    lengths = torch.tensor(case.lengths)
    end = additional.pop("end")

    def single(scores, lengths, end):
        return sparsemap(scores, Chain(), lengths=lengths, end=end, **additional)

    torch.testing.assert_close(
        vmap(single)(scores, lengths, end),
        sparsemap(scores, Chain(), lengths=lengths, end=end, **additional),
    )
    jacobians = vmap(jacrev(single))(scores.detach(), lengths, end.detach())
    for b in range(2):
        torch.testing.assert_close(
            jacobians[b], jacrev(single)(scores[b].detach(), lengths[b], end[b].detach())
        )


def test_vmap_over_shared_scores_and_nested():
    scores = torch.randn(2, 3, 2, dtype=torch.float64)
    several = torch.randn(4, 5, 2, 2, dtype=torch.float64)

    def total(transitions):
        return sparsemap(scores, Chain(), transitions=transitions).square().sum()

    found = vmap(vmap(grad(total)), in_dims=1)(several)
    for i in range(4):
        for j in range(5):
            torch.testing.assert_close(found[j, i], grad(total)(several[i, j]))


def test_hessian_of_a_function_of_marginals():
    scores = torch.tensor([1.0, 0.8, 0.3, -2.0], dtype=torch.float64)

    def function(scores):
        return sparsemap(scores, Choice()).pow(3).sum()

    expected = torch.autograd.functional.hessian(function, scores)
    torch.testing.assert_close(hessian(function)(scores), expected)
    torch.testing.assert_close(jacrev(grad(function))(scores), expected)
    assert expected.abs().max() > 0.1


# the module


def test_module():
    layer = SparseMAP(Tree(), temperature=0.5)
    assert repr(layer) == "SparseMAP(Tree(single_root=False), temperature=0.5)"
    assert not list(layer.parameters())
    scores = torch.randn(2, 4, 4)
    expected = sparsemap(scores, Tree(), lengths=[3, 2], temperature=0.5)
    assert torch.equal(layer(scores, [3, 2]), expected)
    assert torch.equal(deepcopy(layer)(scores, lengths=torch.tensor([3, 2])), expected)
    transitions, start = torch.randn(2, 2), torch.randn(2)
    scores = torch.randn(2, 3, 2)
    assert torch.equal(
        SparseMAP(Chain())(scores, transitions=transitions, start=start),
        sparsemap(scores, Chain(), transitions=transitions, start=start),
    )


def test_limits_warn_of_the_line_that_asked():
    scores = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(0))
    with pytest.warns(ToleranceWarning, match="max_iter=2") as caught:
        SparseMAP(Chain(), max_iter=2)(scores)
    assert caught[0].filename == __file__


def test_a_class_is_no_structure():
    for make in (lambda: SparseMAP(Tree), lambda: sparsemap(torch.zeros(3, 3), Tree)):
        with pytest.raises(DataError, match="found the class Tree: make one"):
            make()


@pytest.mark.parametrize(
    ("scores", "lengths", "match"),
    [
        (np.zeros((2, 3)), None, "scores: expected a floating-point tensor, found ndarray"),
        (torch.zeros(2, 3, dtype=torch.int64), None, "found torch.int64"),
        (torch.full((2, 3), torch.nan), None, "scores: expected numbers .* found nan at index"),
        (torch.full((2, 3), -torch.inf), None, "instance 0: every output"),
        (torch.zeros(2, 3, 4, 5), None, "scores: expected 1 axes"),
        (torch.zeros(2, 3), [3, 3, 3], "lengths: expected one per instance"),
        (torch.zeros(2, 3), 3, "lengths: expected one per instance"),
        (torch.zeros(2, 3), [3, 4], "lengths: expected 0 to 3"),
    ],
)
def test_errors(scores, lengths, match):
    with pytest.raises(DataError, match=match):
        sparsemap(scores, Choice(), lengths=lengths)


def test_unknown_additional_scores():
    with pytest.raises(DataError, match="transitions: Choice has no such scores"):
        sparsemap(torch.zeros(2, 3), Choice(), transitions=torch.zeros(3, 3))


# imports


def test_import_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import didyma\n"
        "try:\n    import didyma.nn\n"
        "except didyma.DidymaError as error: print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install '.[torch]' in a checkout" in found.stdout


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("module", [SparseMAP(Choice()), FenchelYoungLoss(Choice())])
def test_exports_are_refused_with_the_reason(module):
    arguments = (torch.zeros(2, 3),)
    if isinstance(module, FenchelYoungLoss):
        arguments = *arguments, torch.zeros(2, dtype=torch.int64)
    for export in (torch.jit.script, lambda one: torch.jit.trace(one, arguments)):
        with pytest.raises(NotImplementedError, match="TorchScript and ONNX cannot"):
            export(module)
