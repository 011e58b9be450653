"""Choosing C: a ranker is fitted for each value, and the best one on held-out lists is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.errors import DataError, warn
from didyma.protocol import clone


@dataclass(frozen=True, eq=False)
class Candidate:
    """A fitted ranker, and its value on held-out lists."""

    ranker: Any
    value: float | None

    def summary(self) -> dict[str, Any]:
        """How training ended, ready for JSON, without the time it took."""
        result = self.ranker.result_
        summary = {
            "C": self.ranker.C,
            "objective": result.value,
            "converged": result.converged,
            "n_iter": result.n_iter,
        }
        if hasattr(result, "status"):
            summary |= {"status": result.status, "passes": result.passes}
        if hasattr(result, "bound"):  # of a convex problem, so the gap bounds something
            gap = max(0.0, result.relative_gap)
            summary |= {"relative_gap": gap, "bound": result.bound}
            if result.bound == "ramp":
                summary |= {"rounds": result.rounds, "start": result.start}
        if getattr(result, "grades", None) is not None:
            summary["grades"] = result.grades
        if hasattr(self.ranker, "best_epoch_"):
            summary["best_epoch"] = self.ranker.best_epoch_
        return summary | ({} if self.value is None else {"dev": self.value})

    @property
    def seconds(self) -> float | None:
        """The time that training took, where it was counted."""
        counted = getattr(self.ranker.result_, "seconds", None)
        return None if counted is None else float(counted["total"])

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C cut its training short."""
        return getattr(self.ranker.result_, "status", None) == "interrupted"

    @property
    def has_learned(self) -> bool:
        """Whether it came through an iteration, or through the start of a ramp."""
        result = self.ranker.result_
        begun = getattr(result, "bound", None) == "ramp" and self.ranker.coef_.any()
        return bool(result.n_iter > 0 or begun)


@dataclass(frozen=True, eq=False)
class ModelSelection:
    """All candidates in the order of C, and whether Ctrl-C ended training early."""

    candidates: list[Candidate]
    interrupted: bool

    @property
    def best(self) -> Candidate:
        """The candidate of highest value; of equals, the first."""
        return max(self.candidates, key=lambda candidate: candidate.value or 0.0)


class HeldOut:
    """A measure on lists that nothing is learned from.

    Lists of which no order is better than another are refused if they are to choose; else a warning
    says so.
    """

    def __init__(self, lists: Lists, measure: str, *, chooses: bool = True) -> None:
        from didyma.metrics import Evaluator, parse
        from didyma.metrics.evaluation import check_decisive, warn_if_all_relevant

        self.lists, self.measure = lists, parse(measure)
        try:
            check_decisive(self.measure, lists.y, lists.groups)
        except DataError as error:
            if chooses:
                raise
            warn(str(error), UserWarning)
        warn_if_all_relevant([self.measure], lists.y)
        self._evaluator = Evaluator(lists.y, lists.groups, self.measure, docid=lists.docid)

    def value(self, scores: NDArray[np.float64]) -> float:
        """Mean of the measure at these scores."""
        return self._evaluator(scores).mean(self.measure)

    def __call__(self, ranker: Any) -> float:
        """Mean of the measure at the scores of a fitted ranker."""
        return self.value(ranker.predict(self.lists))


def fits(ranker: Any, lists: Lists, Cs: Iterable[float], eval_set: Any = None) -> Iterator[Any]:
    """The ranker fitted for each C, in ascending order, each on its own.

    An SVM has a ``path``, where each fit starts from the one before.
    """
    for C in sorted(Cs):
        fitted = clone(ranker).set_params(C=C)
        yield fitted.fit(lists.X, lists.y, qid=lists.qid, eval_set=eval_set)


def select_model(
    rankers: Iterable[Any], judge: Callable[[Any], float] | None = None
) -> ModelSelection:
    """Judge rankers as they are fitted.

    After Ctrl-C, what was being trained takes part if it has learned something.

    >>> from didyma import SVMRanker
    >>> lists = Lists(np.array([[2.0], [1.0]]), np.array([1.0, 0.0]), np.zeros(2))
    >>> select_model(SVMRanker().path(lists, None, [0.1, 10.0]), HeldOut(lists, "AP")).best.ranker.C
    0.1
    """
    candidates: list[Candidate] = []
    try:
        for ranker in rankers:
            candidate = Candidate(ranker, None)
            if candidate.interrupted and not candidate.has_learned:
                return ModelSelection(candidates, True)
            value = None if judge is None else judge(ranker)
            candidates.append(Candidate(ranker, value))
            if candidate.interrupted:
                return ModelSelection(candidates, True)
    except KeyboardInterrupt:  # in rankers that do not catch it themselves
        return ModelSelection(candidates, True)
    return ModelSelection(candidates, False)
