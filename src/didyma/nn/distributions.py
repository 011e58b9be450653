"""A structure as a distribution of torch: p(output) ∝ exp(score), with gradients."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from didyma.errors import DataError
from didyma.nn.autograd import infer, to_numpy
from didyma.nn.objective import ENTROPY, Objective
from didyma.structures.compiled import CompiledStructure


class StructureDistribution(Distribution):
    """p(output) = exp(score(output) − log_partition) over the outputs of a structure.

    Scores are (B, …) or those of one instance; outputs (B, …) have the form that the structure
    predicts: tags, heads, states. Everything but samples, modes and the outputs of `top_k` has
    exact first and second derivatives for scores and additional scores.

    >>> from didyma.structures import Chain
    >>> scores = torch.tensor([[1.0, 0.0], [0.5, 0.0]], requires_grad=True)
    >>> chain = StructureDistribution(Chain(), scores, transitions=torch.eye(2))
    >>> chain.mode, chain.log_prob(chain.mode).exp()
    (tensor([0, 0]), tensor(0.6323, grad_fn=<ExpBackward0>))
    >>> chain.entropy().backward()
    >>> scores.grad
    tensor([[-0.2480,  0.2480],
            [-0.2555,  0.2555]])

    Args:
        structure: of `didyma.structures`; sums over its outputs must be tractable, which those over
            matchings and forests are not.
        scores: −inf forbids a part. Scores of any type and device are summed over on the CPU in
            float64; results come back in their type, on their device.
        lengths: the instances' own sizes, where they are padded.
        additional: scores of additional parts, such as ``transitions`` of a sequence.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    support = constraints.dependent
    has_enumerate_support = False

    def __init__(
        self,
        structure: CompiledStructure,
        scores: Tensor,
        lengths: Any = None,
        **additional: Any,
    ) -> None:
        if not isinstance(structure, CompiledStructure):
            raise DataError(
                f"expected one of didyma.structures, or a plan, found {structure!r}: an argmax "
                "alone gives no sums over outputs",
                field="structure",
            )
        total, marginals, extra_marginals, inference = infer(
            Objective(structure, regularizer=ENTROPY), scores, lengths, None, None, additional
        )
        self.structure, self.scores = structure, scores
        assert inference.layout is not None
        self._layout = inference.layout
        self._lengths = to_numpy(lengths)
        self._additional = {name: t for name, t in additional.items() if t is not None}
        self._total, self._u, self._v = total, marginals, extra_marginals
        nothing = np.full((1, self._layout.n_parts), -1, np.int32)
        event = structure.decode(nothing, self._layout).shape[1:]
        batch = scores.shape[: scores.ndim - structure.ndim]
        super().__init__(batch, torch.Size(event), validate_args=False)

    @property
    def log_partition(self) -> Tensor:
        """Logarithm of the sum of exp(score) over all outputs."""
        return self._returned(self._total)

    @property
    def marginals(self) -> Tensor:
        """Probability of each part, in the shape of the scores."""
        return self._returned(self._u)

    @property
    def additional_marginals(self) -> dict[str, Tensor]:
        """Expected number of each additional part that was given a score, by name."""
        return {
            name: self._returned(place.of(self._v).reshape(*self.batch_shape, *place.shape))
            for name, place in self._layout.additional.items()
        }

    @property
    def mode(self) -> Tensor:
        """The most probable output."""
        best = self.structure.predict(*self._arguments(), **self._arrays())
        return torch.from_numpy(np.asarray(best)).to(self.scores.device)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable outputs (k, B, …), best first, and their log probabilities (k, B).

        Where fewer outputs are possible the rest is padding, with log probability −∞.
        """
        scores, *lengths = self._arguments()
        outputs, totals = self.structure.k_best(scores, k, *lengths, **self._arrays())
        if self.batch_shape:
            outputs, totals = outputs.swapaxes(0, 1), totals.T
        possible = totals > -np.inf
        shape = possible.shape + (1,) * len(self.event_shape)
        possible_outputs = torch.from_numpy(np.where(possible.reshape(shape), outputs, outputs[:1]))
        log_prob = self.log_prob(possible_outputs).masked_fill(
            torch.from_numpy(~possible).to(self.scores.device), -torch.inf
        )
        return torch.from_numpy(np.ascontiguousarray(outputs)).to(self.scores.device), log_prob

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Independent outputs (*sample_shape, B, …); the seed is the next number of torch's own."""
        shape = torch.Size(sample_shape)
        seed = int(torch.randint(2**62, ()))
        scores, *lengths = self._arguments()
        drawn = self.structure.sample(scores, shape.numel(), seed, *lengths, **self._arrays())
        if self.batch_shape:
            drawn = drawn.swapaxes(0, 1)
        outputs = torch.from_numpy(np.ascontiguousarray(drawn)).to(self.scores.device)
        return outputs.reshape(shape + self.batch_shape + self.event_shape)

    def log_prob(self, value: Any) -> Tensor:
        """Logarithm of the probability of outputs (*sample_shape, B, …); others are refused."""
        outputs = torch.as_tensor(value, device="cpu")
        shape = self.batch_shape + self.event_shape
        lead = outputs.shape[: outputs.ndim - len(shape)]
        if outputs.shape != lead + shape:
            raise DataError(
                f"expected outputs of shape {tuple(shape)}, or more of them along axes in front, "
                f"found shape {tuple(outputs.shape)}",
                field="value",
            )
        batch = len(self._layout)
        rows = np.tile(np.arange(batch), lead.numel())
        flat = outputs.reshape(len(rows), *self.event_shape).numpy()
        parts, extra_parts = self.structure.encode(flat, self._layout.select(rows))
        score = _add_up(self._parts, parts) + _add_up(self._extra, extra_parts)
        log_prob = score.reshape(lead + self.batch_shape) - self._total
        return self._returned(log_prob)

    def entropy(self) -> Tensor:
        """−Σ p log p, in nats."""
        expected = self._expected(self._parts, self._extra)
        return self._returned((self._total - expected).clamp(min=0.0))

    def _same_outputs(self, other: StructureDistribution) -> bool:
        one, two = self._layout, other._layout
        return (
            type(self.structure) is type(other.structure)
            and self.scores.shape == other.scores.shape
            and np.array_equal(one.dims, two.dims)  # what kernels know of a structure
            and np.array_equal(one.sizes, two.sizes)
        )

    def _expected(self, parts: Tensor, extra: Tensor) -> Tensor:
        """What these scores of all parts add up to in expectation; what never occurs may be −∞."""
        marginals = self._u.reshape(parts.shape)
        expected = torch.where(marginals > 0.0, parts, 0.0) * marginals
        expected_extra = torch.where(self._v > 0.0, extra, 0.0) * self._v
        return (expected.sum(1) + expected_extra.sum(1)).reshape(self.batch_shape)

    @property
    def _parts(self) -> Tensor:
        """Scores (B, d)."""
        return self.scores.to("cpu", torch.float64).reshape(self._layout.scores.shape)

    @property
    def _extra(self) -> Tensor:
        """Additional scores (B, f), zero where none are given."""
        extra = torch.zeros(self._v.shape, dtype=torch.float64)
        for name, place in self._layout.additional.items():
            tensor = torch.as_tensor(self._additional[name]).to("cpu", torch.float64)
            extra[:, place.columns] = tensor.reshape(-1, place.stop - place.start)
        return extra

    def _arguments(self) -> tuple[Any, ...]:
        scores = to_numpy(self.scores)
        return (scores,) if self._lengths is None else (scores, self._lengths)

    def _arrays(self) -> dict[str, NDArray[np.float64]]:
        return {name: to_numpy(values) for name, values in self._additional.items()}

    def _returned(self, values: Tensor) -> Tensor:
        return values.to(self.scores.device, self.scores.dtype)

    def __repr__(self) -> str:
        return f"StructureDistribution({self.structure!r}, scores: {tuple(self.scores.shape)})"


@register_kl(StructureDistribution, StructureDistribution)
def _divergence(p: StructureDistribution, q: StructureDistribution) -> Tensor:
    """Σ p log(p / q); infinite where q forbids an output that p does not."""
    if not p._same_outputs(q):
        raise DataError(f"expected distributions over the same outputs, found {p} and {q}")
    further = p._expected(p._parts - q._parts, p._extra - q._extra)
    return p._returned((further - p._total + q._total).clamp(min=0.0))


def _add_up(scores: Tensor, parts: NDArray[np.int32]) -> Tensor:
    """Scores (B, d) at the parts of outputs (S·B, n), −1 where there are no more: (S·B,)."""
    batch, d = scores.shape
    padded = torch.nn.functional.pad(scores, (0, 1))
    chosen = torch.from_numpy(np.where(parts < 0, d, parts).astype(np.int64))
    rows = torch.arange(batch).repeat(len(parts) // max(batch, 1))
    return padded[rows[:, None], chosen].sum(1)
