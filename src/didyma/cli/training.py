"""What `didyma fit` does between reading and saving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from didyma.cli.output import waiting
from didyma.cli.progress import DevMeasure, reporting
from didyma.errors import DataError

if TYPE_CHECKING:
    from didyma.data.lists import Lists
    from didyma.learning.selection import Contest, HeldOut
    from didyma.model import Model

__all__ = ["Scale", "scaler_of", "train", "train_svm"]


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


def scaler_of(lists: Lists, scale: Scale) -> Model | None:
    """What scales rows as those to learn from ask for."""
    if scale is Scale.none:
        return None

    from didyma.data.matrix import is_sparse
    from didyma.model import Model

    if scale is not Scale.max_abs and is_sparse(lists.X):
        raise DataError(f"sparse features can be scaled by max-abs only, not by {scale}")
    return Model.scaler(SCALERS[scale], lists)


def train_svm(
    lists: Lists,
    dev: Lists | None,
    Cs: Sequence[float],
    measure: str,
    parameters: dict[str, Any],
) -> Contest:
    """A path of SVMs over C."""
    from didyma.learning.selection import contest
    from didyma.ranking.losses import parse_loss
    from didyma.ranking.ramp import bound_of

    held_out = _held_out(dev, measure)
    if "bins" in parameters:
        from didyma.ranking.additive import AdditiveSVMRanker

        columns = {
            name: lists.features.places(parameters.get(name, ()), f"--{name}")
            for name in ("categorical", "increasing", "decreasing")
        }
        ranker: Any = AdditiveSVMRanker(measure=measure, **{**parameters, **columns})
        watch = _watch(held_out, lambda X: ranker.bins_.transform(X))
    else:
        from didyma.ranking.svm import SVMRanker

        ranker = SVMRanker(measure=measure, **parameters)
        watch = _watch(held_out)
    Cs = Cs or [ranker.weight()]
    watched = None if ranker.patience is None else dev
    rounds = bound_of(ranker.bound, parse_loss(ranker.loss)) == "ramp"
    with reporting(Cs, None if rounds else ranker.tol, watch) as callback:
        ranker.callback = callback
        return contest(ranker.path(lists, None, Cs, eval_set=watched), held_out)


def train(
    lists: Lists,
    dev: Lists | None,
    Cs: Sequence[float],
    measure: str,
    parameters: dict[str, Any],
    module: str,
    name: str,
) -> Contest:
    """The same for other rankers, each fitted on its own; latent ones watch the dev rows."""
    from didyma.learning.selection import contest, fits

    held_out = _held_out(dev, measure)
    ranker_class = getattr(import_module(f"didyma.ranking.{module}"), name)
    if module != "latent":
        with waiting("training"):
            return contest(fits(ranker_class(**parameters), lists, Cs), held_out)
    with reporting(Cs, None, _watch(held_out)) as callback:
        ranker = ranker_class(measure=measure, callback=callback, **parameters)
        return contest(fits(ranker, lists, Cs, dev), held_out)


def _held_out(dev: Lists | None, measure: str) -> HeldOut | None:
    from didyma.learning.selection import HeldOut

    return None if dev is None else HeldOut(dev, measure)


def _watch(
    held_out: HeldOut | None, design: Callable[[Any], Any] = lambda X: X
) -> DevMeasure | None:
    """Name of the measure, and its value for weights.

    ``design`` makes what they weigh of the dev rows, once the first weights are there.
    """
    from didyma.learning.scoring import linear_scores

    if held_out is None:
        return None
    rows = cache(lambda: design(held_out.lists.X))
    return str(held_out.measure), lambda w: held_out.value(linear_scores(rows(), w))
