"""Three linear rankers, each with the C that ranks the development topics best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from didyma.data import Lists
from didyma.estimators.base import LinearRanker
from didyma.estimators.classification import ClassificationRanker
from didyma.estimators.svm import SVMRanker

__all__ = ["CS", "RANKERS", "Trained", "train"]

# Training is cheap here, so it is so exact that the choice of C does not hang on rounding.
RANKERS: dict[str, LinearRanker] = {
    "SVMmap": SVMRanker("ap", tol=1e-6, max_iter=10_000),
    "SVMroc": SVMRanker("roc", tol=1e-6, max_iter=10_000),
    "SVMacc": ClassificationRanker(),
}
CS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)


@dataclass(frozen=True)
class Trained:
    """A ranker with the C that is best on development data, and their AP for every C."""

    ranker: Any
    curve: tuple[tuple[float, float], ...]

    @property
    def history(self) -> Sequence[dict[str, Any]]:
        """A record per iteration, of rankers that keep one."""
        return getattr(self.ranker, "history_", [])


def train(ranker: LinearRanker, data: Lists, eval_set: Lists) -> Trained:
    """Fit for each C of `CS`, and again for the best; of equally good ones the smallest."""
    if isinstance(ranker, SVMRanker):
        path: list[Any] = ranker.path(data.X, data.y, CS, qid=data.qid)
    else:
        path = [clone(ranker).set_params(C=C).fit(data.X, data.y, qid=data.qid) for C in CS]
    held_out, qid = (eval_set.X, eval_set.y), eval_set.qid
    curve = tuple((fitted.C, fitted.score(*held_out, qid=qid)) for fitted in path)
    best, _ = max(curve, key=lambda point: point[1])
    # Along the path each fit starts from the one before; this one shows how a fit converges.
    final = clone(ranker).set_params(C=best)
    final.fit(data.X, data.y, qid=data.qid, eval_set=held_out, eval_qid=qid)
    return Trained(final, curve)
