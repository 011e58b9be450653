"""SVMmap and its family: a linear ranker that is optimal for the measure it is judged by."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.cluster.shards import is_sharded
from didyma.data.lists import Groups, Lists, group_rows, judgements
from didyma.data.matrix import Matrix
from didyma.learning.solution import Callback
from didyma.ranking.feature_maps import FeatureMap, parse_feature_map
from didyma.ranking.losses import ItemwiseLoss, parse_loss
from didyma.ranking.problem import RankingProblem
from didyma.ranking.ramp import RampProblem, uncut
from didyma.ranking.ranker import LinearRanker, weights_of_queries
from didyma.ranking.svm_training import Descent, RankingResult, SVMTraining

__all__ = ["RankingResult", "SVMRanker"]


class SVMRanker(SVMTraining, LinearRanker):
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
    loss : str or ItemwiseLoss
        "ap", "rr", "roc", "ndcg", "ndcg@10", "precision@5", …, with "(rel=2)" for the least grade
        that counts as relevant, or a loss object (`didyma.ranking.losses`).
    C : float, optional
        Weight of the loss against the norm. Good values depend on the scale of the features, and
        are larger for the ramp bound; 100 if not given, 10,000 with the ramp.
    feature_map : str or FeatureMap
        "pairwise", "positional", "positional:discount", "truncated", "top@10". Or an object.
    grades : {"auto", "joint", "thresholds"}
        Bound on NDCG over grades: one ranking for all, or a binary one for each threshold, which is
        never slow. The joint bound is tighter, and takes time in the product of the grades' counts;
        the other is a weighted sum, in a sort for each threshold. "auto" is the joint one where
        that costs no more than a few sorts, and for positional maps, which have joint oracles of
        their own.
    bound : {"auto", "hinge", "ramp"}
        Bound of the loss: "ramp" suits cut-offs ("ndcg@10", "precision@5"), "hinge" the rest.
        "auto" is the ramp for losses with a cut-off and for losses of your own, whose hinge is
        often least at w = 0, and the hinge for others.
    solver : {"bcfw", "one-slack", "n-slack", "bundle"}
        All find the same optimum; "bcfw" is the fast one, "one-slack" suits wide sparse data.
    tol : float >= 0
        Relative duality gap at which training stops.
    max_iter : int >= 1
        Limit on passes over the data, of one round with the ramp bound.
    measure : str
        Measure that is watched on ``eval_set``, by its ir-measures name.
    patience : int >= 1, optional
        Stop after so many iterations without a better value on ``eval_set``, and keep the best
        weights. Iterations are those at C, not those at smaller C by which "bcfw" approaches a
        large one; with the ramp bound, rounds.
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

    def __init__(
        self,
        loss: str | ItemwiseLoss = "ap",
        C: float | None = None,
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
        if is_sharded(X):
            evaluated = {"eval_set": eval_set, "eval_qid": eval_qid, "eval_group": eval_group}
            return self._path_on_cluster(X, y, qid, group, sample_weight, evaluated, Cs)
        y, qid = judgements(X, y, qid, group)
        rows, grades = self._read_training(X, y)
        groups = group_rows(len(grades), qid, group)
        weight = None if sample_weight is None else weights_of_queries(sample_weight, groups)
        evaluation = self._read_evaluation(eval_set, eval_qid, eval_group)
        self._count_trainable(grades, groups, weight)
        design, evaluation = self._design(rows, grades, groups, weight, evaluation)
        descent = self._descent(design, grades, groups, weight)
        return self._follow(descent, rows, grades, groups, evaluation, Cs)

    def _fit(
        self,
        X: Matrix,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
        evaluation: Lists | None,
    ) -> None:
        design, evaluation = self._design(X, y, groups, query_weight, evaluation)
        self._solve(self._descent(design, y, groups, query_weight), evaluation)

    def _path_on_cluster(
        self,
        X: Any,
        y: Any,
        qid: Any,
        group: Any,
        sample_weight: Any,
        evaluated: dict[str, Any],
        Cs: Iterable[float],
    ) -> list[Self]:
        from didyma.ranking.cluster import check_learned, reading

        with reading(self, X, y, qid, group, sample_weight) as (workers, weights, n_jobs):
            evaluation = self._read_evaluation(**evaluated)
            descent, evaluation = self._shard_descent(workers, weights, n_jobs, evaluation)
            return self._path(
                descent, evaluation, Cs, lambda ranker: check_learned(ranker, workers)
            )

    def _fit_shards(
        self, workers: Any, weights: NDArray[np.float64], n_jobs: int, evaluation: Lists | None
    ) -> None:
        descent, evaluation = self._shard_descent(workers, weights, n_jobs, evaluation)
        self._solve(descent, evaluation)

    def _shard_descent(
        self, workers: Any, weights: NDArray[np.float64], n_jobs: int, evaluation: Lists | None
    ) -> tuple[Descent, Lists | None]:
        """`_descent` over shards, and what the weights weigh of the rows to evaluate on."""
        from didyma.cluster.latent import ShardedLatentProblem
        from didyma.cluster.problem import ShardedProblem
        from didyma.ranking.cluster import ShardedHinge, ShardedRamp, for_worker, sharded

        n_features, feasible, evaluation = self._design_shards(workers, evaluation)
        twin = for_worker(self, n_jobs)
        loss, feature_map = parse_loss(self.loss), parse_feature_map(self.feature_map)
        make = twin._make_problem
        if self._bound() == "hinge":
            make = partial(make, RankingProblem, loss, feature_map)
            problem = sharded(ShardedProblem, workers, weights, make, n_features, feasible)
            return ShardedHinge(problem), evaluation
        easy = uncut(loss)
        begin = partial(make, RankingProblem, easy, None)
        start = sharded(ShardedProblem, workers.branch(), weights, begin, n_features)
        make = partial(make, RampProblem, loss, feature_map)
        ramp = sharded(ShardedLatentProblem, workers, weights, make, n_features)
        return ShardedRamp(ramp, start, str(easy)), evaluation

    def _make_problem(self, kind: Any, loss: Any, feature_map: Any, *, X: Any, **rows: Any) -> Any:
        """A worker's problem."""
        return self._problem(kind, loss, feature_map, X=self._weighed(X), **rows)

    def _weighed(self, X: Matrix) -> Any:
        """What the weights weigh of some rows, once that is known."""
        return X

    def _design_shards(
        self, workers: Any, evaluation: Lists | None
    ) -> tuple[int, Any, Lists | None]:
        """`_design` over shards: the number of weights, and the projection onto those allowed."""
        return self.n_features_in_, None, evaluation

    def _design(
        self,
        X: Matrix,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
        evaluation: Lists | None,
    ) -> tuple[Any, Lists | None]:
        """What the weights weigh, of the rows to learn from and of those to evaluate on."""
        return X, evaluation
