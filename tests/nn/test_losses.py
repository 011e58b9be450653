"""The six losses against enumeration of all outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, vmap

from didyma import DataError
from didyma.nn import FenchelYoungLoss, SparseMAP
from didyma.structures.chain import Chain
from didyma.structures.choice import Choice
from didyma.structures.matching import Matching
from didyma.structures.tree import Tree
from tests.nn import decision_cases
from tests.nn.decision_cases import best, draw
from tests.nn.outputs import CASES, Contiguous, tensors, vectors

# torch loads its formulas for forward mode through a part of itself that it calls deprecated
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

LOSSES = [
    (regularizer, margin)
    for regularizer in ("perceptron", "crf", "sparsemap")
    for margin in (0.0, 1.3)
]


def tractable(case, regularizer):
    return not (regularizer == "crf" and isinstance(case.structure, Matching))


PAIRS = [(case, *loss) for case in CASES for loss in LOSSES if tractable(case, loss[0])]
IDS = [f"{case}-{regularizer}-{margin}" for case, regularizer, margin in PAIRS]


def best_mixture(theta, M, t):
    """Max over distributions y of θ'y − t/2 ‖M'y‖², by a general solver."""
    found = minimize(
        lambda y: 0.5 * t * (M.T @ y) @ (M.T @ y) - theta @ y,
        np.full(len(theta), 1 / len(theta)),
        jac=lambda y: t * M @ (M.T @ y) - theta,
        bounds=[(0, 1)] * len(theta),
        constraints={"type": "eq", "fun": lambda y: y.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -found.fun


def expected_loss(case, scores, b, regularizer, margin, t, **additional):
    """Straight from the definition: costs are added to the scores of all outputs."""
    M, _, theta = vectors(case, scores, b, **additional)
    one = type(case)(case.structure, case.shape, case.lengths, case.gold, [case.gold[b]], {})
    gold, _, gold_theta = vectors(one, scores, b, **additional)
    gold, gold_theta = gold[0], gold_theta[0]
    augmented = theta + margin * (gold.sum() - M @ gold)
    if regularizer == "perceptron":
        return augmented.max() - gold_theta
    if regularizer == "crf":
        return t * logsumexp(augmented / t) - gold_theta
    return best_mixture(augmented, M, t) + 0.5 * t * gold @ gold - gold_theta


@pytest.mark.parametrize(("case", "regularizer", "margin"), PAIRS, ids=IDS)
def test_value_and_derivatives(case, regularizer, margin):
    for seed, t in ((0, 1.0), (1, 0.6)):
        scores, additional = tensors(case, seed=seed, scale=1.0)
        loss = FenchelYoungLoss(
            case.structure, regularizer, margin=margin, temperature=t, reduction="none"
        )

        def function(scores, *arrays, loss=loss, additional=additional):
            return loss(scores, case.gold, case.lengths, **dict(zip(additional, arrays)))

        inputs = (scores, *additional.values())
        arrays = {name: a.detach().numpy() for name, a in additional.items()}
        expected = [
            expected_loss(case, scores.detach().numpy(), b, regularizer, margin, t, **arrays)
            for b in range(2)
        ]
        np.testing.assert_allclose(function(*inputs).detach(), expected, atol=1e-6)
        assert gradcheck(function, inputs, check_batched_grad=True)
        if regularizer != "crf":
            assert gradgradcheck(function, inputs, check_batched_grad=True)
            assert gradcheck(function, inputs, check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize(("regularizer", "margin"), LOSSES)
def test_zero_when_the_margin_is_satisfied(regularizer, margin):
    gold = torch.tensor([1])
    needed = margin + (regularizer == "sparsemap")  # a margin of 1 is built into SparseMAP
    loss = FenchelYoungLoss(Choice(), regularizer, margin=margin)
    for above, zero in ((needed + 1e-6, True), (needed - 1e-2, False)):
        scores = torch.tensor([[0.0, above, -1.0]], dtype=torch.float64)
        value = loss(scores, gold)
        assert value >= 0
        assert (value == 0) == (zero and regularizer != "crf")


def test_gradient_is_prediction_minus_gold():
    scores = torch.tensor([[1.0, 0.8, 0.0]], dtype=torch.float64, requires_grad=True)
    predictions = {
        "perceptron": torch.tensor([[1.0, 0, 0]]).double(),
        "crf": scores.detach().softmax(1),
        "sparsemap": torch.tensor([[0.6, 0.4, 0.0]]).double(),
    }
    for regularizer, prediction in predictions.items():
        scores.grad = None
        FenchelYoungLoss(Choice(), regularizer)(scores, [1]).backward()
        gold = torch.tensor([[0.0, 1.0, 0.0]]).double()
        torch.testing.assert_close(scores.grad, prediction - gold)


def test_crf_of_a_choice_is_cross_entropy():
    scores, gold = torch.randn(5, 4), torch.tensor([0, 3, 2, 1, 0])
    loss = FenchelYoungLoss(Choice(), "crf")(scores, gold)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(scores, gold))


def test_a_margin_crf_is_a_crf_at_other_scores():
    scores, gold = torch.randn(5, 4), torch.tensor([0, 3, 2, 1, 0])
    shifted = scores - 2.0 * torch.nn.functional.one_hot(gold, 4)
    torch.testing.assert_close(
        FenchelYoungLoss(Choice(), "crf", margin=2.0)(scores, gold),
        FenchelYoungLoss(Choice(), "crf")(shifted, gold),
    )


def test_crf_has_third_derivatives_and_refuses_fourth_ones():
    scores = torch.randn(2, 3, requires_grad=True, dtype=torch.float64)

    def loss(scores):
        return FenchelYoungLoss(Choice(), "crf", margin=0.5, temperature=0.7)(scores, [0, 1])

    def squared_gradient(scores):
        (gradient,) = torch.autograd.grad(loss(scores), scores, create_graph=True)
        return gradient.square().sum()

    assert gradgradcheck(loss, scores)
    assert gradgradcheck(squared_gradient, scores)
    (gradient,) = torch.autograd.grad(squared_gradient(scores), scores, create_graph=True)
    (second,) = torch.autograd.grad(gradient[0, 0], scores, create_graph=True)
    with pytest.raises(NotImplementedError, match="no higher ones"):
        second.sum().backward()


def test_gradients_add_up():
    """A gradient penalty: the loss and the square of its own gradient, in one backward pass."""
    scores = torch.tensor([[1.0, 0.8, 0.3]], dtype=torch.float64, requires_grad=True)

    def penalised(scores):
        loss = FenchelYoungLoss(Choice())(scores, [1])
        (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
        return 2.0 * loss + gradient.square().sum()

    assert gradcheck(penalised, scores)


def test_users_structure_takes_zeros_and_ones():
    scores = torch.tensor([[0.9, 0.3, 1.0, 0.1]], dtype=torch.float64, requires_grad=True)
    gold = [[0, 1, 1, 0]]
    for regularizer in ("perceptron", "sparsemap"):
        loss = FenchelYoungLoss(Contiguous(), regularizer, margin=1.0)
        assert gradcheck(lambda s, loss=loss: loss(s, gold), scores)
    # runs 0-1, 1-2, 2-3 score 1.2, 1.3, 1.1; the outer two lack one gold part each
    svm = FenchelYoungLoss(Contiguous(), "perceptron", margin=1.0)(scores, gold)
    assert svm.item() == pytest.approx(0.9)
    for wrong in ([[0, 2, 1, 0]], [[0, 1, 1]]):
        with pytest.raises(DataError, match=r"outputs: expected zeros and ones of shape \(1, 4\)"):
            FenchelYoungLoss(Contiguous())(scores, wrong)
    with pytest.raises(DataError, match="needs a method encode"):
        FenchelYoungLoss(Contiguous())(scores, gold, bonus=torch.ones(3))
    with pytest.raises(NotImplementedError, match="no method expectations"):
        FenchelYoungLoss(Contiguous(), "crf")(scores, gold)


# reductions and masks


@pytest.mark.parametrize("regularizer", ["perceptron", "crf", "sparsemap"])
def test_reductions(regularizer):
    scores, gold = torch.randn(3, 4, dtype=torch.float64), torch.tensor([0, 3, 1])

    def loss(reduction, **settings):
        return FenchelYoungLoss(Choice(), regularizer, reduction=reduction)(
            scores, gold, **settings
        )

    values = loss("none")
    assert values.shape == (3,)
    torch.testing.assert_close(loss("sum"), values.sum())
    torch.testing.assert_close(loss("mean"), values.mean())
    mask = torch.tensor([True, False, True])
    torch.testing.assert_close(loss("none", mask=mask), values * mask)
    torch.testing.assert_close(loss("sum", mask=[1, 0, 1]), (values * mask).sum())
    torch.testing.assert_close(loss("mean", mask=mask), values[mask].mean())
    alone = FenchelYoungLoss(Choice(), regularizer)(scores[0], gold[0])
    torch.testing.assert_close(alone, values[0])


@pytest.mark.parametrize("regularizer", ["perceptron", "crf", "sparsemap"])
def test_what_is_masked_out_may_hold_anything(regularizer):
    scores = torch.randn(3, 3, 2, dtype=torch.float64)
    scores[1] = torch.nan
    scores.requires_grad_()
    gold = torch.tensor([[0, 1, -1], [-1, -1, -1], [1, 1, 0]])
    lengths = torch.tensor([2, 0, 3])
    transitions = torch.randn(3, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    loss = FenchelYoungLoss(Chain(), regularizer, margin=0.5, reduction="sum")
    mask = torch.tensor([True, False, True])
    loss(scores, gold, lengths, mask, transitions=transitions).backward()
    kept = [t.detach()[mask].requires_grad_() for t in (scores, transitions)]
    loss(kept[0], gold[mask], lengths[mask], transitions=kept[1]).backward()
    torch.testing.assert_close(scores.grad[mask], kept[0].grad)
    torch.testing.assert_close(transitions.grad[mask], kept[1].grad)
    assert not scores.grad[1].any()
    assert not transitions.grad[1].any()


@pytest.mark.parametrize("regularizer", ["perceptron", "crf", "sparsemap"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_no_instance_counts(regularizer, reduction):
    loss = FenchelYoungLoss(Choice(), regularizer, margin=1.0, reduction=reduction)
    scores = torch.randn(2, 3, requires_grad=True)
    value = loss(scores, [0, 1], mask=[False, False])
    value.backward()
    assert value == 0
    assert not scores.grad.any()
    empty = torch.zeros(0, 3, requires_grad=True)
    value = loss(empty, torch.zeros(0, dtype=torch.int64))
    value.backward()
    assert value == 0


def test_masked_gradients_of_gradients():
    scores = torch.tensor([[1.0, 0.8, 0.3], [0.2, 0.1, 0.0]], dtype=torch.float64)
    loss = FenchelYoungLoss(Choice())

    def function(scores):
        return loss(scores, [1, 0], mask=[False, True])

    assert gradgradcheck(function, scores.requires_grad_())


# forbidden parts


@pytest.mark.parametrize(("regularizer", "margin"), LOSSES)
def test_forbidden_parts(regularizer, margin):
    scores = torch.randn(1, 3, 2, dtype=torch.float64)
    scores[0, 1, 0] = -torch.inf
    scores.requires_grad_()
    loss = FenchelYoungLoss(Chain(), regularizer, margin=margin)
    value = loss(scores, [[0, 1, 1]])
    value.backward()
    assert value.isfinite()
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 1, 0] == 0
    with pytest.raises(DataError, match="gold output of instance 0 has a part with score -inf"):
        loss(scores, [[0, 0, 1]])


# torch.func, types, the module


@pytest.mark.parametrize("regularizer", ["perceptron", "crf", "sparsemap"])
def test_per_instance_gradients(regularizer):
    scores = torch.randn(4, 3, 2, dtype=torch.float64)
    transitions = torch.randn(2, 2, dtype=torch.float64)
    gold = torch.randint(0, 2, (4, 3))
    lengths = torch.tensor([3, 2, 1, 3])
    loss = FenchelYoungLoss(Chain(), regularizer, margin=0.3, reduction="sum")

    def function(scores, transitions, gold, lengths):
        return loss(scores, gold, lengths, transitions=transitions)

    each = vmap(grad(function, argnums=(0, 1)), in_dims=(0, None, 0, 0))
    d_scores, d_transitions = each(scores, transitions, gold, lengths)
    together = grad(function, argnums=(0, 1))(scores, transitions, gold, lengths)
    torch.testing.assert_close(d_scores, together[0])
    torch.testing.assert_close(d_transitions.sum(0), together[1])


def test_hessian_is_the_layers_jacobian():
    scores = torch.tensor([[1.0, 0.8, 0.3]], dtype=torch.float64)
    for temperature in (1.0, 2.0):
        loss = FenchelYoungLoss(Choice(), temperature=temperature)
        found = hessian(lambda s, loss=loss: loss(s, [0]))(scores)[0, :, 0]
        n = 2 if temperature == 1.0 else 3  # options in the support
        expected = torch.zeros(3, 3, dtype=torch.float64)
        expected[:n, :n] = (torch.eye(n) - 1 / n) / temperature
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_types_come_back(dtype):
    scores = torch.randn(2, 3, 2).to(dtype).requires_grad_()
    loss = FenchelYoungLoss(Chain(), margin=1.0)(scores, [[0, 1, 1], [1, 0, 0]])
    loss.backward()
    assert loss.dtype == scores.grad.dtype == dtype


def test_no_grad():
    with torch.no_grad():
        loss = FenchelYoungLoss(Choice())(torch.randn(2, 3, requires_grad=True), [0, 1])
    assert not loss.requires_grad


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_compile_agrees():
    loss = FenchelYoungLoss(Choice(), "crf", margin=1.0)
    gold = torch.tensor([0, 2])

    def function(scores):
        return 2.0 * loss(torch.tanh(scores), gold)

    scores = torch.randn(2, 3, requires_grad=True)
    compiled = torch.compile(function, backend="aot_eager")
    expected, found = (torch.autograd.grad(f(scores), scores)[0] for f in (function, compiled))
    torch.testing.assert_close(found, expected)


def test_training_separates_separable_tags():
    torch.manual_seed(0)
    x, weights = torch.randn(20, 4, 3), torch.randn(3, 2)
    gold = (x @ weights).argmax(2)
    model = torch.nn.Linear(3, 2)
    transitions = torch.nn.Parameter(torch.zeros(2, 2))
    loss = FenchelYoungLoss(Chain(), "sparsemap")
    optimizer = torch.optim.LBFGS([*model.parameters(), transitions], max_iter=100)

    def closure():
        optimizer.zero_grad()
        value = loss(model(x), gold, transitions=transitions)
        value.backward()
        return value

    before = closure()
    optimizer.step(closure)
    assert closure() < 0.1 * before
    with torch.no_grad():
        predicted = Chain().predict(model(x).numpy(), transitions=transitions.numpy())
    assert (predicted == gold.numpy()).mean() > 0.95


def test_repr():
    loss = FenchelYoungLoss(Tree(single_root=True), "crf", margin=1, reduction="sum")
    assert repr(loss) == (
        "FenchelYoungLoss(Tree(single_root=True), 'crf', margin=1.0, temperature=1.0, "
        "reduction='sum')"
    )


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"regularizer": "svm"}, "regularizer: expected one of 'perceptron', 'crf', 'sparsemap'"),
        (
            {"reduction": "average"},
            "reduction: expected one of 'mean', 'sum', 'none', found 'average'",
        ),
        ({"margin": -1.0}, "margin: expected a number from 0 on, and finite, found -1.0"),
        ({"temperature": 0.0}, "temperature: expected a positive number, found 0.0"),
    ],
)
def test_bad_settings(settings, match):
    with pytest.raises(DataError, match=match):
        FenchelYoungLoss(Choice(), **settings)


@pytest.mark.parametrize(
    ("gold", "settings", "match"),
    [
        (None, {}, "gold: expected one output per instance, found None"),
        ([0], {}, "gold: expected one per instance"),
        ([0, 3], {}, "outputs: expected an option from 0 to 2, found 3"),
        ([0, 1], {"mask": [True]}, "mask: expected one per instance"),
        ([0, 1], {"mask": [[True], [True]]}, r"mask: .* shape \(2,\), found shape \(2, 1\)"),
        ([0, 1], {"mask": [[True] * 3] * 2}, r"mask: .* \(2, 3\).* lengths=mask.sum\(1\)"),
        ([0, 1], {"lengths": [3]}, "lengths: expected one per instance"),
    ],
)
def test_bad_input(gold, settings, match):
    with pytest.raises(DataError, match=match):
        FenchelYoungLoss(Choice())(torch.zeros(2, 3), gold, **settings)


def test_a_class_is_no_structure():
    with pytest.raises(DataError, match="found the class Tree: make one"):
        FenchelYoungLoss(Tree)


def test_crf_needs_tractable_marginals():
    with pytest.raises(NotImplementedError, match="matching"):
        FenchelYoungLoss(Matching(), "crf")(torch.zeros(1, 2, 2), [[0, 1]])


# gold points


@pytest.mark.parametrize("name", decision_cases.CASES)
@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_gold_may_be_any_point_of_the_hull(name, margin):
    structure, outputs = decision_cases.CASES[name]
    rows = torch.from_numpy(outputs)
    generator = torch.Generator().manual_seed(3)
    weights = torch.rand(8, len(rows), generator=generator, dtype=torch.float64)
    weights /= weights.sum(1, keepdim=True)
    gold = torch.einsum("bo,o...->b...", weights, rows)
    scores = draw(outputs, seed=2).requires_grad_()
    loss = FenchelYoungLoss(structure, "sparsemap", margin=margin, reduction="none")
    assert gradcheck(lambda s: loss(s, gold), scores)
    point = SparseMAP(structure)(scores).detach()  # the loss is 0 where it predicts the gold
    assert FenchelYoungLoss(structure)(scores, point).item() == pytest.approx(0, abs=1e-9)
    perceptron = FenchelYoungLoss(structure, "perceptron", reduction="none")(scores, gold)
    highest, _ = best(outputs, scores.detach())
    torch.testing.assert_close(
        perceptron.detach(), highest - (scores.detach() * gold).flatten(1).sum(1)
    )


def test_gold_outside_of_the_hull_is_an_error():
    scores = torch.tensor([[3.0, 2.0, 1.0]], dtype=torch.float64)
    with pytest.raises(DataError, match="gold of instance 0 is not in the hull"):
        FenchelYoungLoss(Choice())(scores, torch.tensor([[1.0, 1.0, 1.0]]))
    with pytest.raises(DataError, match="expected zeros and ones of shape"):
        FenchelYoungLoss(Choice())(scores, torch.tensor([[1.0, 1.5, 1.0]]))


def test_several_gold_outputs_with_weights_are_their_mean():
    scores = draw(decision_cases.CASES["tree"][1], batch=2).requires_grad_()
    heads = torch.tensor([[[-1, 0, 1, 1], [-1, 2, 0, 2]], [[-1, 0, 0, 0], [-1, 3, 3, 0]]])
    weights = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
    arcs = torch.zeros(2, 2, 4, 4, dtype=torch.float64)
    for b, g, m in torch.cartesian_prod(*(torch.arange(n) for n in (2, 2, 4))).tolist():
        if m:
            arcs[b, g, m, heads[b, g, m]] = 1
    mean = torch.einsum("bg,bg...->b...", weights.double() / weights.sum(1, keepdim=True), arcs)
    for regularizer in ("sparsemap", "crf", "perceptron"):
        loss = FenchelYoungLoss(Tree(), regularizer, reduction="none")
        torch.testing.assert_close(loss(scores, heads, gold_weights=weights), loss(scores, mean))
    single = FenchelYoungLoss(Tree())(scores[1], heads[1, 0])
    torch.testing.assert_close(
        FenchelYoungLoss(Tree())(scores[1], heads[1], gold_weights=weights[1]), single
    )


def test_weights_count_additional_parts_too():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(2, 3, 2, generator=generator, dtype=torch.float64)
    transitions = torch.randn(2, 2, generator=generator, dtype=torch.float64).requires_grad_()
    tags = torch.tensor([[[0, 1, 1], [1, 1, 0]], [[0, 0, 0], [1, 0, 1]]])
    weights = torch.tensor([[1.0, 1.0], [1.0, 3.0]], dtype=torch.float64)
    loss = FenchelYoungLoss(Chain(), "perceptron", reduction="none")
    mixed = loss(scores, tags, gold_weights=weights, transitions=transitions)
    single = torch.stack([loss(scores, tags[:, g], transitions=transitions) for g in (0, 1)], 1)
    torch.testing.assert_close(mixed, (single * weights / weights.sum(1, keepdim=True)).sum(1))
    (gradient,) = torch.autograd.grad(mixed.sum(), transitions)
    (expected,) = torch.autograd.grad(
        (single * weights / weights.sum(1, keepdim=True)).sum(), transitions
    )
    torch.testing.assert_close(gradient, expected)
    with pytest.raises(DataError, match="gold_weights: expected numbers from 0 up"):
        loss(scores, tags, gold_weights=0 * weights, transitions=transitions)
    with pytest.raises(DataError, match="gold_weights: expected a weight for each"):
        loss(scores, tags, gold_weights=weights[:, :1], transitions=transitions)
