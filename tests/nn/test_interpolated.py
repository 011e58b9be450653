"""Black-box, identity and implicit-MLE derivatives, against the formulas over all outputs."""

import pytest
import torch

from didyma import DataError
from didyma.nn import BlackboxArgmax, IdentityArgmax, ImplicitMLE
from didyma.structures import Choice
from tests.nn.decision_cases import CASES, best, draw

NAMES = list(CASES)


@pytest.mark.parametrize("name", NAMES)
def test_blackbox_interpolates(name):
    structure, outputs = CASES[name]
    scores, g = draw(outputs).requires_grad_(), draw(outputs, seed=1)
    parts = BlackboxArgmax(structure, 2.0)(scores)
    torch.testing.assert_close(parts.detach(), best(outputs, scores.detach())[1])
    (gradient,) = torch.autograd.grad((parts * g).sum(), scores)
    moved = best(outputs, scores.detach() - 2.0 * g)[1]
    torch.testing.assert_close(gradient, (parts.detach() - moved) / 2.0)
    assert gradient.abs().max() > 0

    def interpolated(theta):  # whose exact derivative it is
        y, other = best(outputs, theta)[1], best(outputs, theta - 2.0 * g)[1]
        return (g * other).sum() + ((theta * y).sum() - (theta * other).sum()) / 2.0

    along = draw(outputs, seed=7)
    step = 1e-6
    ahead, behind = (interpolated(scores.detach() + s * along) for s in (step, -step))
    assert ((ahead - behind) / (2 * step)).item() == pytest.approx(
        (gradient * along).sum().item(), abs=1e-6
    )


@pytest.mark.parametrize("name", NAMES)
def test_identity_passes_gradients_of_projected_scores(name):
    structure, outputs = CASES[name]
    scores, g = draw(outputs).requires_grad_(), draw(outputs, seed=1)
    plain = IdentityArgmax(structure, center=False, normalize=False)(scores)
    torch.testing.assert_close(plain.detach(), best(outputs, scores.detach())[1])
    (gradient,) = torch.autograd.grad((plain * g).sum(), scores)
    torch.testing.assert_close(gradient, g)
    (projected,) = torch.autograd.grad((IdentityArgmax(structure)(scores) * g).sum(), scores)
    flat = projected.flatten(1)  # orthogonal to what the argmax ignores
    torch.testing.assert_close(flat.sum(1), torch.zeros(8, dtype=torch.float64), atol=1e-9, rtol=0)
    centred = scores.detach().flatten(1) - scores.detach().flatten(1).mean(1, keepdim=True)
    torch.testing.assert_close(
        (flat * centred).sum(1), torch.zeros(8, dtype=torch.float64), atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("name", NAMES)
def test_implicit_mle_differences_outputs_of_the_same_noise(name):
    structure, outputs = CASES[name]
    scores, g = draw(outputs).requires_grad_(), draw(outputs, seed=1)
    layer = ImplicitMLE(structure, 3.0, 5, generator=torch.Generator().manual_seed(0))
    mean = layer(scores)
    (gradient,) = torch.autograd.grad((mean * g).sum(), scores)
    again = ImplicitMLE(
        structure, 3.0, 5, n_parts=layer.n_parts, generator=torch.Generator().manual_seed(0)
    )
    noise = again._noise(scores.detach(), layer.n_parts)
    both = [
        best(outputs, (point + noise).flatten(0, 1))[1].reshape(noise.shape).mean(0)
        for point in (scores.detach(), scores.detach() - 3.0 * g)
    ]
    torch.testing.assert_close(mean.detach(), both[0])
    torch.testing.assert_close(gradient, (both[0] - both[1]) / 3.0)


def test_sum_of_gammas_is_nearly_gumbel():
    layer = ImplicitMLE(Choice(), n_samples=200_000, generator=torch.Generator().manual_seed(0))
    noise = layer._noise(torch.zeros(1, 4, dtype=torch.float64), 4).squeeze(1).sum(1)
    assert noise.mean().item() == pytest.approx(0.577, abs=0.1)
    assert noise.var().item() == pytest.approx(1.645, abs=0.15)


def test_adaptive_step_reaches_its_target():
    generator = torch.Generator().manual_seed(0)
    layer = ImplicitMLE(Choice(), adaptive=True, target=0.5, generator=generator)
    shares = []
    for _ in range(1500):
        scores = torch.randn(16, 5, generator=generator).requires_grad_()
        weights = torch.randn(16, 5, generator=generator)
        (gradient,) = torch.autograd.grad((layer(scores) * weights).sum(), scores)
        shares.append((gradient != 0).any(1).float().mean().item())
    assert layer.alpha > 0
    assert sum(shares[-300:]) / 300 == pytest.approx(0.5, abs=0.1)
    restored = ImplicitMLE(Choice(), adaptive=True)
    restored.load_state_dict(layer.state_dict())
    assert restored.alpha == layer.alpha


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: BlackboxArgmax(Choice(), 0.0), "interpolation"),
        (lambda: ImplicitMLE(Choice(), n_samples=0), "n_samples"),
        (lambda: ImplicitMLE(Choice(), target=1.0), "target"),
        (lambda: ImplicitMLE(Choice(), scale=float("nan")), "scale"),
    ],
)
def test_bad_options_are_named(make, field):
    with pytest.raises(DataError) as error:
        make()
    assert error.value.field == field
