"""Monitoring of training: a trace, a measure on held-out examples, early stopping.

No training fails silently: a warning says if the result is no better than zero weights, or chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from didyma._core.measures import roc_area
from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix
from didyma.errors import NothingLearnedWarning, warn
from didyma.learning.problem import Problem
from didyma.learning.scoring import linear_scores
from didyma.learning.solution import Callback, Progress, Solution
from didyma.metrics.ranking import rank, read_scores
from didyma.stateful import Stateful

__all__ = [
    "EvalSets",
    "Learner",
    "Monitor",
    "Watch",
    "concordance",
    "gain_over_zero",
    "warn_if_nothing_learned",
    "warn_of_zero",
]

Vector = NDArray[np.float64]

EvalSets: TypeAlias = Mapping[str, Lists]
"""Held-out lists by name, of which the first decide; "" is the name of those that have none."""

RECORDED = ("n_iter", "passes", "seconds", "C", "value", "dual", "gap")  # of each iteration


class Watch(Stateful):
    """A callback that records each iteration and knows when a held-out measure stops improving.

    ``history`` has one record per iteration: n_iter, passes, seconds, C, value, dual, gap, and
    under its name what each measure says of the weights; higher is better. The first one decides:
    with ``patience`` the run stops after so many iterations without a better value; ``best_w`` are
    the weights of the best. Iterations at another C than ``C``, on the way to it, are recorded but
    never kept.
    """

    _changing: ClassVar[tuple[str, ...]] = ("history", "best_w", "best_value", "_waited")

    def __init__(
        self,
        measures: Mapping[str, Callable[[Vector], float]],
        patience: int | None,
        callback: Callback | None,
        C: float | None = None,
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self.best_w: Vector | None = None
        self.best_value = -np.inf
        self._measures = measures
        self._patience, self._callback, self._C = patience, callback, C
        self._waited = 0

    def check_state(self) -> None:
        """Refuse records that are not those of `__call__`."""
        names = [*RECORDED, *self._measures]
        for record in self.history:
            if list(record) != names or not all(type(v) in (int, float) for v in record.values()):
                raise ValueError(f"history should have records of {', '.join(names)}")

    def __call__(self, progress: Progress) -> bool:
        """Record an iteration; True stops the run."""
        record = {name: getattr(progress, name) for name in RECORDED}
        stop = False
        record |= {name: evaluate(progress.w) for name, evaluate in self._measures.items()}
        if self._measures and (self._C is None or progress.C == self._C):
            stop = self._keep(record[next(iter(self._measures))], progress.w)
        self.history.append(record)
        if self._callback is not None:
            stop = bool(self._callback(progress)) or stop
        return stop

    def chosen(self, w: Vector) -> Vector:
        """The weights of the best iteration, or those of the last one if there is none."""
        return w if self.best_w is None else self.best_w

    def _keep(self, value: float, w: Vector) -> bool:
        if value > self.best_value:
            self.best_value, self.best_w, self._waited = value, w.copy(), 0
        else:
            self._waited += 1
        return self._patience is not None and self._waited >= self._patience


class Monitor(Watch):
    """`Watch` over a ranking measure on held-out queries: "AP", or "name AP" of sets with names."""

    def __init__(
        self,
        evaluation: EvalSets,
        measure: str,
        patience: int | None,
        callback: Callback | None,
        C: float | None = None,
    ) -> None:
        measures = {}
        for name, lists in evaluation.items():
            label, evaluate = _measure(lists, measure)
            measures[f"{name} {label}".strip()] = evaluate
        super().__init__(measures, patience, callback, C)


def _measure(lists: Lists, measure: str) -> tuple[str, Callable[[Vector], float]]:
    """Name of a measure, and its value on lists for weights."""
    from didyma.metrics import Evaluator, parse

    judged = parse(measure)
    evaluator = Evaluator(lists.y, lists.groups, judged)
    return str(judged), lambda w: evaluator(linear_scores(lists.X, w)).mean(judged)


# So many queries tell whether a ranking is better than none, by so many standard errors.
LOOKS = ((30, 3.0), (100, 1.0))


def concordance(scores: Vector, relevant: NDArray[np.bool_], starts: NDArray[np.int64]) -> Vector:
    """Share of the pairs of each query that are in the right order, ties as halves.

    >>> concordance(np.array([2.0, 1.0, 1.0]), np.array([False, True, False]), np.array([0, 3]))
    array([0.25])
    """
    slots, tied = rank(read_scores(scores, len(relevant)), starts)
    positives = np.add.reduceat(relevant, starts[:-1], dtype=np.float64)
    return roc_area(relevant[slots], tied, starts, positives)


def gain_over_zero(problem: Problem, C: float, solution: Solution, tol: float) -> float:
    """How far the objective of a solution is below that of zero weights, relative to the latter.

    By strong convexity that is at least ½‖w‖², up to the tolerance; only if this is too small to
    tell is the risk at zero asked for. Where C is so small that w is the cut at zero times −C,
    nothing stands against it, and its direction is all that counts.
    """
    value, norm = solution.result.value, float(np.linalg.norm(solution.w))
    if 0.5 * norm**2 > 2.0 * tol * value:
        return np.inf
    zero = np.zeros(problem.n_features)
    risk = float(problem.weights @ problem.risks(zero))
    gain = 1.0 - value / (C * risk) if risk > 0.0 else 0.0
    if gain > tol or not norm > 0.5 * C * np.linalg.norm(problem.cut_all(zero).direction) > 0.0:
        return gain
    return np.inf


def warn_if_nothing_learned(
    score: Callable[[NDArray[np.int64]], Vector],
    relevant: NDArray[np.bool_],
    groups: Groups,
    *,
    gain: float,
    tol: float,
    advice: str,
) -> None:
    """Warn if weights are no better than zero weights, or rank no better than a constant.

    ``gain`` is that of `gain_over_zero`: within ``tol`` training cannot tell the two apart. A
    constant has half of all pairs in the right order; the mean over training queries must be above
    that by its standard error. ``score(rows)`` gives the scores of some rows: of many queries a
    sample is taken, so that looking is cheap.
    """
    if gain <= tol:
        warn_of_zero(tol, advice)
    elif reason := _by_chance(score, relevant, groups):
        warn(f"nothing was learned: {reason}; {advice}", NothingLearnedWarning)


def warn_of_zero(tol: float, advice: str) -> None:
    """Say that zero weights would have done as well."""
    reason = f"the objective is within {tol:g} of that of zero weights"
    warn(f"nothing was learned: {reason}; {advice}", NothingLearnedWarning)


def _by_chance(
    score: Callable[[NDArray[np.int64]], Vector], relevant: NDArray[np.bool_], groups: Groups
) -> str:
    """Why a ranking is no better than a constant, or nothing if it is."""
    count = np.bincount(groups.codes, weights=relevant, minlength=len(groups))
    usable = np.flatnonzero((count > 0) & (count < groups.sizes))
    if len(usable) == 0:
        return ""
    mean = 0.0
    for most, errors in LOOKS:
        places = np.linspace(0, len(usable) - 1, min(most, len(usable))).astype(np.int64)
        queries = [groups.rows[groups.starts[q] : groups.starts[q + 1]] for q in usable[places]]
        rows = np.concatenate(queries)
        starts = np.cumsum([0, *map(len, queries)])
        shares = concordance(score(rows), relevant[rows], starts)
        error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
        mean = shares.mean()
        if mean > 0.5 + errors * error:
            return ""
    return (
        f"of the pairs of a training query {mean:.3f} are in the right order, and of a constant "
        "score 0.5"
    )


class Learner:
    """A ranker that warns if it has learned nothing from judged rows."""

    _gain: float = np.inf  # over zero weights, where there is an objective: see `gain_over_zero`

    def _check_learned(self, train: Lists) -> None:
        """Warn if the weights are no better than zero, or the ranking than chance."""
        relevant = self._relevant(train)
        if train.weights is not None:
            relevant = relevant & (train.weights > 0)[train.groups.codes]
        warn_if_nothing_learned(
            lambda rows: self._score_rows(train.X[rows]),
            relevant,
            train.groups,
            gain=self._gain,
            tol=getattr(self, "tol", 0.0),
            advice=self._advice(),
        )

    def _score_rows(self, X: Matrix) -> Vector:
        """Scores of rows that have been read."""
        raise NotImplementedError

    def _least_relevant(self) -> float | None:
        """The grade from which rows are relevant, None where all grades count."""
        return 1.0

    def _relevant(self, lists: Lists) -> NDArray[np.bool_]:
        """Which rows ought to stand above the others of their query."""
        rel = self._least_relevant()
        if rel is not None:
            return lists.y >= rel
        return lists.y > lists.groups.least(lists.y)[lists.groups.codes]

    def _advice(self) -> str:
        """What to try if nothing was learned."""
        return "scale the features, try another C, or look for features that tell rows apart"
