"""Derivatives of the argmax by solving once more: the solver stays a black box.

A loss with gradient g at the output y(θ) = argmax θ·a has a derivative by θ that is zero almost
everywhere. Each of these layers puts an informative one in its place:

    black box (Vlastelica et al. 2020)      (y(θ) − y(θ − λ g)) / λ
    identity (Sahoo et al. 2023)            g
    implicit MLE (Niepert et al. 2021)      E [y(θ + Z) − y(θ − λ g + Z)] / λ
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from didyma.errors import DataError
from didyma.nn.argmax import ArgmaxModule, batched
from didyma.structure import Structure
from didyma.structures.batches import check_positive

GUMBEL_TERMS = 10  # of the sum of gammas that a Gumbel variable is
ADAPTATION, DECAY = 1e-3, 0.9  # step of α, and memory of the share of gradients that are not zero


class BlackboxArgmax(ArgmaxModule):
    """The argmax, 0/1 in the shape of the scores, with the derivative of an interpolation.

    The derivative is that of g·y' + (θ·y(θ) − θ·y') / λ with y' = y(θ − λ g), a piecewise affine
    function of θ in the place of the piecewise constant loss. A step costs two argmaxes.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> scores = torch.tensor([1.0, 0.8, 0.0], requires_grad=True)
    >>> parts = BlackboxArgmax(Choice(), interpolation=1.0)(scores)
    >>> (parts * torch.tensor([1.0, 0, 0])).sum().backward()
    >>> scores.grad
    tensor([ 1., -1.,  0.])

    Args:
        structure: of `didyma.structures`, or your own `didyma.Structure`.
        interpolation: λ. Large values look farther for another output.
        n_jobs: threads over the batch; None means every core.
    """

    def __init__(
        self, structure: Structure, interpolation: float = 10.0, n_jobs: int | None = None
    ) -> None:
        super().__init__(structure, n_jobs)
        self.interpolation = check_positive(interpolation, "interpolation")

    def forward(self, scores: Tensor, lengths: Any = None, **additional: Any) -> Tensor:
        """Parts of the best outputs."""
        self._refuse_gradients(additional)
        parts: Tensor = _Blackbox.apply(scores, self, lengths, additional)
        return parts


class _Blackbox(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, layer, lengths, additional):  # type: ignore[no-untyped-def]
        parts = layer._parts(scores, lengths, additional)
        ctx.arguments = layer, lengths, additional
        ctx.save_for_backward(scores, parts)
        return parts

    @staticmethod
    @once_differentiable
    def backward(ctx, d_parts):  # type: ignore[no-untyped-def]
        layer, lengths, additional = ctx.arguments
        scores, parts = ctx.saved_tensors
        moved = layer._parts(scores - layer.interpolation * d_parts, lengths, additional)
        return (parts - moved) / layer.interpolation, None, None, None


class IdentityArgmax(ArgmaxModule):
    """The argmax, with the derivative of the identity: dL/dθ = dL/dy.

    Scores are centred and divided by their norm before, since argmaxes ignore these two and the
    identity does not: without it scores may grow without bound.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> scores = torch.tensor([1.0, 0.8, 0.0], requires_grad=True)
    >>> layer = IdentityArgmax(Choice(), center=False, normalize=False)
    >>> (layer(scores) * torch.tensor([1.0, 0, 0])).sum().backward()
    >>> scores.grad
    tensor([1., 0., 0.])

    Args:
        structure: of `didyma.structures`, or your own `didyma.Structure`.
        center: subtract the mean of the scores; only where all outputs have equally many parts does
            this leave the argmax as it is.
        normalize: divide by the Euclidean norm.
        n_jobs: threads over the batch; None means every core.
    """

    def __init__(
        self,
        structure: Structure,
        center: bool = True,
        normalize: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure, n_jobs)
        self.center, self.normalize = center, normalize

    def forward(self, scores: Tensor, lengths: Any = None, **additional: Any) -> Tensor:
        """Parts of the best outputs of the scores as they are given."""
        self._refuse_gradients(additional)
        parts = self._parts(scores, lengths, additional)
        axes = tuple(range(-self.structure.ndim, 0))
        allowed = scores.isfinite()
        projected = torch.where(allowed, scores, 0.0)
        if self.center:
            mean = projected.sum(axes, keepdim=True) / allowed.sum(axes, keepdim=True).clamp(min=1)
            projected = torch.where(allowed, projected - mean, 0.0)
        if self.normalize:
            norm = projected.square().sum(axes, keepdim=True).sqrt()
            projected = projected / norm.clamp(min=torch.finfo(scores.dtype).tiny)
        return parts + projected - projected.detach()


class ImplicitMLE(ArgmaxModule):
    """The mean argmax of perturbed scores, with the derivative of implicit maximum likelihood.

    The draws of the noise serve both sides of the difference. ``adaptive`` (Minervini et al. 2023)
    takes λ = α ‖θ‖ / ‖g‖ and moves α until a share ``target`` of the instances has a derivative
    that is not zero.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> layer = ImplicitMLE(Choice(), n_samples=100, generator=torch.Generator().manual_seed(0))
    >>> scores = torch.tensor([[1.0, 0.8, 0.0]], requires_grad=True)
    >>> layer(scores)[0, 0].backward()
    >>> bool(scores.grad[0, 0] > 0 > scores.grad[0, 1])
    True

    Args:
        structure: of `didyma.structures`, or your own `didyma.Structure`.
        interpolation: λ, where it is not adapted.
        n_samples: draws of the noise; each costs two argmaxes.
        scale: of the noise, which is a sum of gammas: summed over ``n_parts`` parts it is Gumbel.
        n_parts: parts of an output; by default those of the first one that is found.
        adaptive: adapt λ.
        target: share of instances that should have a derivative.
        generator: of the noise, for results that can be repeated.
        n_jobs: threads over batch and draws; None means every core.
    """

    alpha: Tensor
    share: Tensor

    def __init__(
        self,
        structure: Structure,
        interpolation: float = 10.0,
        n_samples: int = 1,
        *,
        scale: float = 1.0,
        n_parts: int | None = None,
        adaptive: bool = False,
        target: float = 0.5,
        generator: torch.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure, n_jobs)
        self.interpolation = check_positive(interpolation, "interpolation")
        self.scale = check_positive(scale, "scale")
        if n_samples < 1:
            raise DataError(f"expected at least one draw, found {n_samples}", field="n_samples")
        if not 0.0 < target < 1.0:
            raise DataError(f"expected a share between 0 and 1, found {target}", field="target")
        self.n_samples, self.n_parts, self.generator = n_samples, n_parts, generator
        self.adaptive, self.target = adaptive, target
        self.register_buffer("alpha", torch.ones((), dtype=torch.float64))
        self.register_buffer("share", torch.full((), target, dtype=torch.float64))

    def forward(self, scores: Tensor, lengths: Any = None, **additional: Any) -> Tensor:
        """Mean parts over all draws."""
        self._refuse_gradients(additional)
        batch, lengths, additional = batched(self.structure, scores, lengths, additional)
        parts: Tensor = _ImplicitMLE.apply(batch, self, lengths, additional)
        return parts.reshape(scores.shape)

    def _noise(self, scores: Tensor, n_parts: int) -> Tensor:
        """Σ over i of Gamma(1/k, k/i) less log s, over k: k of them sum to Gumbel as s grows."""
        shape = (self.n_samples, *scores.shape)
        k = float(max(n_parts, 1))
        total = torch.zeros(shape, dtype=torch.float64)
        for i in range(1, GUMBEL_TERMS + 1):
            gamma = torch._standard_gamma(
                torch.full(shape, 1 / k, dtype=torch.float64), generator=self.generator
            )
            total += gamma * (k / i)
        noise = (total - torch.tensor(float(GUMBEL_TERMS)).log()) / k
        return (self.scale * noise).to(scores.device, scores.dtype)

    def _solve(self, perturbed: Tensor, lengths: Any, additional: Any) -> Tensor:
        with torch.no_grad():
            return self._maximise_draws(perturbed.detach(), lengths, additional)[1]

    def _adapt(self, scores: Tensor, d_parts: Tensor) -> Tensor:
        """λ of each instance, with axes to multiply the scores by."""
        axes = tuple(range(1, scores.ndim))
        if not self.adaptive:
            return torch.full_like(scores.sum(axes, keepdim=True), self.interpolation)
        norms = [
            torch.where(t.isfinite(), t, 0.0).square().sum(axes, keepdim=True).sqrt()
            for t in (scores, d_parts)
        ]
        quotient = norms[0] / norms[1].clamp(min=torch.finfo(scores.dtype).tiny)
        return torch.where(norms[1] > 0, self.alpha.to(scores) * quotient, 0.0)

    def _observe(self, d_scores: Tensor) -> None:
        """Move α towards the target share of derivatives that are not zero."""
        share = (d_scores.flatten(1) != 0).any(1).double().mean().cpu()
        self.share.mul_(DECAY).add_((1 - DECAY) * share.to(self.share.device))
        step = ADAPTATION if self.share < self.target else -ADAPTATION
        self.alpha.add_(step).clamp_(min=0.0)

    def extra_repr(self) -> str:
        """The structure, λ or the share that it aims at, and the noise."""
        step = f"target={self.target}" if self.adaptive else f"interpolation={self.interpolation}"
        return f"{self.structure!r}, {step}, n_samples={self.n_samples}, scale={self.scale}"


class _ImplicitMLE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, layer, lengths, additional):  # type: ignore[no-untyped-def]
        n_parts = layer.n_parts
        if n_parts is None:
            n_parts = int(layer._parts(scores, lengths, additional)[0].sum())
            layer.n_parts = n_parts
        perturbed = scores + layer._noise(scores, n_parts)
        parts = layer._solve(perturbed, lengths, additional)
        ctx.arguments = layer, lengths, additional
        ctx.save_for_backward(scores, perturbed, parts)
        return parts.mean(0)

    @staticmethod
    @once_differentiable
    def backward(ctx, d_parts):  # type: ignore[no-untyped-def]
        layer, lengths, additional = ctx.arguments
        scores, perturbed, parts = ctx.saved_tensors
        step = layer._adapt(scores, d_parts)
        moved = layer._solve(perturbed - step * d_parts, lengths, additional)
        d_scores = torch.where(step > 0, (parts - moved).mean(0) / step, 0.0)
        if layer.adaptive:
            layer._observe(d_scores)
        return d_scores, None, None, None
