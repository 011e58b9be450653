"""Ranking by classification: the baselines that Yue et al. (2007) compare SVMmap with."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from didyma.data.groups import Groups
from didyma.data.lists import Lists
from didyma.data.matrix import Matrix, dense
from didyma.errors import DataError, check_choice
from didyma.learning.monitor import EvalSets
from didyma.learning.scoring import BLOCK
from didyma.learning.solution import check_C, overflow, reached
from didyma.model import Saved
from didyma.protocol import check_random_state, warn_of_convergence
from didyma.ranking.binning import ScoreBinner
from didyma.ranking.ranker import LinearRanker, Ranker
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

# Of the losses: beyond this liblinear may never come back.
LARGEST_CURVATURE = 1e50
SMALLEST_VARIANCE = 1e-150  # smaller ones are that of a constant


@dataclass(frozen=True)
class ClassificationResult:
    """How a run ended: the objective's value, and whether the solver met its tolerance."""

    value: float
    converged: bool
    n_iter: int


class _Classifier(Ranker):
    """What both rankers share: one is trained by an SVM of scikit-learn on rows of two classes."""

    C: float
    max_iter: int
    intercept_: Annotated[float, Saved()]
    result_: ClassificationResult

    def _train(
        self, svm: Any, rows: Matrix, relevant: NDArray[np.bool_], cost: NDArray[np.float64]
    ) -> None:
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            svm.fit(rows, relevant, sample_weight=cost)
        self.intercept_ = float(svm.intercept_[0])

    def _report(self, value: float, converged: bool, n_iter: Any, advice: str) -> None:
        self.result_ = ClassificationResult(value, converged, int(np.max(n_iter)))
        if not converged:
            warn_of_convergence(
                f"no convergence in {self.max_iter} rounds at C={self.C:g}: raise max_iter or tol, "
                f"lower C, {advice}",
            )

    def _trainable(self, lists: Lists) -> NDArray[np.bool_]:
        # A query of one class still has rows to classify, as long as another has the other class.
        return np.full(len(lists.groups), 0 < np.sum(lists.y >= 1) < len(lists))


@dataclass(eq=False, repr=False)
class ClassificationRanker(_Classifier, LinearRanker):
    """Rank rows by the decision value of a linear SVM that tells relevant ones from the others.

    Minimises, over the rows of all queries together, with t_i = 1 where y_i ≥ 1 and −1 elsewhere,

        ½‖w‖² + ½b² + (C/n) Σ_i c_i ℓ(t_i (w·x_i + b)),      ℓ(m) = max(0, 1 − m)² or max(0, 1 − m)

    by scikit-learn's `LinearSVC` (whose own C is C/n here, so that the trade-off does not depend on
    the number of rows). The costs c_i have mean 1; those of relevant rows are ``cost_ratio`` times
    those of the others. Queries only matter as weights: a row counts as often as the weight of its
    query says in ``fit(sample_weight=)``, and n is the sum of these.

    Parameters
    ----------
    C : float
        Weight of the losses against the norm.
    cost_ratio : float or "balanced"
        Cost of missing a relevant row over that of a false alarm; "balanced" is the number of
        other rows over the number of relevant ones.
    loss : {"squared_hinge", "hinge"}
        The squared hinge is minimised by Newton steps, which converge at any C and scale of the
        features. The hinge itself, as in the paper, is left to coordinate ascent on the dual,
        which takes features of about unit size and a moderate C.
    tol, max_iter, random_state
        Passed to `LinearSVC`.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
        The same for all rows, so it moves the decision value but no rank.
    result_ : ClassificationResult
        The value of the objective, whether the solver met ``tol``, and in how many rounds.

    >>> ranker = ClassificationRanker(C=10.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> ranker.rank([[2.0], [5.0], [1.0]]).tolist()
    [2, 1, 3]
    """

    C: float = 1.0
    _: KW_ONLY
    cost_ratio: float | str = 1.0
    loss: str = "squared_hinge"
    tol: float = 1e-3
    max_iter: int = 10_000
    random_state: int | None = 0

    def _score_rows(self, X: Matrix) -> NDArray[np.float64]:
        return super()._score_rows(X) + self.intercept_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.loss, ("squared_hinge", "hinge"), "loss")

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        from sklearn.svm import LinearSVC

        check_C(self.C)
        X = train.X
        _check_indices(X)
        relevant = train.y >= 1
        weight = _mean_one(train.weights, train.groups.codes)
        cost = weight * self._costs(relevant, weight)
        scale = self.C / len(train)
        if scale * max(1.0, _largest(X)) ** 2 > LARGEST_CURVATURE:
            raise overflow(self.C)
        svm = LinearSVC(
            C=scale,
            loss=self.loss,
            dual=self.loss == "hinge",  # the hinge has no primal solver
            tol=reached(self.tol),
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        self._train(svm, X, relevant, cost)
        self.coef_ = svm.coef_[0]
        if not np.isfinite(self.coef_).all():
            raise overflow(self.C)
        margin = np.where(relevant, 1, -1) * (X @ self.coef_ + self.intercept_)
        losses = np.maximum(0, 1 - margin) ** (1 if self.loss == "hinge" else 2)
        norm = self.coef_ @ self.coef_ + self.intercept_**2
        self._report(
            float(norm / 2 + scale * (cost @ losses)),
            bool(svm.n_iter_ < self.max_iter),
            svm.n_iter_,
            'scale the features, or use loss="squared_hinge"',
        )

    def _costs(
        self, relevant: NDArray[np.bool_], weight: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        n_relevant, n_others = _both_classes(relevant, weight)
        ratio = n_others / n_relevant if self.cost_ratio == "balanced" else float(self.cost_ratio)
        unit = (n_relevant + n_others) / (ratio * n_relevant + n_others)
        return np.where(relevant, ratio * unit, unit)


@dataclass(eq=False, repr=False)
class PolynomialRanker(_Classifier):
    """Rank rows by the decision value of an SVM with a polynomial kernel.

    The baseline of Haponchyk & Moschitti (2019): K(x, x') = (γ x·x' + 1)^degree, trained on at most
    ten rows of each query, by scikit-learn's `SVC` (whose own C is C/n here).

    Parameters
    ----------
    C : float
        Weight of the losses against the norm; n is the number of rows that are trained on, each
        counted as often as the weight of its query says.
    degree : int
    gamma : float or "scale"
        γ; "scale" is 1 / (number of features · variance of the rows' entries).
    n_candidates : int or None
        Rows of each query to train on: the relevant ones first, then others at random, at least one
        of these if there is any. None is all.
    tol, max_iter
        Passed to `SVC`.
    random_state : int
        Which rows are drawn.

    Attributes
    ----------
    support_vectors_ : array of shape (n_support, n_features)
    dual_coef_ : array of shape (n_support,)
    intercept_ : float
    gamma_ : float
    result_ : ClassificationResult
        The value of the objective, ½‖w‖² + (C/n) Σ_i max(0, 1 − t_i f(x_i)).

    >>> X = [[0.0], [1.0], [-3.0], [3.0]]
    >>> ranker = PolynomialRanker(C=100.0, degree=2).fit(X, [0, 0, 1, 1])
    >>> ranker.rank([[0.5], [-4.0], [2.5]]).tolist()
    [3, 1, 2]
    """

    C: float = 100.0
    _: KW_ONLY
    degree: int = 3
    gamma: float | str = "scale"
    n_candidates: int | None = 10
    tol: float = 1e-3
    max_iter: int = 1_000_000
    random_state: Any = 0

    support_vectors_: Annotated[NDArray[np.float64], Saved("vectors", "n_features")] = field(
        init=False
    )
    dual_coef_: Annotated[NDArray[np.float64], Saved("vectors")] = field(init=False)
    gamma_: Annotated[float, Saved()] = field(init=False)

    def _predict(self, X: Any) -> NDArray[np.float64]:
        return self._score_rows(self._read_rows(X, reset=False))

    def _check_state(self) -> None:
        if self.degree < 0:
            raise ValueError(f"degree should be a count, but is {self.degree}")

    def _score_rows(self, X: Matrix) -> NDArray[np.float64]:
        scores = np.empty(X.shape[0])
        for start in range(0, len(scores), BLOCK):
            products = X[start : start + BLOCK] @ self.support_vectors_.T
            kernels = (self.gamma_ * products + 1.0) ** self.degree
            scores[start : start + BLOCK] = kernels @ self.dual_coef_
        return scores + self.intercept_

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        from sklearn.svm import SVC

        check_C(self.C)
        _check_indices(train.X)
        chosen = self._candidates(train.y >= 1, train.groups)
        rows, relevant = train.X[chosen], train.y[chosen] >= 1
        cost = _mean_one(train.weights, train.groups.codes[chosen])
        _both_classes(relevant, cost)
        self.gamma_ = self._gamma(rows, cost)
        scale = self.C / len(chosen)
        svm = SVC(
            C=scale,
            kernel="poly",
            degree=self.degree,
            gamma=self.gamma_,
            coef0=1.0,
            tol=reached(self.tol),
            max_iter=self.max_iter,
        )
        self._train(svm, rows, relevant, cost)
        support, dual = svm.support_vectors_, svm.dual_coef_
        self.support_vectors_ = dense(support)
        self.dual_coef_ = dense(dual)[0]
        if not np.isfinite(self.dual_coef_).all() or not np.isfinite(self.intercept_):
            raise overflow(self.C)
        sign = np.where(relevant, 1.0, -1.0)
        losses = np.maximum(0.0, 1.0 - sign * svm.decision_function(rows))
        scores = svm.decision_function(support) - self.intercept_
        self._report(
            float(0.5 * self.dual_coef_ @ scores + scale * (cost @ losses)),
            svm.fit_status_ == 0,
            svm.n_iter_,
            "or scale the features",
        )

    def _candidates(self, relevant: NDArray[np.bool_], groups: Groups) -> NDArray[np.int64]:
        """Rows to train on."""
        if self.n_candidates is None:
            return np.arange(len(relevant))
        draw = check_random_state(self.random_state).random_sample(len(relevant))
        order = np.lexsort((draw, ~relevant, groups.codes))
        place = np.arange(len(relevant)) - np.repeat(groups.starts[:-1], groups.sizes)
        turn = np.where(relevant, 0, 1)
        turn[order[relevant[order] & (place >= self.n_candidates - 1)]] = 2  # room for another
        order = np.lexsort((draw, turn, groups.codes))
        return np.sort(order[place < self.n_candidates])

    def _gamma(self, rows: Any, weight: NDArray[np.float64]) -> float:
        if self.gamma != "scale":
            return float(self.gamma)
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        n = rows.shape[0] * rows.shape[1]
        mean, square = (float(np.sum(weight @ part)) / n for part in (rows, squares))
        variance = square - mean**2
        return 1.0 / (rows.shape[1] * variance) if variance > SMALLEST_VARIANCE else 1.0


def _largest(X: Any) -> float:
    """The largest magnitude of a feature."""
    values = X.data if sp.issparse(X) else X
    return float(max(values.max(), -values.min())) if values.size else 0.0


def _check_indices(X: Matrix) -> None:
    """Refuse a matrix so wide, or of so many entries, that scikit-learn has no indices for it."""
    if not isinstance(X, np.ndarray) and X.indices.dtype != np.int32:
        raise DataError("expected fewer than 2^31 columns and entries", field="X")


def _mean_one(
    query_weight: NDArray[np.float64] | None, codes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Weights of rows with a mean of 1, so that C over their number is C over their sum."""
    if query_weight is None:
        return np.ones(len(codes))
    weight = query_weight[codes]
    total = float(weight.sum())
    return np.asarray(weight * (len(codes) / total) if total > 0.0 else weight)


def _both_classes(relevant: NDArray[np.bool_], weight: NDArray[np.float64]) -> tuple[float, float]:
    """The weight of all relevant rows, and that of the others."""
    n_relevant, n_others = float(weight[relevant].sum()), float(weight[~relevant].sum())
    if n_relevant == 0.0 or n_others == 0.0:
        raise DataError(
            "there is nothing to learn from: rows of one class have no weight",
            field="sample_weight",
        )
    return n_relevant, n_others


def baseline(name: str, C: float = 1.0) -> ClassificationRanker | Pipeline:
    """One of the four classification baselines of Yue et al. (2007), section 5.2.

    ``"acc"`` classifies the features as they are, ``"acc2"`` with the costs of both classes
    balanced. The others replace retrieval scores by 50 indicators each (`ScoreBinner` with even
    thresholds in [0, 1]): ``"acc3"`` of their percentiles within the query, ``"acc4"`` of their
    place between the query's extremes; these need ``qid`` to predict, and so metadata routing. All
    use the hinge loss, which suits such indicators.

    >>> from sklearn import config_context
    >>> X, y, qid = [[1.0], [3.0], [20.0], [60.0]], [0, 1, 0, 1], ["a", "a", "b", "b"]
    >>> with config_context(enable_metadata_routing=True):
    ...     baseline("acc4").fit(X, y, qid=qid).score(X, y, qid=qid)
    1.0
    """
    scalers = {"acc3": QueryPercentileScaler, "acc4": QueryMinMaxScaler}
    if name not in ("acc", "acc2", *scalers):
        raise DataError(f"expected acc, acc2, acc3 or acc4, found {name!r}", field="baseline")
    cost_ratio = "balanced" if name == "acc2" else 1.0
    ranker = ClassificationRanker(C, cost_ratio=cost_ratio, loss="hinge", tol=0.01)
    if name not in scalers:
        return ranker
    from sklearn.pipeline import make_pipeline

    return make_pipeline(scalers[name](), ScoreBinner(strategy="unit"), ranker)
