"""Candidates of model selection: sets of columns, and the rankers that are fitted to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import Columns, Matrix
from didyma.errors import DataError
from didyma.learning.scoring import SCALERS, linear_scores
from didyma.model import Model, Serialisable, State
from didyma.protocol import Estimator, call_routed, clone
from didyma.ranking.bins import Binned
from didyma.ranking.svm import SVMRanker
from didyma.text.baselines import Opponent
from didyma.text.features import FirstStage, SmallFeatures, WordVectors
from didyma.text.features.part import IN_LIST, RRF

SOME, MANY = 50, 200  # queries that bear an additive ranker, and the greatest C
CS = (0.01, 0.1, 1.0, 10.0, 100.0)
ADDITIVE_CS = (0.03, 0.1, 0.3, 1.0, 3.0)
SINGLE, ORDER, LINEAR = "", "the old order", "a linear ranker"  # what a ranker is blended with
SMALL = {*SmallFeatures().names, *FirstStage().names}
VECTORS = set(WordVectors(None).names)
IN_LISTS = " in lists"  # ends the names of sets with columns that compare a list's passages
SCALER = "MinMaxScaler"
DEVIATIONS = 4.0  # from the mean: what is farther off counts as that
BINS, LINE = 32, "none"
Vector: TypeAlias = NDArray[np.float64]


class Aim(NamedTuple):
    """What a ranker is fitted to: a loss, an order to blend with, and signs of weights.

    ``signs`` are 1 or −1 for columns with which scores must not fall, or not rise.
    """

    loss: str
    order: Opponent
    signs: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Candidate:
    """Some columns, and a path over C of linear or additive rankers of them."""

    name: str
    columns: tuple[str, ...]
    Cs: tuple[float, ...]
    additive: bool = False

    def __str__(self) -> str:
        return f"{self.name}, additive" if self.additive else self.name

    @property
    def settings(self) -> list[tuple[float, str]]:
        """Each C, with what the ranker is blended with: the order of `fits`."""
        blends = (SINGLE, ORDER, LINEAR) if self.additive else (SINGLE, ORDER)
        return [(C, blend) for C in self.Cs for blend in blends]

    def scores(self, lists: Lists, held_out: Lists, aim: Aim) -> Vector:
        """Held-out scores by each setting, learned from lists; shape (n_settings, n_rows)."""
        fits = self.fits(lists, aim)
        rows = fits[0]._inputs(held_out)
        return np.stack([linear_scores(rows, fit.coef) for fit in fits])

    def model(self, setting: tuple[float, str], lists: Lists, aim: Aim) -> Model:
        """The model of one setting, learned from lists."""
        C, _ = setting
        path = replace(self, Cs=tuple(c for c in self.Cs if c <= C))  # each begins where one ended
        return path.fits(lists, aim)[path.settings.index(setting)].model

    def fits(self, lists: Lists, aim: Aim) -> list[Fit]:
        """Fitted rankers: single, blended with an order, and additive with linear."""
        Cs = CS[: len(self.Cs)] if self.additive else self.Cs
        linear = LinearFit.path(lists, aim, Cs)
        old = linear[0].order(aim.order)
        if not self.additive:
            return [fit for line in linear for fit in (line, line.blend(old))]
        pairs = zip(AdditiveFit.path(lists, aim, self.Cs), linear)
        return [
            fit for steps, line in pairs for fit in (steps, steps.blend(old), steps.blend(line))
        ]


def candidates(
    names: Sequence[str],
    n_queries: int,
    *,
    quick: bool = False,
    sets: Sequence[str] | None = None,
    further: Sequence[str] = (),
    baseline: Sequence[str] = (),
) -> list[Candidate]:
    """What to try with these columns, the cheapest first; few queries bear no large C.

    Columns that are ``further`` than those of the text alone, such as signals, are tried by
    themselves, and all together with each set of the others; of sets without them only the first
    is tried. Sets with columns in lists are tried with an additive ranker as well, unless queries
    are few. ``sets`` are the names of those that may be tried, by default all; each has the columns
    of the ``baseline``.
    """
    absolute = [name for name in names if not name.endswith((IN_LIST, RRF))]
    further = [name for name in absolute if name in VECTORS or name in set(further)]
    lexical = [name for name in absolute if name not in set(further)]
    columns_of = {"small set": [name for name in lexical if name in SMALL]}
    if not quick:
        columns_of["plain set"] = [name for name in lexical if ":" not in name]
        columns_of["extended set"] = lexical
        if sets is not None:
            columns_of = {name: columns_of[name] for name in sets}
    if further:
        kind = "vectors" if VECTORS.issuperset(further) else "signals"
        first, *_ = columns_of
        together = {
            f"{name} and {kind}": [*columns, *further] for name, columns in columns_of.items()
        }
        columns_of = {kind: further, first: columns_of[first], **together}
        if kind == "vectors":  # which are no order by themselves
            del columns_of[kind]
    present = set(names)
    for name, columns in [] if quick else list(columns_of.items()):
        relative = [column + IN_LIST for column in columns if column + IN_LIST in present]
        columns_of[name + IN_LISTS] = [*columns, *relative]
    distinct = {  # of sets of the same columns, the first
        tuple(dict.fromkeys([*columns, *baseline])): name
        for name, columns in reversed(columns_of.items())
    }
    n_Cs = 3 if quick else len(CS) - (n_queries < MANY)
    linear = [Candidate(name, columns, CS[:n_Cs]) for columns, name in reversed(distinct.items())]
    additive = [
        replace(candidate, Cs=ADDITIVE_CS[:n_Cs], additive=True)
        for candidate in linear
        if candidate.name.endswith(IN_LISTS) and n_queries >= SOME
    ]
    return sorted([*linear, *additive], key=lambda candidate: len(candidate.columns))


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
        sums = np.bincount(groups.codes, scores, minlength=len(groups))
        return float(np.std(scores - (sums / np.maximum(groups.sizes, 1))[groups.codes]))

    @abstractmethod
    def _weights(self, other: LinearFit) -> Vector:
        """The weights of a linear ranker, as weights of the rows of this one."""

    @abstractmethod
    def _inputs(self, lists: Lists) -> Matrix:
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
    def path(cls, lists: Lists, aim: Aim, Cs: Sequence[float]) -> list[Self]:
        """One for each C."""
        scaling = clipping(lists.X)
        scaled = SCALERS[SCALER](lists.X, lists.groups, scaling)
        scaled_lists = lists.with_items(scaled, lists.feature_names)
        svms = SVMRanker(aim.loss).path(scaled_lists, None, Cs)
        _check_finished(svms)
        if aim.signs:
            signs = np.array([aim.signs.get(name, 0) for name in lists.features.labels])
            svms = [_with_signs(svm, scaled_lists, C, signs) for svm, C in zip(svms, Cs)]
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

    def _inputs(self, lists: Lists) -> Matrix:
        scaled: Matrix = SCALERS[SCALER](lists.X, lists.groups, self.scaling)
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

    features: Columns

    @classmethod
    def path(cls, lists: Lists, aim: Aim, Cs: Sequence[float]) -> list[Self]:
        """One for each C; where there is a sign, the function of the column rises or falls."""
        from didyma.ranking.additive import AdditiveSVMRanker

        signs = [(aim.signs or {}).get(name, 0) for name in lists.features.labels]
        rising, falling = ([n for n, sign in enumerate(signs) if sign == way] for way in (1, -1))
        ranker = AdditiveSVMRanker(
            aim.loss,
            bins=BINS,
            line=LINE,
            increasing=rising,
            decreasing=falling,
            interactions=0,
        )
        rankers = ranker.path(lists.X, lists.y, Cs, qid=lists.groups.codes)
        _check_finished(rankers)
        rows = lists.with_items(cast("Any", rankers[0].bins_.transform(lists.X)))
        return [cls(ranker, ranker.coef_, rows, lists.features) for ranker in rankers]

    def blend(self, other: LinearFit) -> Self:
        """The mean of both scores; functions that must rise do, whatever was rounded."""
        blended = super().blend(other)
        return replace(blended, coef=cast("Binned", self.lists.X).feasible(blended.coef))

    def _weights(self, other: LinearFit) -> Vector:
        return cast("Binned", self.lists.X).steps(cast("Vector", other.lists.X) * other.coef)

    def _inputs(self, lists: Lists) -> Matrix:
        return cast("Matrix", self.ranker.bins_.transform(lists.X))

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


@dataclass(frozen=True, eq=False)
class UnsavedModel(Serialisable):
    """A fitted estimator that no model file can hold; it scores rows as a `Model` does.

    The score is what it predicts; of a classifier, the mean of its classes by their probabilities.
    """

    estimator: Any
    features: Columns
    problem: str

    scales = False

    @property
    def name(self) -> str:
        """The class of what predicts."""
        steps = getattr(self.estimator, "steps", [("", self.estimator)])
        return type(steps[-1][1]).__name__

    @property
    def learned(self) -> dict[str, Any]:
        """Nothing that is known here."""
        return {}

    def predict(self, lists: Lists) -> Vector:
        """Score of each row; higher ranks first within a query."""
        lists = self.features.arrange(lists)
        if not hasattr(self.estimator, "predict_proba"):
            scores = call_routed(self.estimator, "predict", lists.X, qid=lists.qid)
            return np.asarray(scores, np.float64)
        shares = call_routed(self.estimator, "predict_proba", lists.X, qid=lists.qid)
        return np.asarray(shares @ self.estimator.classes_, np.float64)

    def state(self) -> State:
        """Refused."""
        raise DataError(self.problem, field="ranker")


def fit_ranker(ranker: Any, lists: Lists, eval_set: Lists | None = None) -> Model:
    """Fit a ranker of ours, or an estimator or pipeline of scikit-learn's, on rows of features."""
    if isinstance(ranker, Estimator):
        ranker.fit(lists, **({} if eval_set is None else {"eval_set": eval_set}))  # type: ignore[attr-defined]
    elif eval_set is not None:
        raise DataError("only a ranker of this library can watch lists", field="eval_set")
    else:
        call_routed(ranker, "fit", lists.X, lists.y, qid=lists.qid)
        first = ranker
        while hasattr(first, "steps"):
            first = first.steps[0][1]
        lists.features.remember(first)
    try:
        return Model.of(ranker)
    except DataError as error:
        return UnsavedModel(ranker, lists.features, str(error))  # type: ignore[return-value]


@dataclass(frozen=True)
class RankerCandidate(Candidate):
    """All columns, and a ranker with the parameters that it has."""

    ranker: Any = None

    @property
    def settings(self) -> list[tuple[float, str]]:
        """The only one."""
        return [(0.0, SINGLE)]

    def scores(self, lists: Lists, held_out: Lists, aim: Aim) -> Vector:
        """Held-out scores by a copy of the ranker that has learned from lists."""
        return fit_ranker(clone(self.ranker), lists).predict(held_out)[None]

    def model(self, setting: tuple[float, str], lists: Lists, aim: Aim) -> Model:
        """The ranker itself, which has learned from lists."""
        return fit_ranker(self.ranker, lists)
