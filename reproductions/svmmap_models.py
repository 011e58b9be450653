"""The models of Yue et al. (2007), the features that they see, and how they are compared."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from didyma.data.matrix import Matrix
from didyma.errors import NothingLearnedWarning
from didyma.metrics import wilcoxon, wins_losses
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.svm import SVMRanker

Vector = NDArray[np.float64]

CS = tuple(10.0**k for k in range(-3, 4))  # for indicators, of which a row has dozens
CS_OF_FEATURES = tuple(10.0**k for k in range(-3, 6))  # for a few features between 0 and 1
BIAS = 10.0

Fit = Callable[[Matrix, Vector, NDArray[np.int64], Sequence[float]], NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """A row of the tables: how rows are described, and how weights are learned from them.

    ``fit(X, y, sizes, Cs)`` returns weights of shape (number of Cs, number of features), given the
    rows of all training queries one query after the other.
    """

    name: str
    features: str
    fit: Fit


def structural(loss: str) -> Fit:
    """The structural SVM of the paper for one loss, for all C by continuation."""

    def fit(
        X: Matrix, y: Vector, sizes: NDArray[np.int64], Cs: Sequence[float]
    ) -> NDArray[np.float64]:
        rankers = SVMRanker(loss, bound="hinge", n_jobs=1).path(X, y, Cs, group=sizes)
        return np.array([ranker.coef_ for ranker in rankers])

    return fit


def classification(cost_ratio: float | str = 1.0, loss: str = "hinge") -> Fit:
    """A linear SVM that tells relevant rows from others.

    A conventional SVM does not penalise the intercept. `LinearSVC` does, as the weight of a
    constant feature; a large constant makes that penalty small.
    """

    def fit(
        X: Matrix, y: Vector, sizes: NDArray[np.int64], Cs: Sequence[float]
    ) -> NDArray[np.float64]:
        constant = np.full((X.shape[0], 1), BIAS, dtype=X.dtype)
        rows = sp.hstack([X, constant], "csr") if sp.issparse(X) else np.hstack([X, constant])
        tol = 0.1 if loss == "hinge" else 0.01  # the defaults of LIBLINEAR's two solvers
        learner = {"cost_ratio": cost_ratio, "loss": loss, "tol": tol, "max_iter": 1000}
        rankers = (ClassificationRanker(C, **learner).fit(rows, y, group=sizes) for C in Cs)
        return np.array([ranker.coef_[:-1] for ranker in rankers])

    return fit


YUE_MODELS = (
    Model("SVMmap", "scores", structural("ap")),
    Model("SVMroc", "scores", structural("roc")),
    Model("SVMacc", "scores", classification()),
    Model("SVMacc2", "scores", classification(cost_ratio="balanced")),
    Model("SVMacc3", "percentiles", classification()),
    Model("SVMacc4", "minmax", classification()),
    Model("SVMacc, squared hinge", "scores", classification(loss="squared_hinge")),
)
# What becomes of a document that a function did not retrieve is left open: above, percentiles and
# extremes are those of the retrieved documents; here all candidates of a topic take part.
ROBUST_MODELS = (
    *YUE_MODELS[:6],
    Model("SVMacc3, all candidates", "percentiles of all", classification()),
    Model("SVMacc4, all candidates", "minmax of all", classification()),
    *YUE_MODELS[6:],
)
LETOR_MODELS = (
    *YUE_MODELS[:2],
    Model("SVMndcg", "scores", structural("ndcg")),
    Model("SVMndcg@10", "scores", structural("ndcg@10")),
    *YUE_MODELS[2:],
    Model("SVMmap, features of acc4", "minmax", structural("ap")),
)
REFERENCE = YUE_MODELS[0].name


class Fits:
    """Chooses C for each model, and remembers what was chosen and what did not converge."""

    def __init__(self) -> None:
        self.chosen: dict[str, list[float]] = {}
        self.seconds: dict[str, float] = {}
        self.unfinished: dict[str, int] = {}

    def best(
        self,
        model: Model,
        training: tuple[Matrix, Vector, NDArray[np.int64]],
        Cs: Sequence[float],
        validate: Callable[[Vector], float],
    ) -> Vector:
        """Weights of the C (the smallest among equals) that validates best."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            warnings.filterwarnings("ignore", ".*queries have rows of one class only")
            warnings.simplefilter("ignore", NothingLearnedWarning)  # validation will tell
            begun = time.process_time()
            weights = model.fit(*training, Cs)
        spent = time.process_time() - begun
        self.seconds[model.name] = self.seconds.get(model.name, 0.0) + spent
        limits = sum(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        self.unfinished[model.name] = self.unfinished.get(model.name, 0) + limits
        best = int(np.argmax([validate(w) for w in weights]))
        self.chosen.setdefault(model.name, []).append(Cs[best])
        return weights[best]

    def summary(self) -> dict[str, Any]:
        """How often each C was chosen, how many fits stopped at their limit, and CPU seconds."""
        return {
            "chosen": {
                name: {f"{C:g}": values.count(C) for C in sorted(set(values))}
                for name, values in self.chosen.items()
            },
            "unfinished": self.unfinished,
            "seconds": self.seconds,
        }


# --- Features -----------------------------------------------------------------------------------


def sensitive_region(scores: NDArray[Any], n_topics: int) -> Vector:
    """Scores of retrieval functions on a scale from 0 to 1 that is even in the logarithm of rank.

    With r(f) the number of documents a topic, on average over the collection, whose score is at
    least f,  u(f) = 1 − log max(r(f), 1) / log max r.  Being monotone, u turns even thresholds
    into fifty thresholds of f itself, the closer together the nearer to the top of the ranking.
    NaN (not retrieved) stays. Labels are not looked at.

    >>> sensitive_region(np.array([[4.0], [3.0], [2.0], [1.0], [np.nan]]), 1).round(2).ravel()
    array([1.  , 0.5 , 0.21, 0.  ,  nan])
    """
    scaled = np.full(scores.shape, np.nan)
    for column, values in zip(scaled.T, scores.T):
        present = ~np.isnan(values)
        ascending = np.sort(values[present])
        rank = len(ascending) - np.searchsorted(ascending, values[present], side="left")
        depth = np.maximum(rank / n_topics, 1)
        column[present] = 1 - np.log(depth) / max(np.log(depth.max(initial=1)), 1e-9)
    return scaled


def completed(scores: NDArray[Any], sizes: NDArray[np.int64]) -> Vector:
    """Scores in which documents that were not retrieved have 0, or their topic's lowest below it.

    >>> completed(np.array([[2.0], [np.nan], [-1.0], [np.nan]]), np.array([2, 2])).ravel()
    array([ 2.,  0., -1., -1.])
    """
    filled = np.array(scores, dtype=np.float64)
    starts = np.cumsum(sizes) - sizes
    lowest = np.minimum(np.fmin.reduceat(filled, starts), 0.0)  # of NaN alone it is NaN
    return np.where(np.isnan(filled), np.repeat(np.nan_to_num(lowest), sizes, axis=0), filled)


def indicators(scaled: NDArray[Any]) -> sp.csr_array:
    """Fifty indicators for each column of numbers between 0 and 1; NaN is above no threshold."""
    return ScoreBinner(50, "unit").fit_transform(scaled.astype(np.float32))


# --- Comparisons --------------------------------------------------------------------------------


def judge(values: Vector, reference: Vector) -> dict[str, Any]:
    """Mean, and the queries on which the reference wins and loses, with Wilcoxon's p-value."""
    wins, losses, ties = wins_losses(reference, values)
    return {
        "MAP": float(values.mean()),
        "wins": wins,
        "losses": losses,
        "ties": ties,
        "p": wilcoxon(reference, values),
    }


def against(row: Mapping[str, Any]) -> str:
    """Wins and losses of SVMmap against a row, with two stars where p < 0.05, as in the paper."""
    return f"{row['wins']}/{row['losses']}{' **' if row['p'] < 0.05 else ''}"


def three(value: float) -> str:
    """A share with three decimals."""
    return f"{value:.3f}".removeprefix("0")
