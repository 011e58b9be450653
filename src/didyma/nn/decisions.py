"""Learning to decide: losses and measures of scores that a solver will act on.

True scores θ say how good each part of a decision is (costs are negative scores), predicted ones θ̂
are what the decision a(θ̂) = argmax θ̂·a is made by. What it loses is its *regret*,

    regret(θ̂, θ) = max θ·a − θ·a(θ̂) ≥ 0
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from didyma.errors import DataError
from didyma.nn.argmax import as_scores, batched, dot, maximise
from didyma.nn.autograd import to_numpy
from didyma.nn.losses import FenchelYoungLoss
from didyma.structure import Structure


class SPOPlusLoss(FenchelYoungLoss):
    """SPO+, the convex bound of the regret (Elmachtoub & Grigas 2022), and smooth forms of it.

        L(θ̂, θ) = max over outputs of (2 θ̂ − θ)·a  −  (2 θ̂ − θ)·a(θ)

    is the perceptron loss of the scores 2 θ̂ − θ, with the best decision a(θ) as gold. Another
    regulariser makes it smooth: "sparsemap" for any structure, "crf" where sums are tractable.
    Divided by a temperature t the scores weigh more; towards 0 it is SPO+ again.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> true, predicted = torch.tensor([[-1.0, -3.0]]), torch.tensor([[-2.0, -1.5]])
    >>> predicted.requires_grad_()
    tensor([[-2.0000, -1.5000]], requires_grad=True)
    >>> loss = SPOPlusLoss(Choice())(predicted, true)
    >>> loss.backward()
    >>> loss.item(), predicted.grad  # the regret is 2
    (3.0, tensor([[-2.,  2.]]))

    Args:
        structure: of `didyma.structures`, or your own `didyma.Structure`.
        regularizer: "perceptron" (SPO+ itself), "sparsemap" or "crf".
        temperature, reduction, tol, max_iter, n_jobs: as for `FenchelYoungLoss`.
    """

    def __init__(
        self, structure: Structure, regularizer: str = "perceptron", **options: Any
    ) -> None:
        super().__init__(structure, regularizer, **options)

    def forward(  # type: ignore[override]
        self,
        predicted: Tensor,
        true: Tensor,
        lengths: Any = None,
        mask: Any = None,
        *,
        decision: Tensor | None = None,
        **additional: Any,
    ) -> Tensor:
        """The loss of predicted scores.

        Args:
            predicted: scores, one instance or a batch.
            true: scores of the same shape.
            lengths: as for `FenchelYoungLoss`.
            mask: which instances count, (B,).
            additional: scores of additional parts, which are known.
            decision: the best one for the true scores, as `FenchelYoungLoss` takes it; solved for
                if not given.
        """
        true = as_scores(true, predicted, "true", "predicted scores")
        if decision is None:
            decision = self._decide(true, lengths, additional)
        forbidden = true == -torch.inf
        scores = torch.where(forbidden, true, 2 * predicted - true)
        return super().forward(scores, decision, lengths, mask, **additional)

    def _decide(self, true: Tensor, lengths: Any, additional: dict[str, Any]) -> Tensor:
        """The best decision; one with additional parts is known by the output that has them."""
        with torch.no_grad():
            data = {name: v for name, v in additional.items() if name in self.structure.data}
            if len(data) == len(additional):
                return maximise(self.structure, true, lengths, data, self.n_jobs)[1].double()
            arrays = {
                name: to_numpy(values)
                for name, values in {"lengths": lengths, **additional}.items()
                if name not in data
            }
            outputs = self.structure.predict(to_numpy(true), **arrays, **data)
            return torch.from_numpy(outputs)


def regret(
    structure: Structure,
    predicted: Any,
    true: Any,
    lengths: Any = None,
    *,
    normalized: bool = False,
    n_jobs: int | None = None,
    **additional: Any,
) -> Tensor:
    """What decisions by predicted scores lose against the best ones: one value for each instance.

    Normalised, one number: the sum of the regrets over the sum of |max θ·a|. Arrays will do, too.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> true = torch.tensor([[-1.0, -3.0], [-1.0, -2.0]])
    >>> predicted = torch.tensor([[-2.0, -1.5], [-1.0, -1.5]])
    >>> regret(Choice(), predicted, true)
    tensor([2., 0.])
    >>> regret(Choice(), predicted, true, normalized=True).item()
    1.0
    """
    scores, estimates = torch.as_tensor(true), torch.as_tensor(predicted)
    if estimates.shape != scores.shape:
        raise DataError(
            f"expected the shape of the true scores, {tuple(scores.shape)}, found "
            f"{tuple(estimates.shape)}",
            field="predicted",
        )
    with torch.no_grad():
        single = scores.ndim == structure.ndim
        scores, lengths, additional = batched(structure, scores, lengths, additional)
        estimates = estimates.reshape(scores.shape)
        best, _ = maximise(structure, scores, lengths, additional, n_jobs)
        value, decision = maximise(structure, estimates, lengths, additional, n_jobs)
        of_additional = value - dot(estimates, decision)
        losses = (best - dot(scores, decision) - of_additional).clamp(min=0.0)
        if single:
            losses, best = losses[0], best[0]
        return losses.sum() / best.abs().sum() if normalized else losses
