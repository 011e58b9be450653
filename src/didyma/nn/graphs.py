"""Regularised argmax inside compiled graphs: the same, as operators over nothing but tensors.

A pass over one small instance takes half as long again as with a function of autograd, and there
is no forward mode, so that operators serve graphs alone. What the derivative needs is a tensor too:
the active structures of all instances, of which there are as many as the solver finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from didyma.nn.inference import Inference
from didyma.nn.objective import REGULARIZERS, Objective
from didyma.polytope.distributions import Distributions, apply_derivative
from didyma.polytope.sparsemap import SolverOptions

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
    value, u, v, numbers = inference.maximise(
        scores.numpy(),
        None if lengths is None else lengths.numpy(),
        None if gold is None else gold.numpy(),
        None if mask is None else mask.numpy(),
        [t.contiguous().numpy() for t in additional],
    )
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
    gradients = [d_scores]
    for start, stop, shared in places.tolist():
        block = d_extra[:, start:stop]
        gradients.append(block.sum(axis=0) if shared else np.ascontiguousarray(block))
    return [torch.from_numpy(g).reshape(t.shape) for g, t in zip(gradients, [u, *additional])]


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
