"""Regularised argmax inside graphs of `torch.compile`, as operators over tensors alone.

A pass over one small instance takes half as long again as with a function of autograd, and there
is no forward mode, so that operators serve graphs alone. What the derivative needs is a tensor too:
the active structures of all instances, of which there are as many as the solver finds. That of
`LocalSparseMAP` is no tensor, so that its backward pass solves again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma.nn.inference import Inference
from didyma.nn.objective import REGULARIZERS, Objective
from didyma.polytope.distributions import Distributions, apply_derivative
from didyma.polytope.sparsemap import SolverOptions
from didyma.structures.layout import Floats

if TYPE_CHECKING:
    from didyma.nn.local import LocalSparseMAP

# By number, since a graph holds only numbers and tensors, and for as long as it may be run.
STRUCTURES: list[tuple[Any, tuple[str, ...]]] = []


@torch.compiler.assume_constant_result
def number_of(structure: Any, identity: int, names: tuple[str, ...]) -> int:
    """The number of a structure and its additional scores, found while a graph is made.

    A structure that the graph itself makes is not there yet, only something like it whose ``id`` is
    another; there is no number for it.
    """
    if id(structure) != identity:
        return -1
    STRUCTURES.append((structure, names))
    return len(STRUCTURES) - 1


def maximise_in_graph(
    objective: Objective,
    scores: Tensor,
    lengths: Tensor | None,
    gold: Tensor | None,
    mask: Tensor | None,
    additional: dict[str, Tensor],
) -> tuple[Tensor, Tensor] | None:
    """Value and marginals of a batch; None for a structure that the graph itself makes."""
    structure, options = objective.structure, objective.options
    number = number_of(structure, id(structure), tuple(additional))
    if number < 0:
        return None
    (name,) = (key for key, value in REGULARIZERS.items() if value is objective.regularizer)
    value, u, *_ = maximise(
        number,
        scores,
        lengths,
        gold,
        mask,
        list(additional.values()),
        options.temperature,
        options.tol,
        options.max_iter,
        options.n_jobs,
        options.face,
        name,
        objective.margin,
    )
    return value, u


@torch.library.custom_op("didyma::maximise", mutates_args=())
def maximise(
    number: int,
    scores: Tensor,
    lengths: Tensor | None,
    gold: Tensor | None,
    mask: Tensor | None,
    additional: list[Tensor],
    temperature: float,
    tol: float,
    max_iter: int | None,
    n_jobs: int | None,
    face: bool,
    regularizer: str,
    margin: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Value (B,), marginals, and what the derivative needs, given what an `Objective` has."""
    structure, names = STRUCTURES[number]
    options = SolverOptions(temperature, tol, max_iter, n_jobs, face)
    objective = Objective(structure, options, REGULARIZERS[regularizer], margin)
    inference = Inference(objective, names)
    rows: list[Any] = [None if t is None else t.numpy() for t in (lengths, gold, mask)]
    rows.append([t.contiguous().numpy() for t in additional])
    value, u, v, numbers = inference.maximise(scores.numpy(), *rows)
    assert inference.layout is not None
    places = [inference.layout.additional[name] for name in names]
    (solution,) = inference.solutions
    support = np.zeros(len(numbers), np.int64)
    parts = extra_parts = np.zeros((0, 0), np.int32)
    if isinstance(solution, Distributions):
        support[numbers >= 0] = solution.support_size
        parts, extra_parts = solution.parts, solution.extra_parts
    arrays = (
        value,
        u.reshape(tuple(scores.shape)),
        v,
        np.array([(p.start, p.stop, p.shared) for p in places], np.int64).reshape(-1, 3),
        np.concatenate([[0], np.cumsum(support)]),
        parts,
        extra_parts,
    )
    return tuple(torch.from_numpy(np.ascontiguousarray(array)) for array in arrays)


@maximise.register_fake
def _(number, scores, lengths, gold, mask, additional, *settings):  # type: ignore[no-untyped-def]
    sizes = torch.library.get_ctx()

    def indices():  # type: ignore[no-untyped-def]
        shape = sizes.new_dynamic_size(), sizes.new_dynamic_size()
        return scores.new_empty(shape, dtype=torch.int32)

    return (
        scores.new_empty(scores.shape[0]),
        scores.new_empty(scores.shape),
        scores.new_empty(scores.shape[0], sizes.new_dynamic_size()),
        scores.new_empty(len(additional), 3, dtype=torch.int64),
        scores.new_empty(scores.shape[0] + 1, dtype=torch.int64),
        indices(),
        indices(),
    )


@torch.library.custom_op("didyma::pull", mutates_args=())
def pull(
    number: int,
    temperature: float,
    d_value: Tensor | None,
    d_u: Tensor | None,
    u: Tensor,
    v: Tensor,
    places: Tensor,
    offsets: Tensor,
    parts: Tensor,
    extra_parts: Tensor,
    additional: list[Tensor],
) -> list[Tensor]:
    """Gradients with respect to the scores, and to each of the additional scores."""
    structure, _ = STRUCTURES[number]
    flat, extra = u.numpy().reshape(len(u), -1), v.numpy()
    d_scores, d_extra = np.zeros_like(flat), np.zeros_like(extra)
    if d_u is not None:
        d_scores, d_extra = apply_derivative(
            structure,
            offsets.numpy(),
            parts.numpy(),
            extra_parts.numpy(),
            np.zeros(0),
            d_u.contiguous().numpy().reshape(flat.shape),
            d_extra,
        )
        d_scores /= temperature
        d_extra /= temperature
    if d_value is not None:
        d_scores += d_value.numpy()[:, None] * flat
        d_extra += d_value.numpy()[:, None] * extra
    return _gradients(d_scores, d_extra, places.tolist(), [u, *additional])


def _gradients(
    d_scores: Floats, d_extra: Floats, places: Iterable[Sequence[int]], like: Sequence[Tensor]
) -> list[Tensor]:
    """Gradients in the shapes of scores and additional scores, whose columns are start to stop."""
    gradients = [d_scores]
    for start, stop, shared in places:
        block = d_extra[:, start:stop]
        gradients.append(block.sum(axis=0) if shared else np.ascontiguousarray(block))
    return [torch.from_numpy(g).reshape(t.shape) for g, t in zip(gradients, like)]


@pull.register_fake
def _(number, temperature, d_value, d_u, u, v, places, offsets, parts, extra_parts, additional):  # type: ignore[no-untyped-def]
    return [t.new_empty(t.shape) for t in [u, *additional]]


def _keep(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.number, _, _, _, _, additional, ctx.temperature, *_ = inputs
    _, *state = output
    ctx.mark_non_differentiable(*state[1:])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*state, *additional)


def _backward(ctx, d_value, d_u, *_):  # type: ignore[no-untyped-def]
    state, additional = ctx.saved_tensors[:6], list(ctx.saved_tensors[6:])
    d_scores, *d_additional = pull(ctx.number, ctx.temperature, d_value, d_u, *state, additional)
    return None, d_scores, None, None, None, d_additional, *(7 * [None])


maximise.register_autograd(_backward, setup_context=_keep)


def refuse_second_derivatives(ctx, d_gradients):  # type: ignore[no-untyped-def]
    """The backward pass of a backward pass."""
    raise NotImplementedError(
        "a compiled graph has first derivatives only; call the layer or loss outside of "
        "torch.compile for second ones"
    )


pull.register_autograd(refuse_second_derivatives)


def marginals_in_graph(
    layer: LocalSparseMAP, scores: Tensor, additional: Mapping[str, Tensor]
) -> Tensor | None:
    """Marginals of a batch; None for a layer's graph that the compiled function itself makes."""
    number = number_of(layer.graph, id(layer.graph), tuple(additional))
    if number < 0:
        return None
    batch = scores[None] if scores.ndim == layer.graph.ndim else scores
    tensors = [t.to("cpu", torch.float64) for t in (batch, *additional.values())]
    u = local_marginals(number, tensors[0], tensors[1:], layer.temperature, layer.tol)
    return u.reshape(scores.shape).to(scores.device, scores.dtype)


@torch.library.custom_op("didyma::local_marginals", mutates_args=())
def local_marginals(
    number: int, scores: Tensor, additional: list[Tensor], temperature: float, tol: float
) -> Tensor:
    """Marginals in the shape of the scores."""
    inference, u, _ = _solve_local(number, scores, additional, temperature, tol)
    inference.solution(single=False)  # warns
    return torch.from_numpy(np.ascontiguousarray(u)).reshape(scores.shape)


@local_marginals.register_fake
def _(number, scores, additional, temperature, tol):  # type: ignore[no-untyped-def]
    return scores.new_empty(scores.shape)


@torch.library.custom_op("didyma::pull_local", mutates_args=())
def pull_local(
    number: int,
    d_u: Tensor,
    scores: Tensor,
    additional: list[Tensor],
    temperature: float,
    tol: float,
) -> list[Tensor]:
    """Gradients with respect to the scores, and to each of the additional scores."""
    inference, u, numbers = _solve_local(number, scores, additional, temperature, tol)
    layout = inference.layout
    direction = d_u.contiguous().numpy().reshape(u.shape)
    extra = np.zeros((len(u), layout.extra.shape[1]))
    d_scores, d_extra = inference.apply_jacobian(numbers, direction, extra)
    places = [layout.additional[name] for name in inference.names]
    bounds = [(place.start, place.stop, place.shared) for place in places]
    return _gradients(d_scores, d_extra, bounds, [scores, *additional])


@pull_local.register_fake
def _(number, d_u, scores, additional, temperature, tol):  # type: ignore[no-untyped-def]
    return [t.new_empty(t.shape) for t in [scores, *additional]]


def _solve_local(
    number: int, scores: Tensor, additional: Sequence[Tensor], temperature: float, tol: float
) -> tuple[Any, Floats, NDArray[np.int64]]:
    from didyma.nn.local import LocalInference

    graph, names = STRUCTURES[number]
    inference = LocalInference(graph, names, temperature, tol, None)
    arrays = [t.contiguous().numpy() for t in additional]
    _, u, _, numbers = inference.maximise(scores.contiguous().numpy(), None, None, None, arrays)
    return inference, u, numbers


def _keep_local(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.number, scores, additional, ctx.temperature, ctx.tol = inputs
    ctx.save_for_backward(scores, *additional)


def _backward_local(ctx, d_u):  # type: ignore[no-untyped-def]
    scores, *additional = ctx.saved_tensors
    d_scores, *d_additional = pull_local(
        ctx.number, d_u, scores, additional, ctx.temperature, ctx.tol
    )
    return None, d_scores, d_additional, None, None


local_marginals.register_autograd(_backward_local, setup_context=_keep_local)
pull_local.register_autograd(refuse_second_derivatives)
