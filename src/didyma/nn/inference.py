"""Regularised argmax as one differentiable operation.

    Ω*(η) = max over u, v in the hull of the outputs   η_U·u + η_F·v − Ω(u)

has the gradient [u; v], whose own derivative is a symmetric matrix J. Layers return u; losses the
value. Everything is computed in float64 on the CPU, whatever the scores are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma.errors import DataError
from didyma.execution import threads
from didyma.polytope.active_set import OPTIMAL
from didyma.polytope.distributions import Distribution, Distributions
from didyma.polytope.sparsemap import ActiveSet, scaled, solve
from didyma.structure import Floats, Layout, Structure, check_structure, flatten

__all__ = ["Inference", "infer"]

combine: Any = None  # bound per structure


def argmax_only(problem, theta, noise, active, y, n, u, c, tol, max_iter):  # type: ignore[no-untyped-def]
    """A solver without a regulariser: the first vertex, which is the argmax, is the optimum."""
    combine(problem, active, y, n, u)
    return n, 0.0, 0.0, 0, OPTIMAL


@dataclass(frozen=True)
class Argmax:
    """The solver of Ω = 0."""

    max_iter: ClassVar[int] = 1

    @property
    def template(self) -> Callable[..., Any]:
        """No loop at all."""
        return argmax_only


@dataclass
class Inference:
    """What to maximise; and once it is done, what derivatives need.

    Instances are numbered through all solves of one call (there are several under `vmap`), so that
    a tensor of numbers can say to which solution a gradient belongs.
    """

    structure: Structure
    regularizer: str = "sparsemap"
    margin: float = 0.0
    temperature: float = 1.0
    tol: float = 1e-9
    max_iter: int | None = None
    n_jobs: int | None = None
    warm_start: Distributions | Sequence[Distribution | None] | None = None
    names: tuple[str, ...] = ()  # of the additional scores
    solutions: list[Distributions | None] = field(default_factory=list)
    firsts: list[int] = field(default_factory=lambda: [0])  # number of each solution's first
    layout: Layout | None = None

    def maximise(
        self,
        scores: Floats,
        lengths: NDArray[Any] | None,
        gold: NDArray[Any] | None,
        mask: NDArray[np.bool_] | None,
        additional: Sequence[Floats],
    ) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Values (B,), parts (B, d), additional parts (B, f), and numbers of the instances.

        With gold outputs g the value is the loss, and the parts are u − g. Instances that are
        masked out have value 0, parts 0 and number −1.
        """
        if mask is not None:  # what does not count may hold anything: put something valid there
            if mask.any():
                counted = np.where(mask, np.arange(len(mask)), np.argmax(mask))
                scores = scores[counted]
                lengths = None if lengths is None else lengths[counted]
            else:
                scores, lengths = np.zeros_like(scores), None
        layout = self.structure.lay_out(scores, lengths, **dict(zip(self.names, additional)))
        self.layout = layout
        counts = np.ones(len(layout), dtype=bool) if mask is None else mask
        if mask is not None:
            layout = _select(layout, mask)
            gold = gold if gold is None else gold[mask]
        value, u, v, solution = self._posterior(layout, gold)
        numbers = np.full(len(counts), -1)
        numbers[counts] = self.firsts[-1] + np.arange(len(layout))
        self.solutions.append(solution)
        self.firsts.append(self.firsts[-1] + len(layout))
        return _spread(value, counts), _spread(u, counts), _spread(v, counts), numbers

    def _posterior(
        self, layout: Layout, outputs: NDArray[Any] | None
    ) -> tuple[Floats, Floats, Floats, Distributions | None]:
        if outputs is None:
            return self._conjugate(layout)
        gold, gold_extra = encode(self.structure, outputs, layout)
        gold_score = _dot(layout.scores, gold) + _dot(layout.extra, gold_extra)
        if (forbidden := np.flatnonzero(gold_score == -np.inf)).size:
            raise DataError(
                f"the gold output of instance {forbidden[0]} has a part with score -inf",
                field="gold",
            )
        augmented = replace(layout, scores=layout.scores - self.margin * gold)
        value, u, v, solution = self._conjugate(augmented)
        size = gold.sum(axis=1)  # Hamming cost of an output that shares nothing with the gold
        offset = self.margin * size + (0.5 * self.temperature * size if self._squared else 0.0)
        loss = np.maximum(value + offset - gold_score, 0.0)  # rounding may leave -1e-17
        return loss, u - gold, v - gold_extra, solution

    @property
    def _squared(self) -> bool:
        return self.regularizer == "sparsemap"

    def _conjugate(self, layout: Layout) -> tuple[Floats, Floats, Floats, Distributions | None]:
        """Ω* and its gradient, with the solution that knows the second derivative."""
        if self.regularizer == "crf":
            return self._log_partition(layout)
        solution = solve(
            layout,
            self.structure,
            tol=self.tol,
            max_iter=self.max_iter,
            temperature=self.temperature if self._squared else 1.0,
            warm_start=self.warm_start,
            solver=ActiveSet() if self._squared else Argmax(),
            executor=threads(self.n_jobs),
        )
        u, v = solution.marginals.reshape(layout.scores.shape), solution.extra_marginals
        value = _dot(layout.scores, u) + _dot(layout.extra, v)
        if self._squared:
            value -= 0.5 * self.temperature * _dot(u, u)
        return value, u, v, solution

    def _log_partition(self, layout: Layout) -> tuple[Floats, Floats, Floats, None]:
        t = self.temperature
        expectations = getattr(self.structure, "sums", None) or getattr(
            self.structure, "expectations", None
        )
        if expectations is None:
            raise NotImplementedError(
                f"{type(self.structure).__name__} has no method expectations, which a CRF needs; "
                "SparseMAP needs only an argmax"
            )
        value, u, v = expectations(scaled(layout, t))
        return t * value, u, v, None

    def apply_jacobian(
        self, numbers: NDArray[np.int64], p: Floats, p_extra: Floats
    ) -> tuple[Floats, Floats]:
        """J [p; p_extra], row by row; rows with number −1 have J = 0."""
        out, out_extra = np.zeros_like(p), np.zeros_like(p_extra)
        for solution, first, stop in zip(self.solutions, self.firsts, self.firsts[1:]):
            if solution is None:
                raise NotImplementedError(
                    "the CRF loss has neither second derivatives nor forward mode; the SparseMAP "
                    "loss has both"
                )
            if np.array_equal(numbers, np.arange(first, stop)):
                return solution.apply_jacobian(p, p_extra)
            rows = np.flatnonzero((numbers >= first) & (numbers < stop))
            own = _instances(solution, numbers[rows] - first)
            out[rows], out_extra[rows] = own.apply_jacobian(p[rows], p_extra[rows])
        return out, out_extra


def encode(structure: Structure, outputs: NDArray[Any], layout: Layout) -> tuple[Floats, Floats]:
    """How often each part (B, d) and each additional part (B, f) is in the outputs.

    A structure without a method ``encode`` takes 0/1 arrays of the scores' shape.
    """
    if not hasattr(structure, "encode"):
        shape = (len(layout), *layout.shape)
        if layout.extra.shape[1]:
            raise DataError(
                f"{type(structure).__name__} has additional scores and needs a method encode",
                field="gold",
            )
        if outputs.shape != shape or not np.isin(outputs, (0, 1)).all():
            raise DataError(
                f"expected zeros and ones of shape {shape}, found shape {outputs.shape}",
                field="gold",
            )
        return flatten(outputs).astype(np.float64), np.zeros((len(layout), 0))
    from didyma.kernels.vertices import expectation

    parts, extra_parts = structure.encode(outputs, layout)
    gold, gold_extra = np.zeros_like(layout.scores), np.zeros((len(layout), layout.extra.shape[1]))
    rows, ones = np.arange(len(layout) + 1), np.ones(len(layout))
    expectation(rows, np.ascontiguousarray(parts), ones, gold)
    expectation(rows, np.ascontiguousarray(extra_parts), ones, gold_extra)
    return gold, gold_extra


def _dot(scores: Floats, u: Floats) -> Floats:
    """Row by row; where u is 0 the score may be −inf."""
    from didyma.kernels.vertices import products

    out = np.zeros(len(u))
    products(scores, u, out)
    return out


def _select(layout: Layout, mask: NDArray[np.bool_]) -> Layout:
    extra = layout.extra[mask] if len(layout.extra) > 1 else layout.extra
    return replace(layout, scores=layout.scores[mask], extra=extra, sizes=layout.sizes[mask])


def _spread(values: Floats, counts: NDArray[np.bool_]) -> Floats:
    if counts.all():
        return values
    out = np.zeros((len(counts), *values.shape[1:]))
    out[counts] = values
    return out


def _instances(solution: Distributions, b: NDArray[np.int64]) -> Distributions:
    """The active sets of some instances, in this order; an instance may come several times."""
    sizes = solution.support_size[b]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(solution.offsets[b] - offsets[:-1], sizes) + np.arange(offsets[-1])
    return replace(
        solution,
        offsets=offsets,
        parts=solution.parts[rows],
        extra_parts=solution.extra_parts[rows],
    )


class Conjugate(torch.autograd.Function):
    """(value, u, v) of an `Inference`, and the numbers of its instances."""

    @staticmethod
    def forward(inference, scores, lengths, gold, mask, *additional):  # type: ignore[no-untyped-def]
        arrays = [None if t is None else t.numpy() for t in (lengths, gold, mask)]
        found = inference.maximise(scores.numpy(), *arrays, [t.numpy() for t in additional])
        return tuple(torch.from_numpy(array) for array in found)

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.inference, scores, _, _, _, *additional = inputs
        ctx.shape, ctx.shapes = scores.shape, [t.shape for t in additional]
        ctx.places = [ctx.inference.layout.additional[name] for name in ctx.inference.names]
        _, u, v, numbers = output
        ctx.mark_non_differentiable(numbers)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(u, v, numbers)
        ctx.save_for_forward(u, v, numbers)

    @staticmethod
    def backward(ctx, d_value, d_u, d_v, _):  # type: ignore[no-untyped-def]
        u, v, numbers = ctx.saved_tensors  # u and v are outputs: their derivative is J again
        d_scores, d_extra = torch.zeros_like(u), torch.zeros_like(v)
        if d_u is not None or d_v is not None:
            d_u = d_scores if d_u is None else d_u
            d_v = d_extra if d_v is None else d_v
            d_scores, d_extra = Jacobian.apply(ctx.inference, numbers, d_u, d_v)
        if d_value is not None:
            d_scores = d_scores + d_value[:, None] * u
            d_extra = d_extra + d_value[:, None] * v
        blocks = []
        for place, shape in zip(ctx.places, ctx.shapes):
            block = d_extra[:, place.start : place.stop]
            blocks.append((block.sum(0) if shape == place.shape else block).reshape(shape))
        return None, d_scores.reshape(ctx.shape), None, None, None, *blocks

    @staticmethod
    def jvp(ctx, _, d_scores, *d_others):  # type: ignore[no-untyped-def]
        u, v, numbers = ctx.saved_tensors
        d_scores = torch.zeros_like(u) if d_scores is None else d_scores.reshape(u.shape)
        d_extra = torch.zeros_like(v)
        for place, shape, tangent in zip(ctx.places, ctx.shapes, d_others[3:]):
            if tangent is not None:
                rows = 1 if shape == place.shape else len(u)
                sides = (place.start, v.shape[1] - place.stop)
                block = torch.nn.functional.pad(tangent.reshape(rows, -1), sides)
                d_extra = d_extra + block
        d_value = (u * d_scores).sum(1) + (v * d_extra).sum(1)
        return d_value, *Jacobian.apply(ctx.inference, numbers, d_scores, d_extra), None

    @staticmethod
    def vmap(info, in_dims, inference, *inputs):  # type: ignore[no-untyped-def]
        slices = [
            [t if d is None else t.select(d, i) for t, d in zip(inputs, in_dims[1:])]
            for i in range(info.batch_size)
        ]
        found = [Conjugate.apply(inference, *one) for one in slices]
        return tuple(torch.stack(outputs) for outputs in zip(*found)), (0, 0, 0, 0)


class Jacobian(torch.autograd.Function):
    """J [p; p_extra]: linear and symmetric, so its derivative is itself."""

    @staticmethod
    def forward(inference, numbers, p, p_extra):  # type: ignore[no-untyped-def]
        _INFERENCES[id(inference)] = inference
        return torch.ops.didyma.jacobian(id(inference), numbers, p, p_extra)

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.inference, numbers, _, _ = inputs
        ctx.save_for_backward(numbers)
        ctx.save_for_forward(numbers)

    @staticmethod
    def backward(ctx, d_out, d_out_extra):  # type: ignore[no-untyped-def]
        (numbers,) = ctx.saved_tensors
        return None, None, *Jacobian.apply(ctx.inference, numbers, d_out, d_out_extra)

    @staticmethod
    def jvp(ctx, _, __, d_p, d_p_extra):  # type: ignore[no-untyped-def]
        (numbers,) = ctx.saved_tensors
        return Jacobian.apply(ctx.inference, numbers, d_p, d_p_extra)

    @staticmethod
    def vmap(info, in_dims, inference, *inputs):  # type: ignore[no-untyped-def]
        n = info.batch_size
        stacked = [
            t.expand(n, *t.shape) if d is None else t.movedim(d, 0)
            for t, d in zip(inputs, in_dims[1:])
        ]
        found = Jacobian.apply(inference, *(t.flatten(0, 1) for t in stacked))
        return tuple(t.reshape(stacked[1 + i].shape) for i, t in enumerate(found)), (0, 0)


def _jacobian(inference: int, numbers: Tensor, p: Tensor, p_extra: Tensor) -> tuple[Tensor, Tensor]:
    arrays = (t.contiguous().numpy() for t in (numbers, p, p_extra))
    moved, moved_extra = _INFERENCES[inference].apply_jacobian(*arrays)
    return torch.from_numpy(moved), torch.from_numpy(moved_extra)


# As an operator of torch it is called once per gradient of a batch (``is_grads_batched``), where a
# function in Python would meet tensors that have no array. Objects go by number there.
_INFERENCES: WeakValueDictionary[int, Inference] = WeakValueDictionary()
_OPERATORS = torch.library.Library("didyma", "DEF")
_OPERATORS.define(
    "jacobian(int inference, Tensor numbers, Tensor p, Tensor p_extra) -> (Tensor, Tensor)"
)
_OPERATORS.impl("jacobian", _jacobian, "CPU")


def infer(*arguments: Any, **settings: Any) -> tuple[Tensor, Tensor, Inference]:
    """`_infer`, outside of compiled graphs: a solver over arrays has nothing for them to hold.

    `torch.compiler.disable` loads the compiler, which takes longer than torch itself. Where it is
    not loaded, nothing is compiled.
    """
    global _outside_graphs
    if _outside_graphs is None and "torch._dynamo" in sys.modules:
        _outside_graphs = torch.compiler.disable(_infer)
    return (_outside_graphs or _infer)(*arguments, **settings)


_outside_graphs: Callable[..., Any] | None = None


def _infer(
    scores: Tensor,
    structure: Structure,
    lengths: Any = None,
    gold: Any = None,
    mask: Any = None,
    additional: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Tensor, Tensor, Inference]:
    """Value and marginals of one instance or a batch, in float64 on the CPU, and the `Inference`.

    Autograd moves gradients back to the devices and types of scores and additional scores.
    """
    check_structure(structure)
    if not (isinstance(scores, Tensor) and scores.is_floating_point()):
        found = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise DataError(f"expected a floating-point tensor, found {found}", field="scores")
    given = {name: t for name, t in (additional or {}).items() if t is not None}
    inference = Inference(structure, names=tuple(given), **settings)
    single = scores.ndim == structure.ndim
    batch = scores[None] if single else scores
    rows = [
        None if t is None else _on_cpu(t)[None] if single else _on_cpu(t)
        for t in (lengths, gold, mask)
    ]
    for name, t in zip(("lengths", "gold", "mask"), rows):
        if t is not None and t.shape[:1] != batch.shape[:1]:
            raise DataError(
                f"expected one per instance ({len(batch)}), found shape {tuple(t.shape)}",
                field=name,
            )
    if rows[2] is not None and rows[2].ndim > 1:
        raise DataError(
            f"expected one entry per instance, of shape ({len(batch)},), found shape "
            f"{tuple(rows[2].shape)}",
            field="mask",
        )
    value, u, _, _ = Conjugate.apply(
        inference,
        batch.to("cpu", torch.float64),
        rows[0],
        rows[1],
        rows[2] if rows[2] is None else rows[2].bool(),
        *(_on_cpu(t).to(torch.float64) for t in given.values()),
    )
    return (value[0] if single else value), u.reshape(scores.shape), inference


def _on_cpu(array: Any) -> Tensor:
    return torch.as_tensor(array, device="cpu")
