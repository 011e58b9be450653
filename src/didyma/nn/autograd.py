"""Regularised argmax as one differentiable operation.

Layers return the gradient u of `Objective`'s value, losses the value; the derivative of u is a
symmetric matrix J. SparseMAP's is constant between kinks; a CRF's has a derivative T, symmetric
too. Everything is computed in float64 on the CPU, whatever the scores are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from didyma.errors import DataError
from didyma.nn.inference import Inference
from didyma.nn.objective import Objective
from didyma.nn.torch_internals import Function, is_plain, n_forward_modes
from didyma.structure import Structure, require_structure
from didyma.structures.layout import Floats

__all__ = ["NO_EXPORT", "conjugate", "infer", "require_scores", "to_numpy"]

CPU = torch.device("cpu")
NO_EXPORT = (
    "TorchScript and ONNX cannot have this layer: it calls a solver, which no file of theirs can "
    "hold; export the network that computes the scores, and solve outside"
)
KNOWN_TO_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class Conjugate(Function):
    """(value, u, v) of an `Inference`, and the numbers of its instances.

    Scores are a batch or one instance, of any type and on any device; u has their shape.
    """

    @staticmethod
    def forward(*inputs):  # type: ignore[no-untyped-def]
        inference, scores, lengths, gold, mask, *additional = inputs
        arrays = [None if t is None else t.numpy() for t in (lengths, gold, mask)]
        value, u, v, numbers = inference.maximise(
            _array(scores), *arrays, [_array(t) for t in additional]
        )
        u = u.reshape(scores.shape)
        as_given = (scores.device, scores.dtype) if inference.as_given else ()
        u = _tensor(u, *as_given)
        return torch.from_numpy(value), u, torch.from_numpy(v), torch.from_numpy(numbers)

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.inference, scores, _, _, _, *additional = inputs
        ctx.types = [(t.shape, t.device, t.dtype) for t in (scores, *additional)]
        ctx.places = [ctx.inference.layout.additional[name] for name in ctx.inference.names]
        _, u, v, numbers = output
        ctx.mark_non_differentiable(numbers)
        ctx.set_materialize_grads(False)
        at = (scores, *additional) if ctx.inference.curved else ()
        ctx.save_for_backward(u, v, numbers, *at)
        ctx.save_for_forward(u, v, numbers, *at)

    @staticmethod
    def backward(ctx, d_value, d_u, d_v, _):  # type: ignore[no-untyped-def]
        u, v, numbers, *at = ctx.saved_tensors  # u, v are outputs: their derivative is J again
        if d_v is None and not ctx.places and (d_value is None) != (d_u is None):
            direction = d_u if d_value is None else d_value
            if is_plain(direction):  # a layer or a loss alone, whose gradient nobody follows
                return None, _plain_gradient(ctx, d_value, d_u, u, numbers), None, None, None
        d_scores: Any = None
        d_extra: Any = None
        if d_u is not None or d_v is not None:
            d_u = _rows(torch.zeros_like(u) if d_u is None else d_u, v)
            d_v = torch.zeros_like(v) if d_v is None else d_v
            if torch.is_grad_enabled():
                at = _flat(ctx, v, at)
                d_scores, d_extra = Derivative.apply(ctx.inference, *at, numbers, d_u, d_v)
            elif is_plain(d_u) and is_plain(d_v):
                d_scores, d_extra = _on_arrays(ctx.inference.apply_jacobian, numbers, d_u, d_v)
            else:
                d_scores, d_extra = Derivative.forward(ctx.inference, None, None, numbers, d_u, d_v)
        if d_value is not None:
            step, step_extra = d_value[:, None] * _rows(u, v), d_value[:, None] * v
            d_scores = step if d_scores is None else d_scores + step
            d_extra = step_extra if d_extra is None else d_extra + step_extra
        if d_scores is None:
            return (None,) * len(ctx.needs_input_grad)
        blocks = [d_scores]
        for place, (shape, _, _) in zip(ctx.places, ctx.types[1:]):
            whole = place.stop - place.start == d_extra.shape[1]
            # A slice of all of it would be an alias, which batches of gradients do not know.
            block = d_extra if whole else d_extra[:, place.start : place.stop]
            blocks.append(block.sum(0) if shape == place.shape else block)
        d_scores, *d_additional = (
            block.reshape(shape).to(device, dtype)
            for block, (shape, device, dtype) in zip(blocks, ctx.types)
        )
        return None, d_scores, None, None, None, *d_additional

    @staticmethod
    def jvp(ctx, _, d_scores, *d_others):  # type: ignore[no-untyped-def]
        _refuse_forward_over_forward()
        u, v, numbers, *at = ctx.saved_tensors
        d_scores, d_extra = _flat(ctx, v, [d_scores, *d_others[3:]])
        d_scores = torch.zeros_like(_rows(u, v)) if d_scores is None else d_scores
        d_value = (_rows(u, v) * d_scores).sum(1) + (v * d_extra).sum(1)
        d_u, d_v = Derivative.apply(ctx.inference, *_flat(ctx, v, at), numbers, d_scores, d_extra)
        return d_value, d_u.reshape(u.shape).to(u.device, u.dtype), d_v, None

    @staticmethod
    def vmap(info, in_dims, inference, *inputs):  # type: ignore[no-untyped-def]
        slices = [
            [t if d is None else t.select(d, i) for t, d in zip(inputs, in_dims[1:])]
            for i in range(info.batch_size)
        ]
        results = [Conjugate.apply(inference, *one) for one in slices]
        return tuple(torch.stack(outputs) for outputs in zip(*results)), (0, 0, 0, 0)


class Derivative(Function):
    """The k-th derivative of u at some scores, along k directions p₁, …, p_k (k is 1 or 2).

        D[p₁] = J p₁          D[p₁, p₂] = T [p₁, p₂], how J p₁ moves along p₂

    Each is linear in every direction and symmetric in all of them, so that its derivative along a
    direction is D with that one replaced, and along the scores D with one more. A direction is a
    pair of tensors, of parts (B, d) and of additional parts (B, f). Without scores J is constant.
    """

    @staticmethod
    def forward(*inputs):  # type: ignore[no-untyped-def]
        inference, _, _, numbers, *directions = inputs
        if len(directions) > 4:
            raise NotImplementedError(
                "log partitions have third derivatives, marginals and entropies under p(output) ∝ "
                "exp(score) second ones, and no higher ones; SparseMAP has all"
            )
        _INFERENCES[id(inference)] = inference
        operators = torch.ops.didyma
        operator = operators.jacobian if len(directions) == 2 else operators.second_derivative
        return operator(id(inference), numbers, *directions)

    @staticmethod
    def setup_context(ctx, inputs, output):  # type: ignore[no-untyped-def]
        ctx.inference, *tensors = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx, *d_out):  # type: ignore[no-untyped-def]
        *at, numbers = ctx.saved_tensors[:3]
        directions = ctx.saved_tensors[3:]
        d_out = _whole(d_out, directions)
        d_at = None, None
        if any(ctx.needs_input_grad[1:3]):
            d_at = Derivative.apply(ctx.inference, *at, numbers, *directions, *d_out)
        d_directions: list[Any] = []
        for i in range(0, len(directions), 2):
            if any(ctx.needs_input_grad[4 + i : 6 + i]):
                others = *directions[:i], *d_out, *directions[i + 2 :]
                d_directions += Derivative.apply(ctx.inference, *at, numbers, *others)
            else:
                d_directions += None, None
        return None, *d_at, None, *d_directions

    @staticmethod
    def jvp(ctx, _, d_at, d_at_extra, __, *d_directions):  # type: ignore[no-untyped-def]
        *at, numbers = ctx.saved_tensors[:3]
        directions = ctx.saved_tensors[3:]
        terms = []
        for i in range(0, len(directions), 2):
            moved = _whole(d_directions[i : i + 2], directions)
            terms.append((*directions[:i], *moved, *directions[i + 2 :]))
        if d_at is not None or d_at_extra is not None:
            terms.append((*directions, *_whole((d_at, d_at_extra), directions)))
        moved = [Derivative.apply(ctx.inference, *at, numbers, *term) for term in terms]
        return tuple(sum(parts[1:], parts[0]) for parts in zip(*moved))

    @staticmethod
    def vmap(info, in_dims, *inputs):  # type: ignore[no-untyped-def]
        """All copies of the batch as one, since it goes row by row."""
        n = info.batch_size
        inference, *tensors = inputs
        stacked = [
            t if t is None else t.expand(n, *t.shape) if d is None else t.movedim(d, 0)
            for t, d in zip(tensors, in_dims[1:])
        ]
        flat = (t if t is None else t.flatten(0, 1) for t in stacked)
        moved = Derivative.apply(inference, *flat)
        return tuple(t.reshape(n, len(t) // n, t.shape[1]) for t in moved), (0, 0)


def _array(tensor: Tensor) -> Floats:
    """The numbers in float64. Where NumPy knows the type it is the faster one on few of them."""
    if tensor.dtype in KNOWN_TO_NUMPY and tensor.is_cpu:
        return np.asarray(tensor.numpy(), np.float64)
    return _double(tensor).numpy()


def _tensor(
    array: Floats, device: torch.device = CPU, dtype: torch.dtype = torch.float64
) -> Tensor:
    """An array as a tensor of some type on some device."""
    if dtype in KNOWN_TO_NUMPY and device == CPU:
        return torch.from_numpy(np.asarray(array, KNOWN_TO_NUMPY[dtype]))
    return torch.from_numpy(array).to(device, dtype)


def _plain_gradient(ctx, d_value, d_u, u, numbers):  # type: ignore[no-untyped-def]
    """Gradient by the scores of the value alone, or of u alone, without a detour by tensors."""
    shape, device, dtype = ctx.types[0]
    rows = ctx.inference.layout.scores.shape
    if d_u is None:
        d_scores = d_value.numpy()[:, None] * _array(u).reshape(rows)
    else:
        no_extra = np.zeros((rows[0], ctx.inference.layout.extra.shape[1]))
        d_u = _array(d_u).reshape(rows)
        d_scores, _ = ctx.inference.apply_jacobian(numbers.numpy(), d_u, no_extra)
    return _tensor(d_scores.reshape(shape), device, dtype)


def _double(tensor: Tensor) -> Tensor:
    return tensor.to("cpu", torch.float64)


def _rows(tensor: Tensor, v: Tensor) -> Tensor:
    """One row per instance, as there are in v."""
    n = v.shape[0]
    return _double(tensor).reshape(n, tensor.numel() // max(n, 1))


def _flat(ctx, v, tensors):  # type: ignore[no-untyped-def]
    """Scores (B, d) and additional scores (B, f) of an instance each, of what may be given."""
    if not tensors:
        return None, None
    scores, *additional = tensors
    extra = torch.zeros_like(v)
    for place, (shape, _, _), tensor in zip(ctx.places, ctx.types[1:], additional):
        if tensor is not None:
            rows = 1 if shape == place.shape else len(v)
            sides = (place.start, v.shape[1] - place.stop)
            flat = _double(tensor).reshape(rows, -1)
            extra = extra + torch.nn.functional.pad(flat, sides)
    return (None if scores is None else _rows(scores, v)), extra


def _whole(directions, like):  # type: ignore[no-untyped-def]
    """Directions, zero where there are none."""
    return tuple(torch.zeros_like(t) if d is None else d for d, t in zip(directions, like))


def _refuse_forward_over_forward() -> None:
    """Within `jvp` torch has forward mode switched off: an outer one would silently see zeros."""
    n = n_forward_modes()
    if n is None or n > 1:
        count = "torch does not say how many, in this version" if n is None else f"found {n}"
        raise NotImplementedError(
            f"expected one forward mode ({count}): forward mode over forward mode is not known to "
            "torch's functions; use reverse mode for one of them, as torch.func.hessian does"
        )


def _jacobian(inference: int, numbers: Tensor, p: Tensor, p_extra: Tensor) -> tuple[Tensor, Tensor]:
    return _on_arrays(_INFERENCES[inference].apply_jacobian, numbers, p, p_extra)


def _second_derivative(
    inference: int, numbers: Tensor, *directions: Tensor
) -> tuple[Tensor, Tensor]:
    return _on_arrays(_INFERENCES[inference].second_derivative, numbers, *directions)


def _on_arrays(method: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, Tensor]:
    moved, moved_extra = method(*(t.contiguous().numpy() for t in tensors))
    return torch.from_numpy(moved), torch.from_numpy(moved_extra)


# As an operator of torch it is called once per gradient of a batch (``is_grads_batched``), where a
# function in Python would meet tensors that have no array. Objects go by number there.
_INFERENCES: WeakValueDictionary[int, Inference] = WeakValueDictionary()
_OPERATORS = torch.library.Library("didyma", "DEF")
_OPERATORS.define(
    "jacobian(int inference, Tensor numbers, Tensor p, Tensor p_extra) -> (Tensor, Tensor)"
)
_OPERATORS.define(
    "second_derivative(int inference, Tensor numbers, Tensor p, Tensor p_extra, Tensor r, "
    "Tensor r_extra) -> (Tensor, Tensor)"
)
_OPERATORS.impl("jacobian", _jacobian, "CPU")
_OPERATORS.impl("second_derivative", _second_derivative, "CPU")


def conjugate(
    objective: Objective,
    scores: Tensor,
    lengths: Any,
    gold: Any,
    mask: Any,
    additional: Mapping[str, Any] | None,
    as_given: bool = False,
) -> tuple[Tensor, Tensor]:
    """Value and marginals alone, as `infer` finds them: in a graph where one is compiled."""
    if torch.compiler.is_compiling() and not _data(objective.structure, additional):
        from didyma.nn.graphs import maximise_in_graph

        structure = objective.structure
        rows, tensors_by_name = _checked(scores, structure, lengths, gold, mask, additional)
        batch = scores[None] if scores.ndim == structure.ndim else scores
        tensors = _double(batch), *rows, {name: _double(t) for name, t in tensors_by_name.items()}
        if (result := maximise_in_graph(objective, *tensors)) is not None:
            value, u = result
            return (value[0] if scores.ndim == structure.ndim else value), u.reshape(scores.shape)
    value, u, _, _ = infer(objective, scores, lengths, gold, mask, additional, as_given)
    return value, u


def infer(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Inference]:
    """`_infer`, outside of compiled graphs: they have no place for an `Inference`.

    `torch.compiler.disable` loads the compiler, which takes longer than torch itself. Where it is
    not loaded, nothing is compiled.
    """
    global _outside_graphs
    if _outside_graphs is None and "torch._dynamo" in sys.modules:
        _outside_graphs = torch.compiler.disable(_infer)
    return (_outside_graphs or _infer)(*arguments)


_outside_graphs: Callable[..., Any] | None = None


def _infer(
    objective: Objective,
    scores: Tensor,
    lengths: Any = None,
    gold: Any = None,
    mask: Any = None,
    additional: Mapping[str, Any] | None = None,
    as_given: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Inference]:
    """Value, marginals, those of additional parts (B, f), in float64 on the CPU; the `Inference`.

    Marginals have the shape of the scores, and ``as_given`` their type and device.
    """
    rows, tensors = _checked(scores, objective.structure, lengths, gold, mask, additional)
    data = _data(objective.structure, additional)
    inference = Inference(objective, tuple(tensors), as_given, data)
    value, u, v, _ = Conjugate.apply(inference, scores, *rows, *tensors.values())
    single = scores.ndim == objective.structure.ndim
    return (value[0] if single else value), u, v, inference


def _checked(
    scores: Tensor,
    structure: Structure,
    lengths: Any,
    gold: Any,
    mask: Any,
    additional: Mapping[str, Any] | None,
) -> tuple[list[Tensor | None], dict[str, Tensor]]:
    """Lengths, outputs and mask with a batch axis, on the CPU; additional scores."""
    require_structure(structure)
    require_scores(scores)
    single = scores.ndim == structure.ndim
    batch = 1 if single else len(scores)
    rows = [
        None if t is None else _on_cpu(t)[None] if single else _on_cpu(t)
        for t in (lengths, gold, mask)
    ]
    for name, t in zip(("lengths", "gold", "mask"), rows):
        if t is not None and t.shape[:1] != (batch,):
            raise DataError(
                f"expected one per instance ({batch}), found shape {tuple(t.shape)}", field=name
            )
    if rows[2] is not None:
        if rows[2].ndim > 1:
            raise DataError(
                f"expected one entry per instance, of shape ({batch},), found shape "
                f"{tuple(rows[2].shape)}; where it says which positions count, give their number, "
                "lengths=mask.sum(1)",
                field="mask",
            )
        rows[2] = rows[2].bool()
    data = _data(structure, additional)
    tensors = {
        name: torch.as_tensor(t)
        for name, t in (additional or {}).items()
        if t is not None and name not in data
    }
    return rows, tensors


def require_scores(scores: Any) -> None:
    """Refuse what is no tensor of floats, and a trace, which would record marginals as they are."""
    if torch.jit.is_tracing():
        raise NotImplementedError(NO_EXPORT)
    if not (isinstance(scores, Tensor) and scores.is_floating_point()):
        description = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise DataError(f"expected a floating-point tensor, found {description}", field="scores")


def to_numpy(values: Any) -> Any:
    """A tensor of any type and device as an array, floats as float64; None stays None."""
    if not isinstance(values, Tensor):
        return None if values is None else np.asarray(values)
    cpu = values.detach().cpu()
    return (cpu.double() if cpu.is_floating_point() else cpu).numpy()


def _data(structure: Structure, additional: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is given by name and is no score: `Structure.data`."""
    return {name: value for name, value in (additional or {}).items() if name in structure.data}


def _on_cpu(array: Any) -> Tensor:
    return torch.as_tensor(array, device="cpu")
