"""Bounds of a ranking measure as a loss: what structural rankers minimise, for any network.

    hinge(s) = max over rankings r   Δ(r) + s·(Ψ(r) − Ψ*)
    ramp(s)  = max over rankings r   Δ(r) + s·(Ψ(r) − Ψ(r_s)),      r_s the ranking by s

are upper bounds on the loss Δ(r_s) of sorting by the scores s, the ramp the tighter one. The most
violating ranking, found by the oracle of `didyma.ranking.problem`, gives one coefficient per row,
c = Ψ(r) − Ψ* or Ψ(r) − Ψ(r_s), which is the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from didyma.data.groups import Groups, group_rows
from didyma.errors import DataError, check_choice
from didyma.nn.autograd import to_numpy
from didyma.nn.losses import REDUCTIONS
from didyma.ranking import losses
from didyma.ranking.feature_maps import FeatureMap, parse_feature_map
from didyma.ranking.latent_problem import LatentRankingProblem
from didyma.ranking.problem import RankingProblem, trainable_queries
from didyma.ranking.ramp import RampProblem

Vector = NDArray[np.float64]


class RankingLoss(nn.Module):
    """The hinge or the ramp of ranked rows, for any loss and feature map of the rankers.

    With ``loss="ap"`` and the pairwise map, a linear model with weight decay is SVMmap (Yue et al.
    2007); a network learns its features as well. Queries of one class only have the loss 0.

    >>> import torch
    >>> hinge = RankingLoss("ap")
    >>> scores = torch.tensor([0.2, 0.0, 1.0], requires_grad=True)
    >>> loss = hinge(scores, torch.tensor([1, 0, 0]))
    >>> loss.backward()
    >>> loss.detach(), scores.grad
    (tensor(1.3000), tensor([-1.,  0.,  1.]))

    Args:
        loss: "ap", "rr", "roc", "ndcg@10", "precision@5", … or a `didyma.ranking.losses` object.
        feature_map: "pairwise", "positional", "truncated", "top@10", … or an object.
        grades: bound on NDCG over more than two grades: "thresholds", a binary one for each, or
            "joint", one ranking for all, tighter and for short queries only.
        bound: "hinge" or "ramp". The ramp does not ask for more than a network can rank, where the
            hinge of a loss with a cut-off is often least for scores that are all equal. But
            it is not convex in the scores and pays for no ranking that is out of reach, so it is
            for networks that rank already: begin with the hinge of "ap" or "ndcg". Hence the hinge
            is the default, for all losses.
        latent: whether Ψ* is the best ranking that puts the relevant rows first, as Haponchyk and
            Moschitti (2019) have it, and not the mean of all of these. Needs a positional map; the
            loss is then a difference of convex functions.
        reduction: "mean" over the queries that have rows of different relevance, "sum", or "none"
            for one value per query, by first appearance.
    """

    def __init__(
        self,
        loss: str | losses.ItemwiseLoss = "ap",
        feature_map: str | FeatureMap = "pairwise",
        *,
        grades: str = "thresholds",
        bound: str = "hinge",
        latent: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        check_choice(reduction, REDUCTIONS, "reduction")
        check_choice(bound, ("hinge", "ramp"), "bound")
        if bound == "ramp" and latent:
            raise DataError("the ramp has no gold ranking that could be latent", field="latent")
        self.loss = losses.parse_loss(loss)
        self.feature_map = parse_feature_map(feature_map)
        self.grades = grades
        self.bound = bound
        self.latent = latent
        self.reduction = reduction

    def forward(self, scores: Tensor, relevance: Any, qid: Any = None, group: Any = None) -> Tensor:
        """The loss in the type and on the device of the scores.

        Args:
            scores: (n,), rows of all queries.
            relevance: (n,), grades from 0 up.
            qid: the query of each row, numbers or texts.
            group: or the sizes of consecutive queries; without either all rows are one query.
        """
        s = scores.cpu().double()
        values = s.detach().numpy()
        if values.ndim != 1 or not np.isfinite(values).all():
            description = f"shape {values.shape}" if values.ndim != 1 else "NaN or infinity"
            raise DataError(
                f"expected a vector of finite numbers, found {description}", field="scores"
            )
        grades = np.maximum(to_numpy(relevance).astype(np.float64), 0.0)
        if grades.shape != values.shape:
            raise DataError(
                f"expected {len(values)} grades, found shape {grades.shape}", field="relevance"
            )
        groups = group_rows(len(values), to_numpy(qid), to_numpy(group))
        trainable = trainable_queries(grades, groups, self.loss)
        if not trainable.any():
            size = len(groups) if self.reduction == "none" else ()
            return scores.sum() * scores.new_zeros(size)  # backward still finds its way
        problem = self._problem(values[:, None], grades, groups)
        weighted, loss = problem.respond(values)
        n, coefficients = problem.n_examples, torch.from_numpy(weighted)
        if self.reduction == "none":
            bound = torch.zeros(len(groups), dtype=torch.float64).index_add(
                0, torch.from_numpy(groups.codes), n * coefficients * s
            )
            risks = np.zeros(len(groups))
            risks[trainable] = problem.risks(np.ones(1))
            bound = bound + (torch.from_numpy(risks) - bound.detach())
        else:
            bound = (loss + coefficients @ s) * (n if self.reduction == "sum" else 1)
        return bound.to(scores.device, scores.dtype)

    def _problem(self, X: Vector, grades: Vector, groups: Groups) -> RankingProblem:
        if self.latent:
            return LatentRankingProblem(
                X, grades, groups, self.loss, self.feature_map, online=True, n_jobs=1
            )
        kind = RankingProblem if self.bound == "hinge" else RampProblem
        problem = kind(X, grades, groups, self.loss, self.feature_map, grades=self.grades, n_jobs=1)
        if isinstance(problem, RampProblem):
            problem.complete(np.ones(1))
        return problem

    def extra_repr(self) -> str:
        """What makes the loss."""
        kind = ", latent=True" if self.latent else ", bound='ramp'" if self.bound == "ramp" else ""
        return f"{str(self.loss)!r}, {str(self.feature_map)!r}{kind}, reduction={self.reduction!r}"
