"""The ramp bound of a ranking loss (Chapelle, Do, Teo, Le & Smola 2008).

    R_i(w) = max_y [Δ_i(y) + w·Ψ_i(y)] − max_y w·Ψ_i(y),      Δ_i(ŷ_w) ≤ R_i(w) ≤ hinge_i(w)

It asks that the ranking by w be good, not that a perfect one beat all others: a query that no w
ranks well costs at most about its loss, where the hinge grows with w without bound. A difference of
convex functions, for `didyma.learning.cccp`: between rounds the second maximiser, the ranking that
the weights predict, stays, and is in the place of the perfect ranking.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma._core.ranking import ramp_oracle
from didyma.ranking.feature_maps import FeatureMap
from didyma.ranking.losses import NDCG, AveragePrecision, ItemwiseLoss, PrecisionAt, StepLoss
from didyma.ranking.problem import RankingProblem, oracle_of

Vector = NDArray[np.float64]

BOUNDS = ("auto", "hinge", "ramp")


def uncut(loss: ItemwiseLoss) -> ItemwiseLoss:
    """The loss at whose optimum the ramp of a loss begins: without cut-off, or average precision.

    >>> str(uncut(NDCG(k=10))), str(uncut(PrecisionAt(k=5, rel=2.0)))
    ('ndcg', 'ap(rel=2)')
    """
    if isinstance(loss, NDCG):
        return replace(loss, k=None)
    if isinstance(loss, (PrecisionAt, StepLoss)):
        return AveragePrecision(rel=loss.rel)
    return loss


def bound_of(bound: str, loss: ItemwiseLoss) -> str:
    """What "auto" stands for: the ramp for losses with a cut-off and losses of one's own."""
    return bound if bound != "auto" else "hinge" if uncut(loss) == loss else "ramp"


class RampProblem(RankingProblem):
    """Judged results under the ramp bound; `complete` predicts the rankings of a round."""

    def _oracle(self, loss: ItemwiseLoss, feature_map: FeatureMap) -> Any:
        """The most violating ranking of a query, against the predicted one of the round."""
        self._predicted = np.zeros(len(self._rows))  # Ψ(ŷ) − Ψ*, by row
        kind = "predicted", loss, feature_map, self.grades == "thresholds"
        self._prediction = self._problem(oracle_of(*kind, self._counts, self._gains))
        return ramp_oracle(super()._oracle(loss, feature_map), self._starts, self._predicted)

    def begin(self, rng: np.random.Generator) -> Vector:
        """Prefer no ranking: the mean of all."""
        return self.complete(np.zeros(self.n_features))

    def complete(self, w: Vector) -> Vector:
        """Predict the ranking of each query at w; returns Σ_i c_i (Ψ_i(ŷ_i) − Ψ*_i)."""
        coefficients = np.zeros(self.n_rows)
        once = np.ones(self.n_examples)
        self._prediction.respond(self.scores(w), once, coefficients, self._n_threads)
        self._predicted[:] = coefficients[self._rows]
        return self.gather(self.spread(self.weights) * self.gold_rows())

    def slopes(self, scores: Vector) -> tuple[Vector, float]:
        """The same against the rankings that the scores predict themselves."""
        coefficients, loss = self.respond(scores)
        predicted = np.zeros(self.n_rows)
        self._prediction.respond(scores, self.weights, predicted, self._n_threads)
        return coefficients + self.spread(self.weights) * self.gold_rows() - predicted, loss

    def gold_rows(self) -> Vector:
        """Ψ_i(ŷ_i) − Ψ*_i of each query, as coefficients of its rows."""
        coefficients = np.zeros(self.n_rows)
        coefficients[self._rows] = self._predicted
        return coefficients

    def golds(self) -> Vector:
        """Ψ_i(ŷ_i) − Ψ*_i of each query, as rows."""
        directions = np.empty((self.n_examples, self.n_features))
        self.kernel.gather_each(self.gold_rows(), directions, self._n_threads)
        return directions
