"""Latent rankings as a problem (Haponchyk & Moschitti 2019; Yu & Joachims 2009).

Labels say which rows are relevant, not how to order them. The gold output of a query is its best
ranking with all relevant rows first, the *completion*: found anew at each question (perceptron) or
once a round (CCCP).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data import Groups
from didyma.errors import DataError
from didyma.execution import Executor
from didyma.kernels import completion
from didyma.kernels.jit import specialise
from didyma.matrix import Matrix
from didyma.tasks.feature_maps import FeatureMap, Pairwise, Positional, Truncated
from didyma.tasks.losses import NDCG, AveragePrecision, ItemwiseLoss
from didyma.tasks.ranking import Answer, RankingProblem, path_for, row_numbers

__all__ = ["INFERENCES", "LatentRankingProblem"]

Vector = NDArray[np.float64]

INFERENCES = ("exact", "greedy", "sort")

violate: Any = None  # bound per loss, feature map and inference
NOWHERE = np.empty(0, dtype=np.int64)


def _answer_online(queries, i, scores, coef):  # type: ignore[no-untyped-def]
    """Against the completion at these scores."""
    _, _, counts, v, k, loss_scale, nowhere = queries
    return violate(scores, counts[i], v, k, loss_scale, nowhere, coef)


def _answer_fixed(queries, i, scores, coef):  # type: ignore[no-untyped-def]
    """Against the completion of the round."""
    _, starts, counts, v, k, loss_scale, places = queries
    own = places[starts[i] : starts[i + 1]]
    return violate(scores, counts[i], v, k, loss_scale, own, coef)


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
        execute: Executor | None = None,
    ) -> None:
        _check(loss, feature_map, inference, all_positions, y)
        self._inference, self._loss_scale = inference, float(loss_scale)
        self._all_positions, self._online = all_positions, online
        super().__init__(
            X, y, groups, loss, feature_map, query_weight=query_weight, execute=execute
        )

    def _oracle(
        self, loss: ItemwiseLoss, feature_map: FeatureMap, counts: NDArray[np.int64], longest: int
    ) -> tuple[Answer, tuple[Any, ...]]:
        v = feature_map.weights_for(longest)
        self._places = row_numbers(counts)
        self._credit = _credit_of(feature_map)
        places = NOWHERE if self._online else self._places
        answer = _answer_of(loss, feature_map, self._inference, self._all_positions, self._online)
        return answer, (counts, v, loss.cutoff, self._loss_scale, places)

    def begin(self, rng: np.random.Generator) -> Vector:
        """Order each class of each query at random; returns Σ_i c_i Ψ*_i."""
        _, starts, counts, *_ = self._queries
        blocks = np.repeat(np.arange(counts.size), counts.ravel())
        shuffled = np.lexsort((rng.random(len(blocks)), blocks))
        self._places[shuffled] = np.arange(len(blocks)) - np.repeat(starts[:-1], np.diff(starts))
        return self._gold()

    def complete(self, w: Vector) -> Vector:
        """Put the rows of each class in the order of their scores; returns Σ_i c_i Ψ*_i."""
        scores = self.scores(w)
        rows, starts, counts, *_ = self._queries
        self._each(
            lambda first, last: completion.reorder(
                rows, starts, counts, scores, self._places, first, last
            )
        )
        return self._gold()

    def _gold(self) -> Vector:
        rows, starts, counts, v, *_ = self._queries
        coefficients = np.zeros(self.n_rows)
        self._credit(rows, starts, counts, v, self._places, self.weights, coefficients)
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
    if inference not in INFERENCES:
        names = ", ".join(map(repr, INFERENCES))
        raise DataError(f"expected one of {names}, found {inference!r}", field="inference")
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


@cache
def _answer_of(
    loss: ItemwiseLoss, feature_map: FeatureMap, inference: str, all_positions: bool, online: bool
) -> Answer:
    seen = Positional() if all_positions else feature_map
    name = f"latent_{inference}_{loss.name}_{feature_map.name}_{seen.name}"
    found = specialise(
        completion.violate,
        name,
        **loss.steps,
        path=_path(loss, seen, inference),
        weigh=feature_map.weighers["weigh_positive"],
    )
    template: Callable[..., Any] = _answer_online if online else _answer_fixed
    name = f"{name}_{'online' if online else 'fixed'}"
    return Answer(name, specialise(template, f"answer_{name}", violate=found))


def _path(loss: ItemwiseLoss, feature_map: FeatureMap, inference: str) -> Any:
    if inference == "exact":
        return path_for(loss, feature_map)
    if inference == "sort":
        return completion.sorted_path
    weigh = feature_map.weighers["weigh_positive"]
    return specialise(
        completion.greedy_path, f"greedy_path_{feature_map.name}", weigh_positive=weigh
    )


@cache
def _credit_of(feature_map: FeatureMap) -> Any:
    weigh = feature_map.weighers["weigh_positive"]
    return specialise(completion.credit, f"credit_{feature_map.name}", weigh=weigh)
