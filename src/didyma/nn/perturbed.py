"""Perturbed optimisers: the argmax made smooth by noise on the scores (Berthet et al. 2020).

    F(θ) = E max over outputs of (θ + ε Z)·a          y(θ) = ∇F(θ) = E argmax(θ + ε Z)

F is convex. With noise of density ∝ exp(−ν(z)) the Jacobian of y is E[a ∇ν(Z)'] / ε, where a is the
argmax of each draw: no derivative of a solver is asked for, and any argmax will do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from didyma.errors import DataError, check_choice
from didyma.nn.argmax import ArgmaxModule, as_scores, batched, dot
from didyma.nn.losses import REDUCTIONS, reduce
from didyma.structure import Structure
from didyma.structures.batches import check_positive


@dataclass(frozen=True)
class Gaussian:
    """Z ~ N(0, 1), independent for each score; ∇ν(z) = z."""

    def draw(
        self, shape: torch.Size, generator: torch.Generator | None, antithetic: bool
    ) -> Tensor:
        """Noise of a shape whose first axis counts draws; the second half may mirror the first."""
        if not antithetic:
            return torch.randn(shape, generator=generator, dtype=torch.float64)
        half = torch.randn((shape[0] // 2, *shape[1:]), generator=generator, dtype=torch.float64)
        return torch.cat([half, -half])

    def slope(self, z: Tensor) -> Tensor:
        """∇ν(z)."""
        return z


@dataclass(frozen=True)
class Gumbel:
    """Z = −log(−log U) less its mean; ∇ν(z) = 1 − exp(−z − γ)."""

    mean = 0.5772156649015329  # Euler's γ

    def draw(
        self, shape: torch.Size, generator: torch.Generator | None, antithetic: bool
    ) -> Tensor:
        """Noise; a mirrored draw has 1 − U in the place of U."""
        count = shape[0] // 2 if antithetic else shape[0]
        u = torch.rand((count, *shape[1:]), generator=generator, dtype=torch.float64)
        u = u.clamp(torch.finfo(torch.float64).tiny, 1 - torch.finfo(torch.float64).eps)
        u = torch.cat([u, 1 - u]) if antithetic else u
        return -(-u.log()).log() - self.mean

    def slope(self, z: Tensor) -> Tensor:
        """∇ν(z)."""
        return 1 - (-z - self.mean).exp()


NOISES: dict[str, Gaussian | Gumbel] = {"gaussian": Gaussian(), "gumbel": Gumbel()}


class PerturbedModule(ArgmaxModule):
    """What layer and loss share: the noise, and the argmax of every draw."""

    def __init__(
        self,
        structure: Structure,
        epsilon: float,
        n_samples: int,
        *,
        noise: str = "gaussian",
        multiplicative: bool = False,
        antithetic: bool = False,
        generator: torch.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure, n_jobs)
        self.epsilon = check_positive(epsilon, "epsilon")
        check_choice(noise, NOISES, "noise")
        if multiplicative and noise != "gaussian":
            raise DataError("multiplicative noise is log-normal: expected gaussian", field="noise")
        if n_samples < 1 or (antithetic and n_samples % 2):
            expected = "an even number of draws" if antithetic else "at least one draw"
            raise DataError(f"expected {expected}, found {n_samples}", field="n_samples")
        self.n_samples, self.noise, self.multiplicative = n_samples, noise, multiplicative
        self.antithetic, self.generator = antithetic, generator

    def _draw(self, scores: Tensor) -> Tensor:
        """Noise of shape (n_samples, B, …), in the type and on the device of the scores."""
        shape = torch.Size((self.n_samples, *scores.shape))
        z = NOISES[self.noise].draw(shape, self.generator, self.antithetic)
        return z.to(scores.device, scores.dtype)

    def _perturb(self, scores: Tensor, z: Tensor) -> Tensor:
        """θ + ε Z, or θ ⊙ exp(ε Z − ε²/2), which has the same mean and the signs of θ."""
        if self.multiplicative:
            return scores * (self.epsilon * z - self.epsilon**2 / 2).exp()
        return scores + self.epsilon * z

    def extra_repr(self) -> str:
        """The structure and the noise."""
        return (
            f"{self.structure!r}, epsilon={self.epsilon}, n_samples={self.n_samples}, "
            f"noise={self.noise!r}, multiplicative={self.multiplicative}"
        )


class PerturbedArgmax(PerturbedModule):
    """The layer: scores (B, …) to the mean of the argmaxes of perturbed scores, of the same shape.

    Its derivative is estimated from the same draws. ``control_variate`` subtracts the argmax of the
    unperturbed scores from that of each draw, which leaves the expectation as it is and takes away
    variance; ``antithetic`` draws come in pairs Z, −Z.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> generator = torch.Generator().manual_seed(0)
    >>> layer = PerturbedArgmax(Choice(), epsilon=0.5, n_samples=1000, generator=generator)
    >>> scores = torch.tensor([1.0, 0.8, 0.0], requires_grad=True)
    >>> probabilities = layer(scores)
    >>> probabilities[0].backward()
    >>> bool(probabilities[0] > probabilities[1] > probabilities[2]), bool(scores.grad[0] > 0)
    (True, True)

    Args:
        structure: of `didyma.structures`, or your own `didyma.Structure`.
        epsilon: scale ε of the noise.
        n_samples: draws, each an argmax; an even number if antithetic.
        noise: "gaussian" or "gumbel".
        multiplicative: scores times exp(ε Z − ε²/2), which keeps their signs, as solvers that ask
            for positive costs need (Dalle et al. 2022).
        antithetic: draws in mirrored pairs.
        control_variate: subtract what the unperturbed scores give.
        generator: of the noise, for results that can be repeated.
        n_jobs: threads over the batch and the draws; None means every core.
    """

    def __init__(
        self,
        structure: Structure,
        epsilon: float = 1.0,
        n_samples: int = 10,
        *,
        control_variate: bool = True,
        **noise: Any,
    ) -> None:
        super().__init__(structure, epsilon, n_samples, **noise)
        self.control_variate = control_variate

    def forward(self, scores: Tensor, lengths: Any = None, **additional: Any) -> Tensor:
        """Mean parts over all draws."""
        self._refuse_gradients(additional)
        batch, lengths, additional = batched(self.structure, scores, lengths, additional)
        parts: Tensor = _PerturbedMean.apply(batch, self, lengths, additional)
        return parts.reshape(scores.shape)


class _PerturbedMean(torch.autograd.Function):
    """The mean argmax over draws, and the estimate of its derivative from the same draws."""

    @staticmethod
    def forward(ctx, scores, layer, lengths, additional):  # type: ignore[no-untyped-def]
        z = layer._draw(scores)
        _, parts = layer._maximise_draws(layer._perturb(scores, z), lengths, additional)
        ctx.layer = layer
        base = layer._parts(scores, lengths, additional) if layer.control_variate else None
        ctx.save_for_backward(scores, z, parts, base)
        return parts.mean(0)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_mean):  # type: ignore[no-untyped-def]
        scores, z, parts, base = ctx.saved_tensors
        layer = ctx.layer
        if base is not None:
            parts = parts - base
        along = (parts * d_mean).flatten(2).sum(2)  # of each draw, (n_samples, B)
        along = along.reshape(*along.shape, *[1] * (scores.ndim - 1))
        d_scores = (along * NOISES[layer.noise].slope(z)).mean(0) / layer.epsilon
        if layer.multiplicative:  # θ Z' = exp(log θ + ε Z − …): by the chain rule, 1/θ
            d_scores = torch.where(scores == 0, 0.0, d_scores / scores)
        return d_scores, None, None, None


class PerturbedLoss(PerturbedModule):
    """The Fenchel-Young loss of a perturbed optimiser: F(θ) − θ·g, estimated from some draws.

    Its gradient is the mean argmax of the draws less the gold g. Multiplicative noise M has
    F(θ) = E max (θ ⊙ M)·a, with the gradient E[M ⊙ a] − g. What is left out is a constant, the
    regulariser at g, so that values may be negative.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> generator = torch.Generator().manual_seed(0)
    >>> loss = PerturbedLoss(Choice(), epsilon=0.5, n_samples=1000, generator=generator)
    >>> scores = torch.tensor([[1.0, 0.8, 0.0]], requires_grad=True)
    >>> loss(scores, torch.tensor([[0.0, 1.0, 0.0]])).backward()
    >>> bool(scores.grad[0, 0] > 0 > scores.grad[0, 1])
    True

    Args:
        reduction: "mean", "sum" or "none".
        structure, epsilon, n_samples, noise, multiplicative, antithetic, generator, n_jobs: as for
            `PerturbedArgmax`.
    """

    def __init__(
        self,
        structure: Structure,
        epsilon: float = 1.0,
        n_samples: int = 10,
        *,
        reduction: str = "mean",
        **noise: Any,
    ) -> None:
        super().__init__(structure, epsilon, n_samples, **noise)
        check_choice(reduction, REDUCTIONS, "reduction")
        self.reduction = reduction

    def forward(
        self, scores: Tensor, gold: Tensor, lengths: Any = None, **additional: Any
    ) -> Tensor:
        """The loss; ``gold`` has the shape of the scores: 0/1 parts, or any point of the hull."""
        batch, lengths, additional = batched(self.structure, scores, lengths, additional)
        target = as_scores(gold, scores, "gold", "scores").reshape(batch.shape)
        perturbed = self._perturb(batch, self._draw(batch))
        value, _ = self._maximise_draws(perturbed, lengths, additional)
        return reduce(value.mean(0) - dot(batch, target), self.reduction)
