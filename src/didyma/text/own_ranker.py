"""Any estimator as the ranker of features: fitted on lists, cross-validated, behind a gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import Columns
from didyma.errors import DataError
from didyma.model import Model, Serialisable, State
from didyma.protocol import Estimator, call_routed, clone
from didyma.ranking.featuriser import Featuriser
from didyma.text.calibration import Calibration
from didyma.text.judgements import Target
from didyma.text.opponents import Opponent
from didyma.text.selection import SINGLE, Aim, Candidate, CrossValidation, JudgedFeatures, Trial
from didyma.text.verdict import Verdict


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

    def predict(self, lists: Lists) -> NDArray[np.float64]:
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

    def scores(self, lists: Lists, held_out: Lists, aim: Aim) -> NDArray[np.float64]:
        """Scores of held-out rows by a copy of the ranker that has learned from lists."""
        return fit_ranker(clone(self.ranker), lists).predict(held_out)[None]

    def model(self, trial: Trial, lists: Lists, aim: Aim) -> Model:
        """The ranker itself, which has learned from lists."""
        return fit_ranker(self.ranker, lists)


@dataclass(frozen=True, eq=False)
class Gated(Serialisable):
    """What held-out queries said of a ranker: whether it ranks, and what its scores mean."""

    verdict: Verdict
    calibration: Calibration


def fit_gated(
    featuriser: Featuriser, ranker: Any, gate: str, lists: Lists
) -> tuple[Model, Gated, NDArray[np.float64]]:
    """What ranks, the ranker or the order by the column ``gate``; and scores of held-out rows."""
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
    calibration = Calibration.fit(held_out, target.relevance, lists.groups)
    return model, Gated(verdict, calibration), held_out
