"""Model selection by cross-validation over queries: which features, which ranker, which C."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma.checkpoints import remember
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.errors import DataError
from didyma.execution import on_threads
from didyma.metrics import Evaluator
from didyma.model import Model
from didyma.ranking.featuriser import Featuriser, Windowed
from didyma.stateful import array_of
from didyma.text.baselines import Opponent, Verdict, lower_bound
from didyma.text.calibration import Calibration
from didyma.text.candidates import Aim, Candidate, RankerCandidate
from didyma.text.training_data import Target

FOLDS = 5
FEWEST = 8  # queries to learn from
Vector: TypeAlias = NDArray[np.float64]


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
        groups, docid = judged.lists.groups, judged.lists.docid
        self._evaluator = Evaluator(target.grades, groups, target.measure, docid=docid)
        self.usable = np.flatnonzero(groups.mixed(target.grades > _least(target, groups)))
        if not len(self.usable):
            problem = "expected a query with a relevant and an irrelevant passage, found none"
            if target.grades.min() < target.grades.max():
                problem += f": labels from {target.rel:g} on are relevant; "
                problem += "measure='nDCG' learns from the grades"
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
        (measure,) = self._evaluator.measures
        return self._evaluator(scores)[measure][self.usable]

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
        spent = longest = 0.0  # of all lives, if the process died in between
        try:
            for n, candidate in enumerate(candidates):
                if n and spent + longest > budget:
                    self.untried = tuple(candidates[n:])
                    break
                trials, seconds = self._trials(candidate)
                self.trials += trials
                spent, longest = spent + seconds, max(longest, seconds)
                mean, best = (max(t.mean for t in some) for some in (trials, self.trials))
                progress = Progress(n + 1, len(candidates), str(candidate), mean, best, spent)
                if callback is not None and callback(progress):
                    break
        except KeyboardInterrupt:
            if not self.trials:
                raise
            self.interrupted = True

    def _trials(self, candidate: Candidate) -> tuple[list[Trial], float]:
        """Trials of each setting of a candidate, and the seconds that they took."""
        name = f"rung {candidate} of {len(self.judged.lists)} rows"
        step = remember(name, partial(self._try, candidate), partial(self._check, candidate))
        best_scores = [self.judged.windowed.best(scores)[0] for scores in step["scores"]]
        trials = [
            Trial(candidate, *setting, scores, self.values(scores))
            for setting, scores in zip(candidate.settings, best_scores)
        ]
        return trials, step["seconds"]

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

    def final(self, trial: Trial) -> Model:
        """The model of a trial, learned from all queries."""
        candidate = trial.candidate
        rows, _ = self.judged.columns(candidate.columns)
        lists = self.judged.lists.with_items(rows, candidate.columns).select_lists(self.usable)
        return candidate.model((trial.C, trial.blend), lists, self.aim)

    @property
    def best(self) -> Trial | None:
        """The best trial so far."""
        return select(self.trials, self.baseline_values)

    def settle(self) -> tuple[Verdict, Model, Vector]:
        """The verdict, what ranks by it, and its scores of rows that were held out."""
        best, order = self.best, self.baseline
        base, measure = self.baseline_values, self.target.measure
        verdict = decide(best, order.name, base, measure, self.untried, self.opponents)
        if best is None or not verdict.passed:
            return verdict, order.model(len(self.usable)), self.judged.best(order)
        return verdict, self.final(best), best.scores


def _least(target: Target, groups: Groups) -> Vector:
    """What a grade must exceed to be better than others of its list."""
    if not target.loss.startswith("ndcg"):
        return np.full(len(groups.codes), target.rel - 1.0)
    return groups.least(target.grades)[groups.codes]


def select(trials: Sequence[Trial], base: Vector) -> Trial | None:
    """The best trial by mean gain over held-out queries, or by mean − standard error.

    The latter counts where the greatest gain is below its standard error, as with few queries: as
    a rule a blend with the baseline wins then. ``base`` are values of the measure before reranking.
    """

    def best(errors: float) -> Trial | None:
        return max(trials, key=lambda trial: lower_bound(trial.values, base, errors), default=None)

    trial = best(0.0)
    return trial if trial is None or lower_bound(trial.values, base) > 0 else best(1.0)


def decide(
    best: Trial | None,
    baseline: str,
    base: Vector,
    measure: str,
    untried: Sequence[Candidate] = (),
    opponents: tuple[Opponent, ...] = (),
) -> Verdict:
    """Whether a trial is kept, which it is if its gain is greater than its standard error."""
    from didyma.metrics.significance import wilcoxon

    values = base if best is None else best.values
    n, value, before = len(base), float(values.mean()), float(base.mean())
    p = 1.0 if best is None else wilcoxon(values, base)
    passed = best is not None and lower_bound(values, base) > 0
    free = f", the best of {len(opponents)} orders that need no training," * (len(opponents) > 1)
    figures = (
        f"{measure} {value:.3f} against {before:.3f} of {baseline}{free} on {n} held-out queries "
        f"(p = {p:.2g})"
    )
    if best is None:
        queries = "One query is" if n == 1 else f"{n} queries are"
        verdict = f"{queries} too few to learn from, so the order is that of {baseline}."
    elif passed:
        verdict = f"What was learned ranks ({best}): {figures}."
    else:
        verdict = (
            f"No gain is certain, so the order is that of {baseline}. What was learned ({best}) "
            f"had {figures}."
        )
    if untried:
        verdict += f" Not tried, as the time was up: {', '.join(map(str, untried))}."
    kept = str(best) if passed else baseline
    return Verdict(kept, baseline, measure, n, value, before, p, passed, verdict, opponents)


def fit_gated(
    featuriser: Featuriser, ranker: Any, gate: str, lists: Lists
) -> tuple[Verdict, Model, Vector, Calibration]:
    """What ranks, the ranker or the order by the column ``gate``; held-out scores, calibrated."""
    names = tuple(featuriser.names)
    if gate not in names:
        expected = ", ".join(names)
        raise DataError(
            f"expected a column of the featuriser ({expected}), found {gate!r}", field="gate"
        )
    target = Target.of(lists.y, lists.groups)
    judged = JudgedFeatures.of(lists, featuriser.windowed(lists), names, target, by=gate)
    search = CrossValidation(judged, target, [Opponent.single(gate)])
    search.run([RankerCandidate(type(ranker).__name__, names, (), ranker=ranker)])
    verdict, model, held_out = search.settle()
    return verdict, model, held_out, Calibration.fit(held_out, target.relevance, lists.groups)
