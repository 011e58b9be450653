"""LocalSparseMAP inside compiled graphs: the same, as operators over nothing but tensors.

What its derivative needs is no tensor, so that a backward pass solves again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from didyma.nn.graphs import STRUCTURES, number_of, refuse_second_derivatives
from didyma.nn.local import LocalInference
from didyma.structures.layout import Floats

if TYPE_CHECKING:
    from didyma.nn.local import LocalSparseMAP


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
    inference, u, _ = _solve(number, scores, additional, temperature, tol)
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
    inference, u, numbers = _solve(number, scores, additional, temperature, tol)
    assert inference.layout is not None
    direction = d_u.contiguous().numpy().reshape(u.shape)
    extra = np.zeros((len(u), inference.layout.extra.shape[1]))
    d_scores, d_extra = inference.apply_jacobian(numbers, direction, extra)
    gradients = [d_scores]
    for name in inference.names:
        place = inference.layout.additional[name]
        block = d_extra[:, place.start : place.stop]
        gradients.append(block.sum(axis=0) if place.shared else np.ascontiguousarray(block))
    return [torch.from_numpy(g).reshape(t.shape) for g, t in zip(gradients, [scores, *additional])]


@pull_local.register_fake
def _(number, d_u, scores, additional, temperature, tol):  # type: ignore[no-untyped-def]
    return [t.new_empty(t.shape) for t in [scores, *additional]]


def _solve(
    number: int, scores: Tensor, additional: Sequence[Tensor], temperature: float, tol: float
) -> tuple[LocalInference, Floats, NDArray[np.int64]]:
    graph, names = STRUCTURES[number]
    inference = LocalInference(graph, names, temperature, tol, None)
    arrays = [t.contiguous().numpy() for t in additional]
    _, u, _, numbers = inference.maximise(scores.contiguous().numpy(), None, None, None, arrays)
    return inference, u, numbers


def _keep(ctx, inputs, output):  # type: ignore[no-untyped-def]
    ctx.number, scores, additional, ctx.temperature, ctx.tol = inputs
    ctx.save_for_backward(scores, *additional)


def _backward(ctx, d_u):  # type: ignore[no-untyped-def]
    scores, *additional = ctx.saved_tensors
    d_scores, *d_additional = pull_local(
        ctx.number, d_u, scores, additional, ctx.temperature, ctx.tol
    )
    return None, d_scores, d_additional, None, None


local_marginals.register_autograd(_backward, setup_context=_keep)
pull_local.register_autograd(refuse_second_derivatives)
