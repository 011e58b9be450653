"""Fenchel-Young losses: six structured losses that differ in how they regularise the argmax.

    ℓ(η, g) = Ω*(η) + Ω(g) − η·g

is convex in the scores η, never negative, and zero iff the gold output g attains the maximum in Ω*.
Its gradient is what the model predicts minus the gold.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch
from torch import Tensor

from didyma.errors import DataError
from didyma.nn.autograd import conjugate
from didyma.nn.layers import StructureModule
from didyma.nn.objective import REGULARIZERS, Objective
from didyma.polytope.sparsemap import EXACT, SolverOptions
from didyma.structure import Structure

__all__ = ["FenchelYoungLoss"]

REDUCTIONS = ("mean", "sum", "none")


class FenchelYoungLoss(StructureModule):
    """A loss between scores and gold outputs, for any structure.

    =============== ============ =================================== ====================
    loss            regularizer  Ω*(η)                               Ω
    =============== ============ =================================== ====================
    perceptron      perceptron   max over outputs of η·a             0
    CRF             crf          t log Σ over outputs of exp(η·a/t)  −t × entropy
    SparseMAP       sparsemap    max over the hull of η·u − t/2 ‖u‖²  t/2 ‖u‖²
    =============== ============ =================================== ====================

    A ``margin`` turns them into the structured SVM, the margin CRF and margin SparseMAP: an output
    then has to score lower than the gold by the margin for each gold part that it lacks (Hamming
    cost), or it adds to the loss.

    >>> import torch
    >>> from didyma.structures import Choice
    >>> svm = FenchelYoungLoss(Choice(), "perceptron", margin=1.0)
    >>> scores = torch.tensor([[1.0, 0.8, 0.0]], requires_grad=True)
    >>> loss = svm(scores, torch.tensor([0]))
    >>> loss.backward()
    >>> loss.detach(), scores.grad
    (tensor(0.8000), tensor([[-1.,  1.,  0.]]))

    Args:
        structure: of `didyma.structures`, or your own `didyma.Structure`; "crf" needs tractable
            marginals.
        regularizer: "perceptron", "crf" or "sparsemap".
        margin: cost of each gold part that an output lacks.
        temperature: weight t of the regulariser; the perceptron has none.
        reduction: "mean" over the instances that count, "sum", or "none" for one value each.
        tol, max_iter, n_jobs: as for `sparsemap`.
    """

    def __init__(
        self,
        structure: Structure,
        regularizer: str = "sparsemap",
        *,
        margin: float = 0.0,
        temperature: float = 1.0,
        reduction: str = "mean",
        tol: float = 1e-9,
        max_iter: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(structure, temperature, tol, max_iter, n_jobs)
        for name, value, choices in (
            ("regularizer", regularizer, tuple(REGULARIZERS)),
            ("reduction", reduction, REDUCTIONS),
        ):
            if value not in choices:
                raise DataError(
                    f"expected one of {', '.join(choices)}, found {value!r}", field=name
                )
        if not (margin >= 0.0 and isfinite(margin)):
            raise DataError(f"expected a number from 0 up, found {margin}", field="margin")
        if not (temperature > 0.0 and isfinite(temperature)):
            raise DataError(f"expected a positive number, found {temperature}", field="temperature")
        self.regularizer = regularizer
        self.margin = float(margin)
        self.reduction = reduction

    def forward(
        self,
        scores: Tensor,
        gold: Any,
        lengths: Any = None,
        mask: Any = None,
        **additional: Any,
    ) -> Tensor:
        """The loss in the type and on the device of the scores.

        Args:
            scores: one instance, or a batch along the first axis; −inf forbids a part.
            gold: outputs in the form that the structure predicts (tags, heads, columns, ...); zeros
                and ones in the shape of the scores for a structure without ``encode``.
            lengths: the instances' own sizes, where they are padded.
            mask: which instances count, (B,). The others may hold anything.
            additional: scores of additional parts, such as ``transitions`` of a sequence.
        """
        if gold is None:
            raise DataError("expected one output per instance, found None", field="gold")
        if mask is not None:
            mask = torch.as_tensor(mask, device="cpu")  # once, for the values and for their mean
        values, _ = conjugate(
            Objective(
                self.structure,
                SolverOptions(self.temperature, self.tol, self.max_iter, self.n_jobs, False, EXACT),
                REGULARIZERS[self.regularizer],
                self.margin,
            ),
            scores,
            lengths,
            gold,
            mask,
            additional,
        )
        if self.reduction != "none":
            values = values.sum() / (self._count(values, mask) if self.reduction == "mean" else 1)
        return values.to(scores.device, scores.dtype)

    @staticmethod
    def _count(values: Tensor, mask: Tensor | None) -> Any:
        """Instances that count; at least 1, so that the mean of none is 0."""
        if mask is None:
            return max(values.numel(), 1)
        return mask.bool().sum().clamp(min=1)

    def extra_repr(self) -> str:
        """The structure and what makes the loss."""
        return (
            f"{self.structure!r}, {self.regularizer!r}, margin={self.margin}, "
            f"temperature={self.temperature}, reduction={self.reduction!r}"
        )
