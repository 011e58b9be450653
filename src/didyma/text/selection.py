"""Which features, which ranker, which C: chosen by cross-validation over queries."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.checkpoints import remember
from didyma.data.lists import Lists
from didyma.execution import on_threads
from didyma.metrics import Evaluator
from didyma.model import Model
from didyma.ranking.windowed import Windowed
from didyma.stateful import array_of
from didyma.text.features import FirstStage, SmallFeatures, WordVectors
from didyma.text.features.union import IN_LIST
from didyma.text.fitted import AdditiveFit, Fit, LinearFit
from didyma.text.target import Target

__all__ = ["Featured", "Rung", "Search", "Trial", "Tried", "ladder"]

FOLDS = 5
FEWEST, SOME, MANY = 8, 50, 200  # queries to learn from
CS = (0.01, 0.1, 1.0, 10.0, 100.0)
ADDITIVE_CS = (0.03, 0.1, 0.3, 1.0, 3.0)
ALONE, ORDER, LINEAR = "", "the old order", "a linear ranker"  # what is beside a ranker
SMALL = {*SmallFeatures().names, *FirstStage().names}
VECTORS = set(WordVectors(None).names)
IN_LISTS = " in lists"  # ends the names of sets with columns that compare a list's passages
Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Rung:
    """A way to rank that is tried: some columns and a path over C.

    Scores are linear in the columns, or sums of step functions of them.
    """

    name: str
    columns: tuple[str, ...]
    Cs: tuple[float, ...]
    additive: bool = False

    def __str__(self) -> str:
        return f"{self.name}, additive" if self.additive else self.name

    @property
    def settings(self) -> list[tuple[float, str]]:
        """What `fits` gives: each C, with what is beside the ranker."""
        beside = (ALONE, ORDER, LINEAR) if self.additive else (ALONE, ORDER)
        return [(C, other) for C in self.Cs for other in beside]

    def fits(self, lists: Lists, loss: str, order: str) -> list[Fit]:
        """Rankers of lists, alone, beside the order of a column, and additive beside linear."""
        linear = LinearFit.path(lists, loss, CS[: len(self.Cs)] if self.additive else self.Cs)
        old = linear[0].alone(order)
        if not self.additive:
            return [fit for own in linear for fit in (own, own.beside(old))]
        path = AdditiveFit.path(lists, loss, self.Cs)
        both = zip(path, linear)
        return [fit for own, line in both for fit in (own, own.beside(old), own.beside(line))]


@dataclass(frozen=True, eq=False)
class Trial:
    """How a rung did with one C: scores of each query by a model that has not seen it.

    ``beside`` says what else has half a share in the scores; ``values`` are those of the measure,
    one for each query that has a better and a worse passage.
    """

    rung: Rung
    C: float
    beside: str
    scores: Vector
    values: Vector

    @property
    def mean(self) -> float:
        """Mean of the measure."""
        return float(self.values.mean())

    def __str__(self) -> str:
        mixed = f", in equal shares with {self.beside}" if self.beside else ""
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

    Sets with columns in lists are tried with an additive ranker as well, unless queries are few.

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
        known[name + IN_LISTS] = [*columns, *beside]
    distinct = {tuple(columns): name for name, columns in reversed(known.items())}
    n_Cs = len(CS) - (n_queries < MANY)
    rungs = [Rung(name, columns, CS[:n_Cs]) for columns, name in reversed(distinct.items())]
    if n_queries >= SOME:
        wide = [rung for rung in rungs if rung.name.endswith(IN_LISTS)]
        rungs += [replace(rung, Cs=ADDITIVE_CS[:n_Cs], additive=True) for rung in wide]
    return sorted(rungs, key=lambda rung: len(rung.columns))


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
        spent = longest = 0.0  # of all lives, if the process died in between
        for number, rung in enumerate(rungs):
            if number and spent + longest > budget:
                self.untried = tuple(rungs[number:])
                break
            name = f"rung {rung} of {len(self.judged.lists)} rows"
            tried = remember(name, partial(self._try, rung), partial(self._check, rung))
            found = list(self._trials(rung, tried["scores"]))
            self.trials += found
            spent, longest = spent + tried["seconds"], max(longest, tried["seconds"])
            if callback is not None:
                mean = max(trial.mean for trial in found)
                best = max(trial.mean for trial in self.trials)
                if callback(Tried(number + 1, len(rungs), str(rung), mean, best, spent)):
                    break

    def _try(self, rung: Rung) -> dict[str, Any]:
        """Scores of all windows by rankers that have not seen them, and the time it took."""
        began = time.perf_counter()
        rows, windows = self.judged.columns(rung.columns)
        codes = self.judged.lists.groups.codes
        item = self.judged.windowed.item
        scores = np.zeros((len(rung.settings), len(windows)))

        def work(fold: int) -> None:
            train = np.isin(codes, self.usable[self.fold[self.usable] != fold])
            test = self.fold[codes[item]] == fold
            lists = self.judged.lists.with_items(rows, rung.columns).select(train)
            held_out = self.judged.lists.select(item[test]).with_items(windows[test])
            fits = rung.fits(lists, self.target.loss, self.baseline)
            scores[:, test] = Fit.scores(fits, held_out)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fold may teach nothing
            on_threads()(work, range(self.n_folds))
        return {"scores": scores, "seconds": time.perf_counter() - began}

    def _check(self, rung: Rung, tried: dict[str, Any]) -> None:
        """Refuse what this rung cannot have found."""
        shape = len(rung.settings), len(self.judged.windowed.item)
        array_of(tried["scores"], "scores", shape)
        if type(tried["seconds"]) is not float:
            raise ValueError(f"seconds should be a number, but are {tried['seconds']!r:.40}")

    def _trials(self, rung: Rung, scores: NDArray[np.float64]) -> Iterator[Trial]:
        for setting, found in zip(rung.settings, scores):
            best, _ = self.judged.windowed.best(found)
            yield Trial(rung, *setting, best, self.values(best))

    def final(self, trial: Trial) -> Model:
        """The model of a trial, learned from all queries."""
        rows, _ = self.judged.columns(trial.rung.columns)
        lists = self.judged.lists.with_items(rows, trial.rung.columns).select_lists(self.usable)
        rung = replace(trial.rung, Cs=tuple(C for C in trial.rung.Cs if C <= trial.C))
        fits = rung.fits(lists, self.target.loss, self.baseline)
        return fits[rung.settings.index((trial.C, trial.beside))].model


def _least(target: Target, groups: Any) -> Vector:
    """What a grade must exceed to be better than others of its list."""
    if not target.loss.startswith("ndcg"):
        return np.zeros(len(groups.codes))
    least = np.full(len(groups), np.inf)
    np.minimum.at(least, groups.codes, target.grades)
    return least[groups.codes]
