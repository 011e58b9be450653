"""Which features, which ranker, which C: chosen by cross-validation over queries."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.data import Lists
from didyma.execution import threads
from didyma.features.text import FirstStage, SmallFeatures, WordVectors
from didyma.features.text.features import IN_LIST
from didyma.features.windowed import Windowed
from didyma.metrics import Evaluator
from didyma.model import Model
from didyma.rerank.target import Target
from didyma.scoring import SCALERS, linear_scores
from didyma.tasks.ranking_svm import PlainSVM

__all__ = ["Featured", "Rung", "Search", "Trial", "Tried", "ladder"]

FOLDS = 5
SCALER = "MinMaxScaler"
FEWEST, MANY = 8, 200  # queries to learn from
CS = (0.01, 0.1, 1.0, 10.0, 100.0)
SHARES = (1.0, 0.5)  # of what was learned, beside the order that needs no training
DEVIATIONS = 4.0  # from the mean: what is farther off counts as that
SMALL = {*SmallFeatures().names, *FirstStage().names}
VECTORS = set(WordVectors(None).names)
Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Rung:
    """A way to rank that is tried: some columns and a path over C."""

    name: str
    columns: tuple[str, ...]
    Cs: tuple[float, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Trial:
    """How a rung did with one C: scores of each query by a model that has not seen it.

    ``share`` is that of what was learned where it is mixed with the order that needs no training;
    ``values`` are those of the measure, one for each query that has a better and a worse passage.
    """

    rung: Rung
    C: float
    share: float
    scores: Vector
    values: Vector

    @property
    def mean(self) -> float:
        """Mean of the measure."""
        return float(self.values.mean())

    def __str__(self) -> str:
        mixed = "" if self.share == 1 else f", mixed with {1 - self.share:.0%} of the old order"
        return f"{self.rung}, C={self.C:g}{mixed}"


@dataclass(frozen=True)
class Tried:
    """What a callback is told after each rung; True ends the search."""

    number: int
    of: int
    rung: str
    mean: float
    best: float
    seconds: float


Watcher: TypeAlias = Callable[[Tried], bool | None]


@dataclass(frozen=True, eq=False)
class Featured:
    """Features of judged lists: all windows to score, and of each row the one to learn from."""

    lists: Lists
    windowed: Windowed
    names: tuple[str, ...]
    shown: NDArray[np.int64]

    @classmethod
    def of(
        cls, lists: Lists, windowed: Windowed, names: tuple[str, ...], target: Target, by: str
    ) -> Self:
        """Rows show the window that is best by a column; labels become grades."""
        shown = windowed.best(windowed.X[:, names.index(by)])[1]
        graded = Lists(lists.items, target.grades, grouping=lists.groups)
        return cls(graded, windowed, names, shown)

    def best(self, column: str) -> Vector:
        """A column's value for each row, that of its best window."""
        return self.windowed.best(self.windowed.X[:, self.names.index(column)])[0]

    def columns(self, names: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of each row, and of each window, these features."""
        places = [self.names.index(name) for name in names]
        windows = np.ascontiguousarray(self.windowed.X[:, places])
        whole = len(windows) == len(self.shown)
        return (windows if whole else windows[self.shown]), windows


def ladder(
    names: Sequence[str],
    n_queries: int,
    *,
    quick: bool = False,
    sets: Sequence[str] | None = None,
) -> list[Rung]:
    """What to try with these columns, the cheapest first; few queries bear no large C.

    ``sets`` are the names of those that may be tried, by default all.
    """
    own = [name for name in names if not name.endswith(IN_LIST)]
    known = {"small set": [name for name in own if name in SMALL]}
    if quick:
        return [Rung("small set", tuple(known["small set"]), CS[:3])]
    known["plain set"] = [name for name in own if ":" not in name and name not in VECTORS]
    known["extended set"] = [name for name in own if name not in VECTORS]
    if sets is not None:
        known = {name: known[name] for name in sets}
    given = [name for name in own if name in VECTORS]
    if given:
        known |= {f"{name} and vectors": [*columns, *given] for name, columns in known.items()}
    present = set(names)
    for name, columns in list(known.items()):
        beside = [column + IN_LIST for column in columns if column + IN_LIST in present]
        known[f"{name} in lists"] = [*columns, *beside]
    distinct = {tuple(columns): name for name, columns in reversed(known.items())}
    Cs = CS if n_queries >= MANY else CS[:-1]
    return [Rung(name, columns, Cs) for columns, name in reversed(distinct.items())]


class Search:
    """Cross-validated trials of rungs, the cheapest first, within a budget of seconds.

    Folds are of queries. Features know the words of all lists, as they will when the model is in
    use, but no labels.
    """

    def __init__(
        self, judged: Featured, target: Target, orders: Sequence[str], random_state: int = 0
    ) -> None:
        self.judged, self.target = judged, target
        groups = judged.lists.groups
        self.usable = np.flatnonzero(groups.mixed(target.grades > _least(target, groups)))
        n_folds = min(FOLDS, len(self.usable))
        self.fold = np.random.default_rng(random_state).permutation(len(groups)) % max(n_folds, 1)
        order = np.random.default_rng(random_state).permutation(len(self.usable))
        self.fold[self.usable] = order % max(n_folds, 1)  # as even as can be where it matters
        self.n_folds = n_folds
        self.trials: list[Trial] = []
        self.untried: tuple[Rung, ...] = ()
        self.interrupted = False
        known = {name: self.values(judged.best(name)) for name in orders}
        self.baseline = max(known, key=lambda name: known[name].mean()) if n_folds else orders[0]
        self.baseline_values = known[self.baseline]

    def values(self, scores: Vector) -> Vector:
        """The measure for each usable query."""
        evaluator = Evaluator(self.target.grades, self.judged.lists.groups, self.target.measure)
        (measure,) = evaluator.measures
        return evaluator(scores)[measure][self.usable]

    def run(
        self, rungs: Sequence[Rung], budget: float = np.inf, callback: Watcher | None = None
    ) -> None:
        """Try rungs until the time is up, the first in any case; none with too few queries.

        Ctrl-C ends the search, if there is something to keep.
        """
        if len(self.usable) < FEWEST:
            return
        try:
            self._run(rungs, budget, callback)
        except KeyboardInterrupt:
            if not self.trials:
                raise
            self.interrupted = True

    def _run(self, rungs: Sequence[Rung], budget: float, callback: Watcher | None) -> None:
        began = time.perf_counter()
        longest = 0.0
        for number, rung in enumerate(rungs):
            start = time.perf_counter()
            if number and start - began + longest > budget:
                self.untried = tuple(rungs[number:])
                break
            found = list(self._try(rung))
            self.trials += found
            longest = max(longest, time.perf_counter() - start)
            if callback is not None:
                mean = max(trial.mean for trial in found)
                best = max(trial.mean for trial in self.trials)
                spent = time.perf_counter() - began
                if callback(Tried(number + 1, len(rungs), str(rung), mean, best, spent)):
                    break

    def _try(self, rung: Rung) -> Iterator[Trial]:
        rows, windows = self.judged.columns(rung.columns)
        codes = self.judged.lists.groups.codes
        item = self.judged.windowed.item
        settings = [(C, share) for C in rung.Cs for share in SHARES]
        scores = np.zeros((len(settings), len(windows)))

        def work(fold: int) -> None:
            train = np.isin(codes, self.usable[self.fold[self.usable] != fold])
            test = self.fold[codes[item]] == fold
            lists = self.judged.lists.with_items(rows, rung.columns).select(train)
            path = Fitted.path(lists, self.target.loss, rung.Cs)
            fitted = [own.mixed(share, self.baseline) for own in path for share in SHARES]
            held_out = self.judged.lists.select(item[test]).with_items(windows[test])
            scores[:, test] = Fitted.scores(fitted, held_out)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fold may teach nothing
            threads()(work, range(self.n_folds))
        for (C, share), found in zip(settings, scores):
            best, _ = self.judged.windowed.best(found)
            yield Trial(rung, C, share, best, self.values(best))

    def final(self, trial: Trial) -> Model:
        """The model of a trial, learned from all queries."""
        rows, _ = self.judged.columns(trial.rung.columns)
        lists = self.judged.lists.with_items(rows, trial.rung.columns).select_lists(self.usable)
        smaller = [C for C in trial.rung.Cs if C < trial.C]
        fitted = Fitted.path(lists, self.target.loss, [*smaller[-1:], trial.C])[-1]
        return fitted.mixed(trial.share, self.baseline).model


def _least(target: Target, groups: Any) -> Vector:
    """What a grade must exceed to be better than others of its list."""
    if not target.loss.startswith("ndcg"):
        return np.zeros(len(groups.codes))
    least = np.full(len(groups), np.inf)
    np.minimum.at(least, groups.codes, target.grades)
    return least[groups.codes]


def clipping(X: NDArray[Any]) -> dict[str, Any]:
    """What a `MinMaxScaler` learns if it takes four deviations around the mean for the range.

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


@dataclass(frozen=True, eq=False)
class Fitted:
    """A scaler and a linear ranker behind it; ``lists`` are those of training, scaled."""

    scaling: dict[str, Any]
    svm: PlainSVM
    coef: Vector
    lists: Lists

    @classmethod
    def path(cls, lists: Lists, loss: str, Cs: Sequence[float]) -> list[Self]:
        """One for each C."""
        scaling = clipping(lists.X)
        scaled = SCALERS[SCALER](lists.X, lists.groups, scaling)
        known = lists.with_items(scaled, lists.feature_names)
        svms = PlainSVM(loss).path(known, Cs)
        if svms[-1].result_.status == "interrupted":  # which it takes for an order to end well
            raise KeyboardInterrupt
        return [cls(scaling, svm, svm.coef_, known) for svm in svms]

    def mixed(self, share: float, column: str) -> Self:
        """The mean of what was learned, which has this share, and of one column.

        Both are measured in their deviations within queries.
        """
        if share == 1:
            return self
        assert self.lists.feature_names is not None
        alone = np.zeros_like(self.coef)
        alone[self.lists.feature_names.index(column)] = 1.0
        parts = [own / (self._deviation(own) or 1.0) for own in (self.coef, alone)]
        return replace(self, coef=share * parts[0] + (1 - share) * parts[1])

    def _deviation(self, coef: Vector) -> float:
        scores, groups = linear_scores(self.lists.X, coef), self.lists.groups
        means = np.bincount(groups.codes, scores, minlength=len(groups)) / np.maximum(
            groups.sizes, 1
        )
        return float(np.std(scores - means[groups.codes]))

    @staticmethod
    def scores(fitted: Sequence[Fitted], lists: Lists) -> NDArray[np.float64]:
        """Scores of each row by rankers behind one scaler; shape (n_rankers, n_rows)."""
        scaled = SCALERS[SCALER](lists.X, lists.groups, fitted[0].scaling)
        return np.stack([linear_scores(scaled, own.coef) for own in fitted])

    @property
    def model(self) -> Model:
        """Both as plain values."""
        features = self.lists.features
        scaler = Model.scaling(SCALER, self.scaling, features)
        own = {"coef_": self.coef, "n_queries_": self.svm.n_queries_}
        ranker = Model.plain(self.svm.name, self.svm.parameters, own, features)
        return ranker.behind(scaler)
