"""Probabilities of relevance that depend on a query and one document alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.model import Saved, Serialisable
from didyma.ranking.featuriser import Windowed
from didyma.text.calibration import Calibration, least_logistic_loss, nested_choice, platt_targets

if TYPE_CHECKING:
    from didyma.text.selection import JudgedFeatures

RIDGES = (0.1, 0.01, 0.001)
DEVIATIONS = 4.0  # from the mean: what is farther off counts as that
MOST = 6000  # rows to learn from: a few dozen weights need no more
TOLERANCE = 1e-9  # of the loss, relative

Vector: TypeAlias = NDArray[np.float64]


class Logits(NamedTuple):
    """z = intercept + Σ_j w_j · min(max(scale_j x_j + offset_j, −4), 4).

    The terms are added from the first to the last, so that a row has the same bits among any
    others; those of a matrix product may depend on how many rows there are.
    """

    scales: Vector
    offsets: Vector
    weights: Vector
    intercept: float

    @classmethod
    def path(cls, X: Vector, share: Vector, signs: Vector) -> list[Self]:
        """Of the least logistic loss + ridge / 2 · |w|², for each ridge.

        A column whose weight would have the wrong sign is left out. Targets are Platt's: rows that
        are all of one kind have no infinite weights.
        """
        from didyma.text.candidates import clipping

        scaling = clipping(X)
        scales, offsets = scaling["scale_"], scaling["min_"]
        columns = np.vstack([_scaled(X, scales, offsets).T, np.ones(len(X))])
        target = platt_targets(share)
        w, path = np.zeros(len(columns)), []
        w[-1] = np.log(target.mean() / (1 - target.mean()))
        for ridge in RIDGES:
            penalty = np.append(np.full(X.shape[1], ridge * len(X)), 0.0)
            w = least_logistic_loss(columns, target, w, penalty, TOLERANCE)
            while (wrong := w[:-1] * signs < 0).any():
                columns[:-1][wrong], w[:-1][wrong] = 0.0, 0.0
                w = least_logistic_loss(columns, target, w, penalty, TOLERANCE)
            path.append(cls(scales, offsets, w[:-1], float(w[-1])))
        return path

    def __call__(self, X: Vector) -> Vector:
        """The sum of each row."""
        terms = np.empty((len(X), len(self.weights) + 1))
        terms[:, 0] = self.intercept
        terms[:, 1:] = _scaled(X, self.scales, self.offsets) * self.weights
        sums: Vector = np.cumsum(terms, axis=1)[:, -1]
        return sums


@dataclass(frozen=True, eq=False)
class RelevanceModel(Serialisable):
    """A logistic regression with a ridge over columns that do not compare a document with others.

    The chance of a document is that of its best window, calibrated by logits of models that had not
    seen the query. The ridge is chosen by other folds than those that it is judged on.

    Attributes
    ----------
    names : tuple of str
        The columns.
    scales, offsets, weights : arrays of shape (n_names,)
        From columns to deviations from their means in training, and what a deviation adds.
    intercept, ridge : float
    calibration : Calibration
        From logits to chances.
    """

    names: tuple[str, ...]
    scales: Annotated[Vector, Saved("names")]
    offsets: Annotated[Vector, Saved("names")]
    weights: Annotated[Vector, Saved("names")]
    intercept: float
    ridge: float
    calibration: Calibration

    @classmethod
    def fit(
        cls,
        judged: JudgedFeatures,
        names: Sequence[str],
        relevance: Vector,
        fold: NDArray[np.int64],
        signs: Mapping[str, int] | None = None,
    ) -> Self:
        """Learn from judged features; ``fold`` is that of each query.

        ``signs`` are 1 or −1 for columns with which the chance must not fall, or not rise.
        """
        rows, windows = judged.columns(names)
        groups, windowed = judged.lists.groups, judged.windowed
        wanted = np.array([(signs or {}).get(name, 0) for name in names], np.float64)
        step = -(-len(rows) // MOST)
        is_taught = groups.codes % step == 0  # every so many queries, if there are many rows
        of_row = np.unique(fold[groups.codes], return_inverse=True)[1]

        def learn(train: NDArray[np.bool_]) -> list[Logits]:
            taught = train & is_taught if (train & is_taught).any() else train
            return Logits.path(rows[taught], relevance[taught], wanted)

        def loss(logits: Logits, test: NDArray[np.bool_]) -> float:
            z = logits(rows[test])
            return float(np.sum(np.logaddexp(0, z) - relevance[test] * z))

        paths, best = learn(np.ones(len(rows), np.bool_)), 0
        z = paths[best](windows)
        if of_row.max() > 0:
            nested = nested_choice(learn, loss, of_row)
            best = nested.best
            for n, logits in enumerate(nested.held_out):
                is_own = of_row[windowed.item] == n
                z[is_own] = logits(windows[is_own])
        calibration = Calibration.fit(windowed.best(z)[0], relevance, groups)
        return cls(tuple(names), *paths[best], RIDGES[best], calibration)

    def __call__(self, windowed: Windowed, names: Sequence[str]) -> Vector:
        """The chance of each document; ``names`` are those of the columns of its windows."""
        columns = windowed.X[:, [names.index(name) for name in self.names]]
        return self.calibration(windowed.best(self.logits(columns))[0])

    @property
    def logits(self) -> Logits:
        """What the calibration is given."""
        return Logits(self.scales, self.offsets, self.weights, self.intercept)

    def _check_state(self) -> None:
        numbers = np.stack([self.scales, self.offsets, self.weights])
        if not self.names or not np.isfinite(numbers).all():
            raise ValueError("a chance of relevance needs columns with finite weights")


def _scaled(X: Vector, scales: Vector, offsets: Vector) -> Vector:
    """Deviations from the mean, four at most."""
    return np.clip(X * scales + offsets, -DEVIATIONS, DEVIATIONS)
