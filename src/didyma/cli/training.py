"""What `didyma fit` does between reading and saving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from didyma.cli.output import waiting
from didyma.cli.progress import DevMeasure, reporting
from didyma.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from didyma.data import Features, Lists
    from didyma.model import Model

__all__ = ["Contender", "Scale", "model_of", "scaled", "train_each", "train_latent", "train_svm"]


class Scale(StrEnum):
    """How features are scaled before a ranker sees them."""

    none = "none"
    standard = "standard"
    max_abs = "max-abs"
    query_minmax = "query-minmax"
    query_standard = "query-standard"
    query_percentile = "query-percentile"


SCALERS = {
    Scale.standard: "StandardScaler",
    Scale.max_abs: "MaxAbsScaler",
    Scale.query_minmax: "QueryMinMaxScaler",
    Scale.query_standard: "QueryStandardScaler",
    Scale.query_percentile: "QueryPercentileScaler",
}


def scaled(
    train: Lists, dev: Lists | None, scale: Scale
) -> tuple[Lists, Lists | None, Model | None]:
    """The rows scaled as those to learn from ask for, and the scaler."""
    if scale is Scale.none:
        return train, dev, None

    from didyma import scoring
    from didyma.matrix import is_sparse
    from didyma.model import Model

    name = SCALERS[scale]
    if scale is not Scale.max_abs and is_sparse(train.X):
        raise DataError(f"sparse features can be scaled by max-abs only, not by {scale}")
    state = scoring.learn_scaling(name, train.X, train.groups)
    learned = {key: value for key, value in state.items() if key.endswith("_")}
    parameters = {key: value for key, value in state.items() if key not in learned}

    def transform(data: Lists) -> Lists:
        return replace(data, items=scoring.SCALERS[name](data.X, data.groups, state))

    scaler = Model.plain(name, parameters, learned, train.features)
    return transform(train), None if dev is None else transform(dev), scaler


def model_of(
    ranker: Any, features: Features, scaler: Model | None, summary: dict[str, Any]
) -> Model:
    """The ranker behind the scaler, which knows what features it asks for."""
    from didyma.model import Model, summary_of

    if hasattr(ranker, "parameters"):  # not an estimator
        learned = {"coef_": ranker.coef_, "n_queries_": ranker.n_queries_}
        model = Model.plain(ranker.name, ranker.parameters, learned, features)
    else:
        features.remember(ranker)
        model = Model.of(ranker)
    if scaler is not None:
        model = model.behind(scaler)
    return replace(model, summary={**summary_of(ranker), **summary})


@dataclass(frozen=True, eq=False)
class Contender:
    """A fitted ranker, and the dev measure by which it competes."""

    ranker: Any
    dev: float | None

    def summary(self) -> dict[str, Any]:
        """How training ended, ready for JSON."""
        result = self.ranker.result_
        found = {
            "C": self.ranker.C,
            "objective": result.value,
            "converged": result.converged,
            "n_iter": result.n_iter,
        }
        if hasattr(result, "status"):
            found |= {
                "status": result.status,
                "passes": result.passes,
                "seconds": result.seconds["total"],
            }
        if hasattr(self.ranker, "solver"):  # of a convex problem, so the gap bounds something
            gap = max(0.0, result.gap / result.value) if result.value > 0 else 0.0
            found |= {"relative_gap": gap, "bound": result.bound}
            if result.bound == "ramp":
                found |= {"rounds": result.rounds, "start": result.start}
        if getattr(result, "grades", None) is not None:
            found["grades"] = result.grades
        if hasattr(self.ranker, "best_epoch_"):
            found["best_epoch"] = self.ranker.best_epoch_
        return found | ({} if self.dev is None else {"dev": self.dev})


def train_svm(
    data: Lists,
    dev: Lists | None,
    Cs: Sequence[float],
    measure: str,
    parameters: dict[str, Any],
) -> tuple[list[Contender], bool]:
    """A candidate for each C, and whether Ctrl-C cut the path short.

    What was being trained at that moment takes part, if it has come through an iteration.
    """
    from didyma.tasks.losses import parse_loss
    from didyma.tasks.ramp import bound_of

    judge = _read_dev(dev, measure)
    if "bins" in parameters:
        from didyma.estimators.additive import AdditiveSVMRanker

        ranker: Any = AdditiveSVMRanker(measure=measure, **_placed(parameters, data))
        Cs = Cs or [ranker.weight()]
        watched = None if ranker.patience is None else dev
        rounds = bound_of(ranker.bound, parse_loss(ranker.loss)) == "ramp"
        tol = None if rounds else ranker.tol
        watch = _watch(judge, lambda X: ranker.bins_.transform(X))
        with reporting(Cs, tol, watch) as callback:
            ranker.callback = callback
            rankers = ranker.path(data.X, data.y, Cs, qid=data.qid, eval_set=watched)
    else:
        from didyma.tasks.ranking_svm import PlainSVM

        svm = PlainSVM(measure=measure, **parameters)
        Cs = Cs or [svm.weight()]
        watched = None if svm.patience is None else dev
        rounds = bound_of(svm.bound, parse_loss(svm.loss)) == "ramp"
        with reporting(Cs, None if rounds else svm.tol, _watch(judge)) as callback:
            svm.callback = callback
            rankers = svm.path(data, Cs, watched)
    last = rankers[-1]
    interrupted = last.result_.status == "interrupted"
    begun = last.result_.bound == "ramp" and last.coef_.any()  # its start came that far
    if interrupted and last.result_.n_iter == 0 and not begun:
        rankers.pop()
    return [_candidate(ranker, dev, judge) for ranker in rankers], interrupted


def _placed(parameters: dict[str, Any], data: Lists) -> dict[str, Any]:
    """The same with features, which users call by name or as the file does, as columns."""
    features, placed = data.features, dict(parameters)
    names = features.names or tuple(
        str(k) for k in range(not features.zero_based, features.count + (not features.zero_based))
    )
    for option in ("categorical", "increasing", "decreasing"):
        for name in placed.get(option, ()):
            if name not in names:
                raise DataError(f"there is no feature {name!r}", field=f"--{option}")
        placed[option] = tuple(names.index(name) for name in placed.get(option, ()))
    return placed


def train_latent(
    data: Lists,
    dev: Lists | None,
    Cs: Sequence[float],
    measure: str,
    parameters: dict[str, Any],
    name: str,
) -> tuple[list[Contender], bool]:
    """The same for a ranker of `didyma.estimators.latent`, which is given the dev rows to watch."""
    ranker_class = getattr(import_module("didyma.estimators.latent"), name)
    judge = _read_dev(dev, measure)
    candidates: list[Contender] = []
    with reporting(Cs, None, _watch(judge)) as callback:
        for C in sorted(Cs):
            ranker = ranker_class(C=C, measure=measure, callback=callback, **parameters)
            ranker.fit(data.X, data.y, qid=data.qid, eval_set=dev)
            interrupted = ranker.result_.status == "interrupted"
            if not interrupted or ranker.result_.n_iter > 0:
                candidates.append(_candidate(ranker, dev, judge))
            if interrupted:
                return candidates, True
    return candidates, False


def train_each(
    data: Lists,
    dev: Lists | None,
    Cs: Sequence[float],
    measure: str,
    parameters: dict[str, Any],
    name: str,
) -> tuple[list[Contender], bool]:
    """The same for a ranker that classifies; what Ctrl-C cuts short is lost."""
    ranker_class = getattr(import_module("didyma.estimators.classification"), name)
    judge = _read_dev(dev, measure)
    candidates: list[Contender] = []
    try:
        for C in sorted(Cs):
            with waiting(f"training at C={C:g}"):
                ranker = ranker_class(C, **parameters)
                ranker.fit(data.X, data.y, qid=data.qid)
            candidates.append(_candidate(ranker, dev, judge))
    except KeyboardInterrupt:
        return candidates, True
    return candidates, False


def _candidate(ranker: Any, dev: Lists | None, judge: Dev | None) -> Contender:
    if dev is None or judge is None:
        return Contender(ranker, None)
    return Contender(ranker, judge.value(ranker.predict(dev.X)))


class Dev:
    """The measure on dev rows."""

    def __init__(self, data: Lists, measure: str) -> None:
        from didyma.metrics import Evaluator

        self.rows = data.X
        self._evaluator = Evaluator(data.y, data.groups, measure, docid=data.docid)
        (self.measure,) = self._evaluator.measures

    def value(self, scores: NDArray[np.float64]) -> float:
        """Mean of the measure at these scores."""
        return self._evaluator(scores).mean(self.measure)


def _watch(dev: Dev | None, design: Callable[[Any], Any] = lambda X: X) -> DevMeasure | None:
    """Name of the measure, and its value for weights.

    ``design`` makes what they weigh of the dev rows, once the first weights are there.
    """
    from didyma.scoring import linear_scores

    if dev is None:
        return None
    rows = cache(lambda: design(dev.rows))
    return str(dev.measure), lambda w: dev.value(linear_scores(rows(), w))


def _read_dev(dev: Lists | None, measure: str) -> Dev | None:
    return None if dev is None else Dev(dev, measure)
