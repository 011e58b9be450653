"""Losses over a pool of earlier solutions: few calls of a solver, or none at all.

All instances share one set of outputs. A pool P of them, to which the best output of some instances
is added in each step, stands for the whole set:

    nce        mean over a in P of θ·(a − g)                             (Mulamba et al. 2021)
    map        max over a in P of θ·(a − g)
    pointwise  mean over a in P of (θ·a − θ*·a)²                         (Mandi et al. 2022)
    pairwise   mean over a in P of max(0, margin + θ·a − θ·b)            b the best of P by θ*
    listwise   −Σ over a in P of softmax(θ*·a / t) log softmax(θ·a / t)

with predicted scores θ, true ones θ*, and g = argmax θ*·a.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from didyma.errors import DataError, check_choice
from didyma.nn.argmax import ArgmaxModule, as_scores, batched, take
from didyma.nn.losses import REDUCTIONS, reduce
from didyma.structure import Structure
from didyma.structures.batches import check_positive


class PoolLoss(ArgmaxModule):
    """A contrastive or a ranking loss over a pool of outputs.

    The pool begins with the best outputs for the true scores of the first batch; then a share
    ``solve_ratio`` of the instances is solved for their predicted scores, and what is new joins it.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> loss = PoolLoss(Choice(), "map", generator=torch.Generator().manual_seed(0))
    >>> true = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> predicted = torch.tensor([[2.0, 1.5, 0.0], [1.0, 0.0, 0.0]], requires_grad=True)
    >>> loss(predicted, true).backward()
    >>> len(loss.pool), predicted.grad[0]
    (2, tensor([ 0.5000, -0.5000,  0.0000]))

    Args:
        structure: whose outputs are the same for all instances.
        kind: "nce", "map", "pointwise", "pairwise" or "listwise".
        solve_ratio: share of instances to solve in each step, in [0, 1].
        margin: of "pairwise".
        temperature: t of "listwise".
        max_size: outputs to keep, the newest.
        reduction: "mean", "sum" or "none".
        generator: of the instances to solve, for results that can be repeated.
        n_jobs: threads over the batch; None means every core.

    Attributes:
        pool: tensor of shape (n_outputs, …), 0/1; saved with the module.
        n_solved: instances solved so far.
    """

    pool: Tensor

    def __init__(
        self,
        structure: Structure,
        kind: str = "nce",
        *,
        solve_ratio: float = 1.0,
        margin: float = 0.0,
        temperature: float = 1.0,
        max_size: int | None = None,
        reduction: str = "mean",
        generator: torch.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure, n_jobs)
        check_choice(kind, _LOSSES, "kind")
        check_choice(reduction, REDUCTIONS, "reduction")
        if not 0.0 <= solve_ratio <= 1.0:
            raise DataError(
                f"expected a share from 0 to 1, found {solve_ratio}", field="solve_ratio"
            )
        self.kind, self.solve_ratio, self.margin = kind, float(solve_ratio), float(margin)
        self.temperature = check_positive(temperature, "temperature")
        self.max_size, self.reduction = max_size, reduction
        self.generator, self.n_solved = generator, 0
        self.register_buffer("pool", torch.zeros(0))

    def forward(self, predicted: Tensor, true: Tensor, **additional: Any) -> Tensor:
        """The loss of predicted scores; additional scores are known, and need no gradient."""
        self._refuse_gradients(additional)
        scores = as_scores(true, predicted, "true", "predicted scores")
        batch, _, additional = batched(self.structure, predicted, None, additional)
        scores = scores.reshape(batch.shape)
        gold = self._parts(scores, None, additional)
        self._extend(gold)
        self._refresh(batch.detach(), additional)
        pool = self.pool.to(batch).flatten(1)
        values = _LOSSES[self.kind](
            self, batch.flatten(1), scores.flatten(1), gold.flatten(1), pool
        )
        return reduce(values, self.reduction)

    def _refresh(self, scores: Tensor, additional: Any) -> None:
        """Solve some instances for their predicted scores."""
        draws = torch.rand(len(scores), generator=self.generator)
        chosen = torch.nonzero(draws < self.solve_ratio).flatten()
        if len(chosen):
            _, additional = take(self.structure, scores, chosen, None, additional)
            self._extend(self._parts(scores[chosen.to(scores.device)], None, additional))
            self.n_solved += len(chosen)

    def _extend(self, outputs: Tensor) -> None:
        """Add outputs that are new; of too many the oldest are forgotten."""
        parts = outputs.to("cpu", torch.uint8)
        if self.pool.ndim > 1 and self.pool.shape[1:] != parts.shape[1:]:
            raise DataError(
                f"expected scores of shape {tuple(self.pool.shape[1:])} as before, found "
                f"{tuple(parts.shape[1:])}: a pool serves one set of outputs",
                field="predicted",
            )
        pool = self.pool.to("cpu", torch.uint8) if self.pool.ndim > 1 else parts[:0]
        seen = {row.tobytes() for row in pool.numpy()}
        rows = {row.tobytes(): row for row in parts.numpy()}
        if new := [row for key, row in rows.items() if key not in seen]:
            grown = torch.cat([pool, torch.from_numpy(np.stack(new))])
            self.pool = grown if self.max_size is None else grown[-self.max_size :]

    def extra_repr(self) -> str:
        """The structure, the loss and the share of instances solved."""
        return f"{self.structure!r}, {self.kind!r}, solve_ratio={self.solve_ratio}"


def _nce(loss: PoolLoss, theta: Tensor, true: Tensor, gold: Tensor, pool: Tensor) -> Tensor:
    return (theta @ pool.T).mean(1) - (theta * gold).sum(1)


def _map(loss: PoolLoss, theta: Tensor, true: Tensor, gold: Tensor, pool: Tensor) -> Tensor:
    return ((theta @ pool.T).amax(1) - (theta * gold).sum(1)).clamp(min=0.0)


def _pointwise(loss: PoolLoss, theta: Tensor, true: Tensor, gold: Tensor, pool: Tensor) -> Tensor:
    return ((theta - true) @ pool.T).square().mean(1)


def _pairwise(loss: PoolLoss, theta: Tensor, true: Tensor, gold: Tensor, pool: Tensor) -> Tensor:
    values = theta @ pool.T
    best = (true @ pool.T).argmax(1, keepdim=True)
    others = torch.ones_like(values).scatter_(1, best, 0.0)
    hinge = (loss.margin + values - values.gather(1, best)).clamp(min=0.0) * others
    return hinge.sum(1) / others.sum(1).clamp(min=1.0)


def _listwise(loss: PoolLoss, theta: Tensor, true: Tensor, gold: Tensor, pool: Tensor) -> Tensor:
    target = (true @ pool.T / loss.temperature).softmax(1)
    return -(target * (theta @ pool.T / loss.temperature).log_softmax(1)).sum(1)


_LOSSES = {
    "nce": _nce,
    "map": _map,
    "pointwise": _pointwise,
    "pairwise": _pairwise,
    "listwise": _listwise,
}
