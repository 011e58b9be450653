"""SVMmap and its family: a linear ranker that is optimal for the measure it is judged by."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from didyma.data import Features, Groups, Matrix, group_rows, judgements
from didyma.errors import DataError
from didyma.estimators.base import EvaluationSet, LinearRanker, weights_of_queries
from didyma.estimators.monitor import Monitor
from didyma.execution import threads
from didyma.learning.bcfw import BCFW
from didyma.learning.bundle import ProximalBundle
from didyma.learning.cccp import CCCP
from didyma.learning.cutting_plane import NSlack, OneSlack
from didyma.learning.solution import Callback, Result, Solution, check_C, reached
from didyma.tasks.feature_maps import FeatureMap, parse_feature_map
from didyma.tasks.losses import RankingLoss, parse_loss
from didyma.tasks.ramp import BOUNDS, RampProblem, bound_of, uncut
from didyma.tasks.ranking import RankingProblem, trainable_queries

__all__ = ["RankingResult", "SVMRanker"]

MOST_ROUNDS = 100
Problem = TypeVar("Problem", bound=RankingProblem)
SOLVERS = {"bcfw": BCFW, "one-slack": OneSlack, "n-slack": NSlack, "bundle": ProximalBundle}


@dataclass(frozen=True)
class RankingResult(Result):
    """How the training of a ranker ended.

    With the ramp bound ``n_iter`` counts the rounds, ``dual`` and ``gap`` are those of the last
    round's convex problem, and ``start`` is the loss at whose optimum the first one began.
    """

    bound: str = "hinge"
    rounds: int = 0
    start: str | None = None


class SVMRanker(LinearRanker):
    """Structural SVM for rankings (Yue et al. 2007): SVMmap with ``loss="ap"``, SVMroc with "roc".

    Minimises, over the n queries that have a better and a worse row,

        ½‖w‖² + (C/n) Σ_i max_y [Δ_i(y) + w·(Ψ_i(y) − Ψ*_i)]

    exactly, to a relative duality gap of ``tol``; ranks by w·x. The ramp bound (Chapelle et al.
    2008) has the ranking ŷ by w itself in the place of the perfect one,

        ½‖w‖² + (C/n) Σ_i ( max_y [Δ_i(y) + w·Ψ_i(y)] − max_y w·Ψ_i(y) ),

    which is tighter but not convex: rounds of convex problems (CCCP) lead from the optimum of a
    loss without cut-off to a local minimum. Where queries have weights, n is their sum.

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
    bound : {"auto", "hinge", "ramp"}
        Upper bound of the loss that is minimised. "auto" is the ramp for losses with a cut-off and
        for losses of your own, whose hinge is often least at w = 0, and the hinge for others.
    solver : {"bcfw", "one-slack", "n-slack", "bundle"}
        All solve the same problem. "bcfw" is the fast one; "one-slack" suits wide sparse data.
    tol : float
        Relative duality gap at which training stops.
    max_iter : int
        Limit on passes over the data, of one round with the ramp bound.
    measure : str
        Measure that is watched on ``eval_set``, by its ir-measures name.
    patience : int, optional
        Stop when the measure on ``eval_set`` has not improved for so many iterations (with the ramp
        bound: rounds), and keep the best weights.
    n_jobs : int, optional
        Threads; None uses every core. Results do not depend on it.
    random_state : int
        Order in which queries are visited.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops. Not saved with a model.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    result_ : RankingResult
        Objective value, dual, gap, converged, n_iter, passes, status, seconds by stage, bound, and
        the bound over grades that was used ("joint", "thresholds", None if there are only two).
    history_ : list of dict
        One record per iteration; with the ramp bound per round, the first one of the start.
    objective_trace_ : array
        With the ramp bound, the objective at the start and after each round; it never increases.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]
    >>> ranker = SVMRanker(C=10).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    _transient: ClassVar[tuple[str, ...]] = ("callback",)
    _layout: ClassVar[tuple[str, ...]] = ()  # attributes that `_design` learns
    result_: RankingResult
    history_: list[dict[str, Any]]
    objective_trace_: NDArray[np.float64]

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float = 100.0,
        *,
        feature_map: str | FeatureMap = "pairwise",
        grades: str = "auto",
        bound: str = "auto",
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
        self.bound = bound
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
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """A fitted ranker for each C, in ascending order of C; rows as in `fit`.

        Each solution starts from the one before, so that a whole path costs two or three fits.
        """
        self._check_restored()
        values = sorted(float(C) for C in Cs)
        y, qid = judgements(X, y, qid, group)
        rows, grades = self._read_training(X, y)
        groups = group_rows(len(grades), qid, group)
        weight = None if sample_weight is None else weights_of_queries(sample_weight, groups)
        evaluation = self._read_evaluation(eval_set, eval_qid, eval_group)
        self._count_trainable(grades, groups, weight)
        design, evaluation = self._design(rows, grades, groups, weight, evaluation)
        descent = self._descent(design, grades, groups, weight)
        rankers = []
        for C in values:
            ranker = clone(self).set_params(C=C)
            Features.of(self).remember(ranker)
            for name in ("n_queries_", *self._layout):
                setattr(ranker, name, getattr(self, name))
            ranker._solve(descent, evaluation)
            rankers.append(ranker)
            if ranker.result_.status == "interrupted":
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
        self._solve(self._descent(design, y, groups, query_weight), evaluation)

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

    def _descent(
        self,
        X: Any,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
    ) -> _Descent:
        if self.bound not in BOUNDS:
            names = ", ".join(map(repr, BOUNDS))
            raise DataError(f"expected one of {names}, found {self.bound!r}", field="bound")
        loss, feature_map = parse_loss(self.loss), parse_feature_map(self.feature_map)

        def problem(kind: type[Problem], *what: Any) -> Problem:
            return kind(
                *(X, y, groups, *what),
                grades=self.grades,
                query_weight=query_weight,
                execute=threads(self.n_jobs),
            )

        if bound_of(self.bound, loss) == "hinge":
            return _Hinge(problem(RankingProblem, loss, feature_map))
        easy = uncut(loss)
        return _Ramp(
            problem(RampProblem, loss, feature_map), problem(RankingProblem, easy), str(easy)
        )

    def _solve(self, descent: _Descent, evaluation: EvaluationSet | None) -> None:
        monitor = Monitor(evaluation, self.measure, self.patience, self.callback)
        solution, result = descent.solve(self._solver(), check_C(self.C), monitor)
        self.coef_ = solution.w
        if self.patience is not None and monitor.best_w is not None:
            self.coef_ = monitor.best_w
        self.result_ = replace(result, grades=descent.problem.grades)
        self.history_ = monitor.history
        self.n_iter_ = result.n_iter
        if result.bound == "ramp":
            self.objective_trace_ = np.array([record["value"] for record in self.history_])
        gap = result.gap / result.value if result.value > 0.0 else 0.0
        if result.status == "limit" or (result.converged and gap > reached(self.tol)):
            warnings.warn(
                f"stopped after {self.n_iter_} iterations (max_iter={self.max_iter}) with a "
                f"relative gap of {gap:.1e}, above tol={self.tol:g}; raise max_iter or tol, lower "
                "C or scale the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _solver(self) -> Any:
        if self.solver not in SOLVERS:
            names = ", ".join(map(repr, SOLVERS))
            raise DataError(f"expected one of {names}, found {self.solver!r}", field="solver")
        if self.solver == "bcfw":
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            return BCFW(tol=self.tol, max_passes=self.max_iter, seed=seed)
        return SOLVERS[self.solver](tol=self.tol, max_iter=self.max_iter)

    def _trainable(self, y: NDArray[np.float64], groups: Groups) -> NDArray[np.bool_]:
        return trainable_queries(y, groups, parse_loss(self.loss))


class _Descent(Protocol):
    """Fits of one problem, each of which starts where the last one can help."""

    problem: RankingProblem

    def solve(
        self, solver: Any, C: float, callback: Callback
    ) -> tuple[Solution, RankingResult]: ...


class _Hinge:
    def __init__(self, problem: RankingProblem) -> None:
        self.problem = problem
        self._known: Solution | None = None

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        self._known = solver.solve(self.problem, C, start=self._known, callback=callback)
        return self._known, RankingResult(**vars(self._known.result))


class _Ramp:
    """First the loss without cut-off, by its hinge and the pairwise map; then rounds from there."""

    def __init__(self, problem: RampProblem, easy: RankingProblem, name: str) -> None:
        self.problem: RankingProblem = problem
        self._ramp, self._easy, self._name = problem, easy, name
        self._begun: Solution | None = None
        self._known: Solution | None = None

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        begun = self._begun = solver.solve(self._easy, C, start=self._begun)
        first = begun.result
        stopped = first.status == "interrupted"
        most = 0 if stopped else MOST_ROUNDS
        rounds = CCCP(tol=solver.tol, inner=solver, max_iter=most, from_start=True)
        known = None if self._known is None else self._known.state
        found = self._known = rounds.solve(
            self._ramp, C, start=begun.w, known=known, callback=callback
        )
        result = RankingResult(
            **vars(found.result), bound="ramp", rounds=found.result.n_iter, start=self._name
        )
        seconds = {**result.seconds, "start": first.seconds["total"]}
        seconds["total"] += seconds["start"]
        return found, replace(
            result,
            passes=result.passes + first.passes,
            seconds=seconds,
            status="interrupted" if stopped else result.status,
        )
