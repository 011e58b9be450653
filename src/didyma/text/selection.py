"""Model selection by cross-validation over queries: which features, which ranker, which C."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.checkpoints import remember
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.execution import on_threads
from didyma.metrics import Evaluator
from didyma.model import Model
from didyma.ranking.windowed import Windowed
from didyma.stateful import array_of
from didyma.text.features import FirstStage, SmallFeatures, WordVectors
from didyma.text.features.part import IN_LIST, RRF
from didyma.text.fits import AdditiveFit, Fit, LinearFit
from didyma.text.judgements import Target
from didyma.text.opponents import Opponent
from didyma.text.verdict import Verdict, decide, select

FOLDS = 5
FEWEST, SOME, MANY = 8, 50, 200  # queries to learn from
CS = (0.01, 0.1, 1.0, 10.0, 100.0)
ADDITIVE_CS = (0.03, 0.1, 0.3, 1.0, 3.0)
SINGLE, ORDER, LINEAR = "", "the old order", "a linear ranker"  # what a ranker is blended with
SMALL = {*SmallFeatures().names, *FirstStage().names}
VECTORS = set(WordVectors(None).names)
IN_LISTS = " in lists"  # ends the names of sets with columns that compare a list's passages
Vector: TypeAlias = NDArray[np.float64]


class Aim(NamedTuple):
    """The loss to learn by, the order to blend with, and signs that weights must have.

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
        """What `fits` gives: each C, with what the ranker is blended with."""
        blends = (SINGLE, ORDER, LINEAR) if self.additive else (SINGLE, ORDER)
        return [(C, blend) for C in self.Cs for blend in blends]

    def scores(self, lists: Lists, held_out: Lists, aim: Aim) -> NDArray[np.float64]:
        """Of each setting, learned from lists, the scores of others; shape (n_settings, n_rows)."""
        return Fit.scores(self.fits(lists, aim), held_out)

    def model(self, trial: Trial, lists: Lists, aim: Aim) -> Model:
        """The model of a trial, learned from lists."""
        upto = tuple(C for C in self.Cs if C <= trial.C)  # each begins where one ended
        path = replace(self, Cs=upto)
        return path.fits(lists, aim)[path.settings.index((trial.C, trial.blend))].model

    def fits(self, lists: Lists, aim: Aim) -> list[Fit]:
        """Fitted rankers: single, blended with an order, and additive with linear."""
        loss, order, signs = aim
        Cs = CS[: len(self.Cs)] if self.additive else self.Cs
        linear = LinearFit.path(lists, loss, Cs, signs)
        old = linear[0].order(order)
        if not self.additive:
            return [fit for line in linear for fit in (line, line.blend(old))]
        pairs = zip(AdditiveFit.path(lists, loss, self.Cs, signs), linear)
        return [
            fit for steps, line in pairs for fit in (steps, steps.blend(old), steps.blend(line))
        ]


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate with one C: held-out scores, of models that have not seen the query.

    ``blend`` says what else has half a share in the scores; ``values`` are those of the measure,
    one for each query that has a better and a worse passage.
    """

    candidate: Candidate
    C: float
    blend: str
    scores: Vector
    values: Vector

    @property
    def mean(self) -> float:
        """Mean of the measure."""
        return float(self.values.mean())

    def __str__(self) -> str:
        blend = f", in equal shares with {self.blend}" if self.blend else ""
        return f"{self.candidate}, C={self.C:g}{blend}" if self.C else str(self.candidate)


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each candidate; True ends the search.

    ``mean`` is the best mean of the measure that the candidate had, ``best`` that of all so far.
    """

    number: int
    of: int
    candidate: str
    mean: float
    best: float
    seconds: float

    @property
    def rung(self) -> str:
        """The former name of ``candidate``."""
        warnings.warn("rung is called candidate now", DeprecationWarning, stacklevel=2)
        return self.candidate


Watcher: TypeAlias = Callable[[Progress], bool | None]


@dataclass(frozen=True, eq=False)
class JudgedFeatures:
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
        graded = Lists(lists.items, target.grades, docid=lists.docid, grouping=lists.groups)
        return cls(graded, windowed, names, shown)

    def best(self, order: Opponent) -> Vector:
        """The score of each row by an order, that of its best window."""
        return self.windowed.best(order.scores(self.windowed.X, self.names))[0]

    def columns(self, names: Sequence[str]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of each row, and of each window, these features."""
        windows: Any = self.windowed.X
        if tuple(names) != self.names:
            places = [self.names.index(name) for name in names]
            windows = np.ascontiguousarray(windows[:, places])
        whole = len(windows) == len(self.shown)
        return (windows if whole else windows[self.shown]), windows


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
    are few.

    ``sets`` are the names of those that may be tried, by default all; each has the columns of the
    ``baseline``.
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
        together = {f"{name} and {kind}": [*own, *further] for name, own in columns_of.items()}
        columns_of = {kind: further, first: columns_of[first], **together}
        if kind == "vectors":  # which are no order by themselves
            del columns_of[kind]
    present = set(names)
    for name, columns in [] if quick else list(columns_of.items()):
        relative = [column + IN_LIST for column in columns if column + IN_LIST in present]
        columns_of[name + IN_LISTS] = [*columns, *relative]
    complete = {name: dict.fromkeys([*own, *baseline]) for name, own in columns_of.items()}
    distinct = {tuple(columns): name for name, columns in reversed(complete.items())}
    n_Cs = 3 if quick else len(CS) - (n_queries < MANY)
    linear = [Candidate(name, columns, CS[:n_Cs]) for columns, name in reversed(distinct.items())]
    additive = [
        replace(candidate, Cs=ADDITIVE_CS[:n_Cs], additive=True)
        for candidate in linear
        if candidate.name.endswith(IN_LISTS) and n_queries >= SOME
    ]
    return sorted([*linear, *additive], key=lambda candidate: len(candidate.columns))


class CrossValidation:
    """Cross-validated trials of candidates, within a budget of seconds.

    Folds are of queries. Features know the words of all lists, as they will when the model is in
    use, but no labels. The baseline is the best of the opponents, which learn nothing.
    """

    def __init__(
        self,
        judged: JudgedFeatures,
        target: Target,
        opponents: Sequence[Opponent],
        random_state: int = 0,
        signs: Mapping[str, int] | None = None,
    ) -> None:
        self.judged, self.target = judged, target
        groups = judged.lists.groups
        self.usable = np.flatnonzero(groups.mixed(target.grades > _least(target, groups)))
        if not len(self.usable):
            problem = "expected a query with a relevant and an irrelevant passage, found none"
            raise DataError(problem, field="labels")
        self.n_folds = min(FOLDS, len(self.usable))
        self.fold = np.random.default_rng(random_state).permutation(len(groups)) % self.n_folds
        order = np.random.default_rng(random_state).permutation(len(self.usable))
        self.fold[self.usable] = order % self.n_folds  # as even as can be where it matters
        self.trials: list[Trial] = []
        self.untried: tuple[Candidate, ...] = ()
        self.interrupted = False
        values = [self.values(judged.best(order)) for order in opponents]
        self.opponents = tuple(
            order._replace(value=float(values_of_order.mean()))
            for order, values_of_order in zip(opponents, values)
        )
        best = int(np.argmax([order.value for order in self.opponents]))
        self.baseline, self.baseline_values = self.opponents[best], values[best]
        self.aim = Aim(target.loss, self.baseline, signs)

    def values(self, scores: Vector) -> Vector:
        """The measure for each usable query."""
        lists, target = self.judged.lists, self.target
        evaluator = Evaluator(target.grades, lists.groups, target.measure, docid=lists.docid)
        (measure,) = evaluator.measures
        return evaluator(scores)[measure][self.usable]

    def run(
        self,
        candidates: Sequence[Candidate],
        budget: float = np.inf,
        callback: Watcher | None = None,
    ) -> None:
        """Try candidates until the time is up, the first in any case; none with too few queries.

        Ctrl-C ends the search, if there is something to keep.
        """
        if len(self.usable) < FEWEST:
            return
        try:
            self._run(candidates, budget, callback)
        except KeyboardInterrupt:
            if not self.trials:
                raise
            self.interrupted = True

    def _run(
        self, candidates: Sequence[Candidate], budget: float, callback: Watcher | None
    ) -> None:
        spent = longest = 0.0  # of all lives, if the process died in between
        for n, candidate in enumerate(candidates):
            if n and spent + longest > budget:
                self.untried = tuple(candidates[n:])
                break
            name = f"rung {candidate} of {len(self.judged.lists)} rows"
            step = remember(name, partial(self._try, candidate), partial(self._check, candidate))
            trials = list(self._trials(candidate, step["scores"]))
            self.trials += trials
            spent, longest = spent + step["seconds"], max(longest, step["seconds"])
            if callback is not None:
                mean = max(trial.mean for trial in trials)
                best = max(trial.mean for trial in self.trials)
                if callback(Progress(n + 1, len(candidates), str(candidate), mean, best, spent)):
                    break

    def _try(self, candidate: Candidate) -> dict[str, Any]:
        """Held-out scores of all windows, and the time it took."""
        began = time.perf_counter()
        rows, windows = self.judged.columns(candidate.columns)
        codes = self.judged.lists.groups.codes
        item = self.judged.windowed.item
        scores = np.zeros((len(candidate.settings), len(windows)))

        def work(fold: int) -> None:
            train = np.isin(codes, self.usable[self.fold[self.usable] != fold])
            test = self.fold[codes[item]] == fold
            lists = self.judged.lists.with_items(rows, candidate.columns).select(train)
            held_out = self.judged.lists.select(item[test])
            held_out = held_out.with_items(windows[test], candidate.columns)
            scores[:, test] = candidate.scores(lists, held_out, self.aim)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fold may teach nothing
            on_threads()(work, range(self.n_folds))
        return {"scores": scores, "seconds": time.perf_counter() - began}

    def _check(self, candidate: Candidate, step: dict[str, Any]) -> None:
        """Raise ValueError for a checkpoint that cannot be of this candidate."""
        shape = len(candidate.settings), len(self.judged.windowed.item)
        array_of(step["scores"], "scores", shape)
        if type(step["seconds"]) is not float:
            raise ValueError(f"seconds should be a number, but are {step['seconds']!r:.40}")

    def _trials(self, candidate: Candidate, scores: NDArray[np.float64]) -> Iterator[Trial]:
        for setting, of_windows in zip(candidate.settings, scores):
            best, _ = self.judged.windowed.best(of_windows)
            yield Trial(candidate, *setting, best, self.values(best))

    def final(self, trial: Trial) -> Model:
        """The model of a trial, learned from all queries."""
        rows, _ = self.judged.columns(trial.candidate.columns)
        lists = self.judged.lists.with_items(rows, trial.candidate.columns)
        return trial.candidate.model(trial, lists.select_lists(self.usable), self.aim)

    @property
    def best(self) -> Trial | None:
        """The best trial so far."""
        return select(self.trials, self.baseline_values)

    def settle(self) -> tuple[Verdict, Model, Vector]:
        """The verdict, what ranks by it, and its scores of rows that were held out."""
        best = self.best
        verdict = decide(
            *(best, self.baseline.name, self.baseline_values, self.target.measure),
            *(self.untried, self.opponents),
        )
        if best is None or not verdict.passed:
            return verdict, self.baseline.model(len(self.usable)), self.judged.best(self.baseline)
        return verdict, self.final(best), best.scores


def _least(target: Target, groups: Any) -> Vector:
    """What a grade must exceed to be better than others of its list."""
    if not target.loss.startswith("ndcg"):
        return np.zeros(len(groups.codes))
    least = np.full(len(groups), np.inf)
    np.minimum.at(least, groups.codes, target.grades)
    return least[groups.codes]
