"""The ramp bound of a ranking loss (Chapelle, Do, Teo, Le & Smola 2008).

    R_i(w) = max_y [Δ_i(y) + w·Ψ_i(y)] − max_y w·Ψ_i(y),      Δ_i(ŷ_w) ≤ R_i(w) ≤ hinge_i(w)

It asks that the ranking by w be good, not that a perfect one beat all others: a query that no w
ranks well costs at most about its loss, where the hinge grows with w without bound. A difference of
convex functions, for `didyma.learning.cccp`: between rounds the second maximiser, the ranking that
the weights predict, stays, and is in the place of the perfect ranking.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.kernels import interleave, prediction
from didyma.kernels.jit import specialise
from didyma.tasks.feature_maps import FeatureMap, Pairwise
from didyma.tasks.losses import NDCG, AveragePrecision, ItemwiseLoss, PrecisionAt, StepLoss
from didyma.tasks.ranking import Answer, RankingProblem, answer_by_oracle

__all__ = ["BOUNDS", "RampProblem", "bound_of", "uncut"]

Vector = NDArray[np.float64]

BOUNDS = ("auto", "hinge", "ramp")

answer: Any = None  # global name of the templates: the hinge's answer, or the predicted ranking


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


def _answer(queries, i, scores, coef):  # type: ignore[no-untyped-def]
    """The most violating ranking of query i, against the predicted one of the round."""
    rows, starts, about, predicted = queries
    loss = answer((rows, starts, *about), i, scores, coef)
    for r in range(coef.shape[0]):
        coef[r] -= predicted[starts[i] + r]
    return loss


def _predict_each(queries, scores, predicted, first, last):  # type: ignore[no-untyped-def]
    """Predicted rankings of the queries from first to last."""
    rows, starts = queries[0], queries[1]
    for i in range(first, last):
        own = slice(starts[i], starts[i + 1])
        answer(queries, i, scores[rows[own]], predicted[own])


class RampProblem(RankingProblem):
    """Judged results under the ramp bound; `complete` predicts the rankings of a round."""

    def _oracle(
        self, loss: ItemwiseLoss, feature_map: FeatureMap, counts: NDArray[np.int64], longest: int
    ) -> tuple[Answer, tuple[Any, ...]]:
        hinge, about = super()._oracle(loss, feature_map, counts, longest)
        self._predicted = np.zeros(int(counts.sum()))  # Ψ(ŷ) − Ψ*, by row
        self._predict = _predict_of(loss, feature_map, self.grades == "thresholds")
        return _ramp_of(hinge), (about, self._predicted)

    def begin(self, rng: np.random.Generator) -> Vector:
        """Prefer no ranking: the mean of all."""
        return self.complete(np.zeros(self.n_features))

    def complete(self, w: Vector) -> Vector:
        """Predict the ranking of each query at w; returns Σ_i c_i (Ψ_i(ŷ_i) − Ψ*_i)."""
        scores = self.scores(w)
        rows, starts, about, _ = self._queries
        queries = (rows, starts, *about)
        self._each(lambda first, last: self._predict(queries, scores, self._predicted, first, last))
        return self.gather(self.spread(self.weights) * self.gold_rows())

    def gold_rows(self) -> Vector:
        """Ψ_i(ŷ_i) − Ψ*_i of each query, as coefficients of its rows."""
        coefficients = np.zeros(self.n_rows)
        coefficients[self._queries[0]] = self._predicted
        return coefficients

    def golds(self) -> Vector:
        """Ψ_i(ŷ_i) − Ψ*_i of each query, as rows."""
        rows, starts, *_ = self._queries
        found = np.zeros((self.n_examples, self.n_features))

        def combine(first: int, last: int) -> None:
            for i in range(first, last):
                own = slice(starts[i], starts[i + 1])
                self._compiled.combine(self._storage, rows[own], self._predicted[own], found[i])

        self._each(combine)
        return found


@cache
def _ramp_of(hinge: Answer) -> Answer:
    name = f"ramp_{hinge.name}"
    return Answer(name, specialise(_answer, f"answer_{name}", answer=hinge.function))


@cache
def _predict_of(loss: ItemwiseLoss, feature_map: FeatureMap, thresholds: bool) -> Any:
    name = f"predict_{feature_map.name}"
    if isinstance(feature_map, Pairwise):
        oracle = prediction.predict_pairs
    else:
        weigh = feature_map.weighers["weigh_positive"]
        oracle = specialise(prediction.predict_places, name, weigh_positive=weigh)
    if thresholds:
        name, scale = f"{name}_thresholds", loss.steps["scale"]
        oracle = specialise(interleave.thresholds, name, binary=oracle, scale=scale)
    found = specialise(answer_by_oracle, f"answer_{name}", oracle=oracle)
    return specialise(_predict_each, f"{name}_each", answer=found)
