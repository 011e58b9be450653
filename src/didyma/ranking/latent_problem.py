"""Latent rankings as a problem (Haponchyk & Moschitti 2019; Yu & Joachims 2009).

Labels say which rows are relevant, not how to order them. The gold output of a query is its best
ranking with all relevant rows first, the *completion*: found anew at each question (perceptron) or
once a round (CCCP).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.ranking as core
from didyma.data.groups import Groups
from didyma.data.matrix import Matrix
from didyma.errors import DataError, check_choice
from didyma.ranking.feature_maps import FeatureMap, Pairwise, Truncated
from didyma.ranking.losses import NDCG, AveragePrecision, ItemwiseLoss
from didyma.ranking.problem import RankingProblem, queries_of

Vector = NDArray[np.float64]

INFERENCES = ("exact", "greedy", "sort")


class LatentRankingProblem(RankingProblem):
    """Judged results whose gold rankings are completed, by a positional feature map.

    ``inference`` finds the most violating ranking: "exact" by the lattice, "greedy" as Haponchyk &
    Moschitti do (for average precision), or "sort", without any loss. ``loss_scale`` multiplies the
    loss in it. With ``all_positions`` inference scores every rank where the truncated map counts
    only the first P: their published procedure, whose cuts are valid but not the most violated.

    ``online`` completes at the scores of each question, as a perceptron wants it. Otherwise
    completions stay until `complete`.
    """

    def __init__(
        self,
        X: Matrix,
        y: Vector,
        groups: Groups,
        loss: ItemwiseLoss,
        feature_map: FeatureMap,
        *,
        inference: str = "exact",
        loss_scale: float = 1.0,
        all_positions: bool = False,
        online: bool = False,
        query_weight: Vector | None = None,
        n_jobs: int | None = None,
    ) -> None:
        _check(loss, feature_map, inference, all_positions, y)
        self._inference, self._loss_scale = inference, float(loss_scale)
        self._all_positions, self._online = all_positions, online
        super().__init__(X, y, groups, loss, feature_map, query_weight=query_weight, n_jobs=n_jobs)

    def _oracle(self, loss: ItemwiseLoss, feature_map: FeatureMap) -> Any:
        """The most violating ranking against the completion: of the scores, or `_places`."""
        self._queries, self._feature_map = queries_of(self._counts), feature_map
        self._places = self._row_numbers()
        longest = int(np.diff(self._starts).max(initial=0))
        v = scored = feature_map.described(longest)
        if self._all_positions:
            scored = core.feature_map("positional", feature_map.weights_for(longest))
        places = np.empty(0, np.int64) if self._online else self._places
        maps = loss.described(self._counts), v, scored
        return core.latent_oracle(self._queries, self._inference, *maps, self._loss_scale, places)

    def _row_numbers(self) -> NDArray[np.int64]:
        """0, 1, 2, … for the rows of each query."""
        starts = self._starts
        return np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))

    def begin(self, rng: np.random.Generator) -> Vector:
        """Order each class of each query at random; returns Σ_i c_i Ψ*_i."""
        blocks = np.repeat(np.arange(self._counts.size), self._counts.ravel())
        shuffled = np.lexsort((rng.random(len(blocks)), blocks))
        self._places[shuffled] = self._row_numbers()
        return self._gold()

    def complete(self, w: Vector) -> Vector:
        """Put the rows of each class in the order of their scores; returns Σ_i c_i Ψ*_i."""
        scores = self.scores(w)
        core.complete(self._queries, self._rows, scores, self._places, self._n_threads)
        return self._gold()

    def _gold(self) -> Vector:
        sizes = np.diff(self._starts)
        v = self._feature_map.weights_for(int(sizes.max(initial=0)))[self._places]
        if isinstance(self._feature_map, Truncated):
            v[self._places >= np.repeat(self._counts[:, 0], sizes)] = 0.0
        coefficients = np.zeros(self.n_rows)
        coefficients[self._rows] = np.repeat(self.weights, sizes) * v
        return self.gather(coefficients)


def _check(
    loss: ItemwiseLoss, feature_map: FeatureMap, inference: str, all_positions: bool, y: Vector
) -> None:
    if isinstance(feature_map, Pairwise):
        raise DataError(
            "the pairwise map has nothing latent: all completions share its features; use a "
            "positional one",
            field="feature_map",
        )
    check_choice(inference, INFERENCES, "inference")
    if inference == "greedy" and not isinstance(loss, AveragePrecision):
        raise DataError(
            f"greedy inference is for average precision only, found loss {loss}; 'exact' is for "
            "every loss",
            field="inference",
        )
    if all_positions and not isinstance(feature_map, Truncated):
        raise DataError(
            f"scoring all positions differs for the truncated map only, found {feature_map}",
            field="positions",
        )
    if isinstance(loss, NDCG) and len(np.unique(y)) > 2:
        raise DataError(
            "latent rankings tell relevant rows from others, so NDCG takes two grades only; "
            "SVMRanker learns from more",
            field="loss",
        )
