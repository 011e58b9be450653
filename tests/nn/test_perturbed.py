"""Perturbed optimisers: unbiased within error bars, and exact derivatives of what is drawn."""

import pytest
import torch

from didyma import DataError
from didyma.nn import PerturbedArgmax, PerturbedLoss
from didyma.structures import Chain, Choice
from tests.nn.decision_cases import CASES, best, draw

NAMES = list(CASES)
EULER = 0.5772156649015329


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("multiplicative", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_loss_is_the_mean_maximum_of_its_draws(name, multiplicative):
    structure, outputs = CASES[name]
    scores, gold = draw(outputs).requires_grad_(), best(outputs, draw(outputs, seed=5))[1]
    options = {"epsilon": 0.7, "n_samples": 6, "multiplicative": multiplicative}
    loss = PerturbedLoss(structure, generator=seeded(), reduction="none", **options)
    values = loss(scores, gold)
    z = torch.randn(6, *scores.shape, generator=seeded(), dtype=torch.float64)
    factor = (0.7 * z - 0.245).exp() if multiplicative else torch.ones_like(z)
    perturbed = scores.detach() * factor if multiplicative else scores.detach() + 0.7 * z
    highest, maximisers = best(outputs, perturbed.flatten(0, 1))
    score = (scores.detach() * gold).flatten(1).sum(1)
    torch.testing.assert_close(values.detach(), highest.reshape(6, 8).mean(0) - score)
    values.sum().backward()
    expected = (factor * maximisers.reshape(perturbed.shape)).mean(0) - gold
    torch.testing.assert_close(scores.grad, expected)


@pytest.mark.parametrize("noise", ["gaussian", "gumbel"])
@pytest.mark.parametrize("name", NAMES)
def test_layer_is_the_mean_argmax(name, noise):
    structure, outputs = CASES[name]
    scores = draw(outputs)
    layer = PerturbedArgmax(structure, 0.5, 40, noise=noise, generator=seeded())
    mean = layer(scores)
    torch.testing.assert_close(layer(scores[0]).shape, scores[0].shape)
    assert mean.min() >= 0
    assert mean.max() <= 1
    sums = mean.flatten(1).sum(1)
    sizes = outputs.reshape(len(outputs), -1).sum(1)
    assert (sums >= sizes.min() - 1e-9).all()
    assert (sums <= sizes.max() + 1e-9).all()


def test_gumbel_noise_on_a_choice_is_softmax():
    scores = torch.tensor([[1.0, 0.3, -0.5]], dtype=torch.float64, requires_grad=True)
    n = 200_000
    layer = PerturbedArgmax(Choice(), 0.8, n, noise="gumbel", generator=seeded())
    mean = layer(scores)
    p = (scores.detach() / 0.8).softmax(1)
    assert (mean.detach() - p).abs().max() < 4 * (0.25 / n) ** 0.5
    (gradient,) = torch.autograd.grad(mean[0, 0], scores)
    exact = p[0, 0] * ((torch.arange(3) == 0).double() - p) / 0.8
    torch.testing.assert_close(gradient, exact, atol=0.03, rtol=0)
    loss = PerturbedLoss(Choice(), 0.8, n, noise="gumbel", generator=seeded(1))
    value = loss(scores.detach(), torch.zeros_like(scores))
    expected = 0.8 * (scores.detach() / 0.8).logsumexp(1)
    torch.testing.assert_close(value, expected.mean(), atol=0.01, rtol=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"control_variate": False},
        {"antithetic": True},
        {"noise": "gumbel"},
        {"noise": "gumbel", "antithetic": True},
        {"multiplicative": True},
    ],
    ids=str,
)
def test_derivative_is_unbiased(options):
    """Against differences of the mean over the same noise, by quadrature over many draws."""
    scores = torch.tensor([0.6, 0.2, -0.4], dtype=torch.float64)
    direction = torch.tensor([0.5, -1.0, 0.3], dtype=torch.float64)
    n, runs, step = 2000, 60, 0.05
    estimates = []
    for seed in range(runs):
        at = scores.clone().requires_grad_()
        layer = PerturbedArgmax(Choice(), 1.0, n, generator=seeded(seed), **options)
        (gradient,) = torch.autograd.grad(layer(at) @ direction, at)
        estimates.append(gradient)
    estimates = torch.stack(estimates)
    error = estimates.std(0) / runs**0.5
    plain = {k: v for k, v in options.items() if k in ("noise", "multiplicative")}
    many = 400_000
    for k in range(3):
        shift = step * torch.eye(3, dtype=torch.float64)[k]
        values = [
            PerturbedArgmax(Choice(), 1.0, many, generator=seeded(99), **plain)(point) @ direction
            for point in (scores + shift, scores - shift)
        ]
        slope = (values[0] - values[1]) / (2 * step)
        assert abs(slope - estimates.mean(0)[k]) < 5 * error[k] + 0.03


def test_antithetic_draws_and_control_variates_reduce_variance():
    scores = torch.tensor([2.0, 0.2, -0.4], dtype=torch.float64)

    def spread(**options):
        gradients = []
        for seed in range(40):
            at = scores.clone().requires_grad_()
            layer = PerturbedArgmax(Choice(), 0.5, 20, generator=seeded(seed), **options)
            gradients.append(torch.autograd.grad(layer(at)[0], at)[0])
        return torch.stack(gradients).var(0).sum()

    plain = spread(control_variate=False)
    assert spread() < 0.7 * plain
    assert spread(control_variate=False, antithetic=True) < 0.9 * plain


def test_multiplicative_noise_keeps_signs_and_forbidden_parts():
    seen = []

    class Watched(Choice):
        def lay_out(self, scores, lengths=None, **additional):
            seen.append(scores)
            return super().lay_out(scores, lengths, **additional)

    scores = torch.tensor([[0.5, -0.3, -torch.inf]], dtype=torch.float64, requires_grad=True)
    layer = PerturbedArgmax(Watched(), 2.0, 50, multiplicative=True, generator=seeded())
    layer(scores)[0, 0].backward()
    assert all((s[:, 0] > 0).all() and (s[:, 1] < 0).all() for s in seen)
    assert scores.grad.isfinite().all()
    assert scores.grad[0, 2] == 0


def test_additional_scores_are_shared_or_repeated():
    scores = torch.randn(2, 3, 2, generator=seeded(), dtype=torch.float64)
    tied = torch.randn(2, 2, generator=seeded(1), dtype=torch.float64)
    loss = PerturbedLoss(Chain(), 0.5, 8, generator=seeded(2))
    gold = torch.zeros_like(scores)
    values = [
        PerturbedLoss(Chain(), 0.5, 8, generator=seeded(2))(
            scores, gold, lengths=[3, 2], transitions=transitions
        )
        for transitions in (tied, tied.expand(2, 2, 2, 2))
    ]
    assert loss(scores, gold, lengths=[3, 2], transitions=tied) == values[0]
    transitions = tied.clone().requires_grad_()
    loss(scores, gold, transitions=transitions).backward()
    assert transitions.grad.abs().sum() > 0
    with pytest.raises(DataError, match="transitions: expected scores that need no gradient"):
        PerturbedArgmax(Chain())(scores, transitions=transitions)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": 3, "antithetic": True}, "n_samples"),
        ({"noise": "cauchy"}, "noise"),
        ({"noise": "gumbel", "multiplicative": True}, "noise"),
    ],
)
def test_bad_options_are_named(options, field):
    with pytest.raises(DataError) as error:
        PerturbedArgmax(Choice(), **options)
    assert error.value.field == field
