"""The rankers that selection chooses from: linear, additive, and blends of two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Groups, Lists
from didyma.data.matrix import Matrix
from didyma.learning.scoring import SCALERS, linear_scores
from didyma.model import Model
from didyma.ranking.bins import Binned
from didyma.ranking.svm import SVMRanker
from didyma.text.opponents import Opponent

SCALER = "MinMaxScaler"
DEVIATIONS = 4.0  # from the mean: what is farther off counts as that
BINS, LINE = 32, "none"
Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fit(ABC):
    """A fitted ranker with its weights, or the weights of a blend.

    ``lists`` are those of training; their rows x are what ``coef`` weighs, the score is coef · x.
    """

    ranker: Any
    coef: Vector
    lists: Lists

    def blend(self, other: LinearFit) -> Self:
        """The mean of both scores, each divided by its standard deviation within queries."""
        first, second = (
            coef / (self._deviation(coef) or 1.0) for coef in (self.coef, self._weights(other))
        )
        return replace(self, coef=(first + second) / 2)

    def _deviation(self, coef: Vector) -> float:
        scores, groups = linear_scores(self.lists.X, coef), self.lists.groups
        means = np.bincount(groups.codes, scores, minlength=len(groups)) / np.maximum(
            groups.sizes, 1
        )
        return float(np.std(scores - means[groups.codes]))

    @staticmethod
    def scores(fits: Sequence[Fit], lists: Lists) -> NDArray[np.float64]:
        """Scores of each row by fits of one path, or blends of them; shape (n_fits, n_rows)."""
        rows = fits[0]._inputs(lists.X, lists.groups)
        return np.stack([linear_scores(rows, fit.coef) for fit in fits])

    @abstractmethod
    def _weights(self, other: LinearFit) -> Vector:
        """The weights of a linear ranker, as weights of the rows of this one."""

    @abstractmethod
    def _inputs(self, X: Matrix, groups: Groups) -> Matrix:
        """Rows of features as ``coef`` weighs them."""

    @property
    @abstractmethod
    def model(self) -> Model:
        """The model that can be saved."""


@dataclass(frozen=True, eq=False)
class LinearFit(Fit):
    """A linear ranker behind a scaler."""

    scaling: dict[str, Any]

    @classmethod
    def path(
        cls, lists: Lists, loss: str, Cs: Sequence[float], signs: Mapping[str, int] | None = None
    ) -> list[Self]:
        """One for each C; ``signs`` are those that the weights of some columns must have."""
        scaling = clipping(lists.X)
        scaled = SCALERS[SCALER](lists.X, lists.groups, scaling)
        scaled_lists = lists.with_items(scaled, lists.feature_names)
        svms = SVMRanker(loss).path(scaled_lists, None, Cs)
        _check_finished(svms)
        if signs:
            wanted = np.array([signs.get(name, 0) for name in lists.features.labels])
            svms = [_with_signs(svm, scaled_lists, C, wanted) for svm, C in zip(svms, Cs)]
        return [cls(svm, svm.coef_, scaled_lists, scaling) for svm in svms]

    def order(self, opponent: Opponent) -> Self:
        """An order that needs no training, in the place of what was learned."""
        names = self.lists.features.labels
        coef = np.zeros_like(self.coef)
        for column, weight in zip(opponent.columns, opponent.weights):
            place = names.index(column)
            coef[place] = weight / self.scaling["scale_"][place]
        return replace(self, coef=coef)

    def _weights(self, other: LinearFit) -> Vector:
        return other.coef

    def _inputs(self, X: Matrix, groups: Groups) -> Matrix:
        scaled: Matrix = SCALERS[SCALER](X, groups, self.scaling)
        return scaled

    @property
    def model(self) -> Model:
        """Scaler and weights."""
        ranker = copy(self.ranker)
        ranker.coef_ = self.coef
        return Model.of(ranker).behind(Model.scaling(SCALER, self.scaling, self.lists.features))


@dataclass(frozen=True, eq=False)
class AdditiveFit(Fit):
    """An additive ranker; a linear one that is blended in becomes step functions of its bins."""

    features: Any

    @classmethod
    def path(
        cls, lists: Lists, loss: str, Cs: Sequence[float], signs: Mapping[str, int] | None = None
    ) -> list[Self]:
        """One for each C; where ``signs`` has a column, its function rises (1) or falls (−1)."""
        from didyma.ranking.additive import AdditiveSVMRanker

        qid, names = lists.groups.codes, lists.features.labels
        rising, falling = (
            [n for n, name in enumerate(names) if (signs or {}).get(name) == sign]
            for sign in (1, -1)
        )
        ranker = AdditiveSVMRanker(
            loss, Cs[0], bins=BINS, line=LINE, increasing=rising, decreasing=falling
        )
        rankers = ranker.path(lists.X, lists.y, Cs, qid=qid)
        _check_finished(rankers)
        binned: Any = rankers[0].bins_.transform(lists.X)
        rows = lists.with_items(binned)
        return [cls(ranker, ranker.coef_, rows, lists.features) for ranker in rankers]

    def blend(self, other: LinearFit) -> Self:
        """The mean of both scores; functions that must rise do, whatever was rounded."""
        blended = super().blend(other)
        return replace(blended, coef=cast("Binned", self.lists.X).feasible(blended.coef))

    def _weights(self, other: LinearFit) -> Vector:
        return cast("Binned", self.lists.X).steps(cast("Vector", other.lists.X) * other.coef)

    def _inputs(self, X: Matrix, groups: Groups) -> Matrix:
        binned: Any = self.ranker.bins_.transform(X)
        return cast("Matrix", binned)

    @property
    def model(self) -> Model:
        """Bins and weights."""
        ranker = copy(self.ranker)
        ranker.coef_ = self.coef
        self.features.remember(ranker)
        return Model.of(ranker)


def clipping(X: NDArray[Any]) -> dict[str, Any]:
    """The state of a `MinMaxScaler` whose range is four standard deviations around the mean.

    Columns have a deviation of 1 then, and values far from those of training, which queries from
    elsewhere have, cannot outweigh all other columns.
    """
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation = np.where(deviation > 1e-12 * np.abs(mean), deviation, 1.0)  # of a constant: 1
    low, high = mean - DEVIATIONS * deviation, mean + DEVIATIONS * deviation
    return {
        "feature_range": (-DEVIATIONS, DEVIATIONS),
        "copy": True,
        "clip": True,
        "scale_": 1 / deviation,
        "min_": -mean / deviation,
        "data_min_": low,
        "data_max_": high,
        "data_range_": high - low,
        "n_samples_seen_": len(X),
    }


def _with_signs(svm: SVMRanker, lists: Lists, C: float, signs: NDArray[np.int_]) -> SVMRanker:
    """The ranker itself, or one without the columns whose weights would have the wrong sign."""
    X = lists.X
    while (wrong := svm.coef_ * signs < 0).any():
        X = np.where(wrong, 0.0, cast("Vector", X))
        (svm,) = SVMRanker(svm.loss).path(lists.with_items(X, lists.feature_names), None, [C])
        _check_finished([svm])
    return svm


def _check_finished(path: Sequence[Any]) -> None:
    """Raise KeyboardInterrupt again, which solvers catch to return what they have."""
    if path[-1].result_.status == "interrupted":
        raise KeyboardInterrupt
