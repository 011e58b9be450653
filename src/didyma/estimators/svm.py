"""SVMmap and its family: a linear ranker that is optimal for the measure it is judged by."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from didyma.data import Features, Groups, Matrix, group_rows, judgements
from didyma.errors import DataError
from didyma.estimators.base import EvaluationSet, LinearRanker
from didyma.estimators.monitor import Monitor
from didyma.execution import threads
from didyma.learning.bcfw import BCFW
from didyma.learning.bundle import ProximalBundle
from didyma.learning.cutting_plane import NSlack, OneSlack
from didyma.learning.solution import Callback, Result, Solution
from didyma.tasks.feature_maps import FeatureMap, parse_feature_map
from didyma.tasks.losses import RankingLoss, parse_loss
from didyma.tasks.ranking import RankingProblem, trainable_queries

__all__ = ["SVMRanker"]

SOLVERS = {"bcfw": BCFW, "one-slack": OneSlack, "n-slack": NSlack, "bundle": ProximalBundle}


class SVMRanker(LinearRanker):
    """Structural SVM for rankings (Yue et al. 2007): SVMmap with ``loss="ap"``, SVMroc with "roc".

    Minimises, over the n queries that have a better and a worse row,

        ½‖w‖² + (C/n) Σ_i max_y [Δ_i(y) + w·(Ψ_i(y) − Ψ*_i)]

    exactly, to a relative duality gap of ``tol``; ranks by w·x.

    Parameters
    ----------
    loss : str or RankingLoss
        "ap", "rr", "roc", "ndcg", "ndcg@10", "precision@5", …, with "(rel=2)" for the least grade
        that counts as relevant, or a loss object (`didyma.tasks.losses`).
    C : float
        Weight of the loss against the norm. Good values depend on the scale of the features.
    feature_map : str or FeatureMap
        "pairwise", "positional", "positional:discount", "truncated", "top@10" or an object.
    grades : {"auto", "joint", "thresholds"}
        How NDCG over more than two grades is bounded: by one ranking for all grades, which is
        tighter and takes time in the product of their counts, or by a weighted sum of one binary
        bound for each threshold, in a sort each. "auto" is the joint one where that costs no more
        than a few sorts, and for positional maps, which have joint oracles of their own.
    solver : {"bcfw", "one-slack", "n-slack", "bundle"}
        All solve the same problem. "bcfw" is the fast one; "one-slack" suits wide sparse data.
    tol : float
        Relative duality gap at which training stops.
    max_iter : int
        Limit on passes over the data.
    measure : str
        Measure that is watched on ``eval_set``, by its ir-measures name.
    patience : int, optional
        Stop when the measure on ``eval_set`` has not improved for so many iterations, and keep the
        best weights.
    n_jobs : int, optional
        Threads; None uses every core. Results do not depend on it.
    random_state : int
        Order in which queries are visited.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops. Not saved with a model.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    result_ : Result
        Objective value, dual, gap, converged, n_iter, passes, status, seconds by stage, and the
        bound over grades that was used ("joint", "thresholds", None if there are only two).
    history_ : list of dict
        One record per iteration.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]
    >>> ranker = SVMRanker(C=10).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    _transient: ClassVar[tuple[str, ...]] = ("callback",)
    _layout: ClassVar[tuple[str, ...]] = ()  # attributes that `_design` learns
    result_: Result
    history_: list[dict[str, Any]]

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float = 100.0,
        *,
        feature_map: str | FeatureMap = "pairwise",
        grades: str = "auto",
        solver: str = "bcfw",
        tol: float = 1e-3,
        max_iter: int = 1000,
        measure: str = "AP",
        patience: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        callback: Callback | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.feature_map = feature_map
        self.grades = grades
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.measure = measure
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def path(
        self,
        X: Any,
        y: ArrayLike | None,
        Cs: Iterable[float],
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> list[Self]:
        """A fitted ranker for each C, in ascending order of C.

        Each solution starts from the one before, so that a whole path costs two or three fits.
        """
        self._check_restored()
        values = sorted(float(C) for C in Cs)
        y, qid = judgements(X, y, qid, group)
        rows, grades = self._read_judged(X, y, reset=True)
        groups = group_rows(len(grades), qid, group)
        evaluation = self._read_evaluation(eval_set, eval_qid, eval_group)
        self._count_trainable(grades, groups, None)
        design, evaluation = self._design(rows, grades, groups, None, evaluation)
        problem = self._problem(design, grades, groups, None)
        rankers = []
        solution: Solution | None = None
        for C in values:
            ranker = clone(self).set_params(C=C)
            Features.of(self).remember(ranker)
            for name in ("n_queries_", *self._layout):
                setattr(ranker, name, getattr(self, name))
            solution = ranker._solve(problem, evaluation, solution)
            rankers.append(ranker)
            if solution.result.status == "interrupted":
                break
        return rankers

    def _fit(
        self,
        X: Matrix,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
        evaluation: EvaluationSet | None,
    ) -> None:
        design, evaluation = self._design(X, y, groups, query_weight, evaluation)
        self._solve(self._problem(design, y, groups, query_weight), evaluation, None)

    def _design(
        self,
        X: Matrix,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
        evaluation: EvaluationSet | None,
    ) -> tuple[Any, EvaluationSet | None]:
        """What the weights weigh, of the rows to learn from and of those to evaluate on."""
        return X, evaluation

    def _problem(
        self,
        X: Any,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
    ) -> RankingProblem:
        return RankingProblem(
            X,
            y,
            groups,
            parse_loss(self.loss),
            parse_feature_map(self.feature_map),
            grades=self.grades,
            query_weight=query_weight,
            execute=threads(self.n_jobs),
        )

    def _solve(
        self, problem: RankingProblem, evaluation: EvaluationSet | None, start: Solution | None
    ) -> Solution:
        monitor = Monitor(evaluation, self.measure, self.patience, self.callback)
        solution = self._solver().solve(problem, float(self.C), start=start, callback=monitor)
        self.coef_ = solution.w
        if self.patience is not None and monitor.best_w is not None:
            self.coef_ = monitor.best_w
        self.result_ = replace(solution.result, grades=problem.grades)
        self.history_ = monitor.history
        self.n_iter_ = solution.result.n_iter
        if solution.result.status == "limit":
            gap = solution.result.gap / solution.result.value
            warnings.warn(
                f"stopped at max_iter={self.max_iter} with a relative gap of {gap:.1e}, above "
                f"tol={self.tol:g}; raise max_iter, lower C or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )
        return solution

    def _solver(self) -> Any:
        if not (isinstance(self.C, Real) and 0 < self.C < np.inf):
            raise DataError(f"expected a positive number, found {self.C!r}", field="C")
        if self.solver not in SOLVERS:
            names = ", ".join(map(repr, SOLVERS))
            raise DataError(f"expected one of {names}, found {self.solver!r}", field="solver")
        if self.solver == "bcfw":
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            return BCFW(tol=self.tol, max_passes=self.max_iter, seed=seed)
        return SOLVERS[self.solver](tol=self.tol, max_iter=self.max_iter)

    def _trainable(self, y: NDArray[np.float64], groups: Groups) -> NDArray[np.bool_]:
        return trainable_queries(y, groups, parse_loss(self.loss))
