"""Fenchel-Young losses: six structured losses that differ in how they regularise the argmax.

    ℓ(η, g) = Ω*(η) + Ω(g) − η·g

is convex in the scores η, never negative, and zero iff the gold output g attains the maximum in Ω*.
Its gradient is what the model predicts minus the gold.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from didyma.errors import DataError, check_choice
from didyma.nn.autograd import conjugate, to_numpy
from didyma.nn.layers import StructureModule
from didyma.nn.objective import REGULARIZERS, Objective, hull_points
from didyma.parameters import check_parameter
from didyma.polytope.sparsemap import EXACT, SolverOptions
from didyma.structure import Structure
from didyma.structures.batches import check_positive

REDUCTIONS = ("mean", "sum", "none")


def reduce(values: Tensor, reduction: str, mask: Tensor | None = None) -> Tensor:
    """One value for each instance, their sum, or their mean over the instances that count."""
    if reduction == "none":
        return values
    if reduction == "sum" or not values.numel():  # the mean of none is 0
        return values.sum()
    if mask is None:
        return values.mean()
    return values.sum() / mask.bool().sum().clamp(min=1)


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
        check_choice(regularizer, REGULARIZERS, "regularizer")
        check_choice(reduction, REDUCTIONS, "reduction")
        check_positive(temperature, "temperature")
        check_parameter("margin", margin)
        self.regularizer = regularizer
        self.margin = float(margin)
        self.reduction = reduction

    def forward(
        self,
        scores: Tensor,
        gold: Any,
        lengths: Any = None,
        mask: Any = None,
        *,
        gold_weights: Any = None,
        **additional: Any,
    ) -> Tensor:
        """The loss in the type and on the device of the scores.

        Args:
            scores: one instance, or a batch along the first axis; −inf forbids a part.
            gold: outputs in the form that the structure predicts (tags, heads, columns, ...), or
                any points of their hull: floating-point numbers in the shape of the scores, such as
                marginals of a teacher. A structure without ``encode`` takes these alone, zeros and
                ones for one output. The value for such points lacks a constant with "crf", their
                entropy.
            lengths: the instances' own sizes, where they are padded.
            mask: which instances count, (B,). The others may hold anything.
            gold_weights: of several gold outputs for each instance, (B, G); ``gold`` then has a
                second axis of as many, and their weighted mean is the gold point.
            additional: scores of additional parts, such as ``transitions`` of a sequence.
        """
        if gold is None:
            raise DataError("expected one output per instance, found None", field="gold")
        if mask is not None:
            mask = torch.as_tensor(mask, device="cpu")  # once, for the values and for their mean
        if gold_weights is not None:
            gold = self._mean(scores, gold, gold_weights, lengths, additional)
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
        return reduce(values, self.reduction, mask).to(scores.device, scores.dtype)

    def _mean(
        self, scores: Tensor, gold: Any, weights: Any, lengths: Any, additional: dict[str, Any]
    ) -> Tensor:
        """The mean of several gold outputs, as a point of the hull."""
        single = scores.ndim == self.structure.ndim
        arrays = {name: to_numpy(values) for name, values in additional.items()}
        layout = self.structure.lay_out(to_numpy(scores), to_numpy(lengths), **arrays)
        outputs, shares = (to_numpy(v)[None] if single else to_numpy(v) for v in (gold, weights))
        points = torch.from_numpy(hull_points(self.structure, outputs, shares, layout))
        return points[0] if single else points

    def extra_repr(self) -> str:
        """The structure and what makes the loss."""
        return (
            f"{self.structure!r}, {self.regularizer!r}, margin={self.margin}, "
            f"temperature={self.temperature}, reduction={self.reduction!r}"
        )
