"""Regularised argmax as one differentiable operation.

Layers return the gradient u of `Objective`'s value, losses the value; the derivative of u is a
symmetric matrix J. Everything is computed in float64 on the CPU, whatever the scores are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from didyma.errors import DataError
from didyma.nn.inference import Inference
from didyma.nn.objective import Objective
from didyma.structure import Structure, check_structure

__all__ = ["infer"]


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
            whole = place.stop - place.start == d_extra.shape[1]
            # A slice of all of it would be an alias, which batches of gradients do not know.
            block = d_extra if whole else d_extra[:, place.start : place.stop]
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
    inference = Inference(Objective(structure, **settings), tuple(given))
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
