"""Rankers that treat the gold ranking as latent: relevant rows come first, in the best order."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.checkpoints import remember
from didyma.data.lists import Lists
from didyma.errors import NothingLearnedWarning, check_choice
from didyma.learning.cccp import CCCP, LatentResult, best_of, inner_solver
from didyma.learning.monitor import EvalSets, Monitor, gain_over_zero
from didyma.learning.perceptron import Perceptron, PerceptronState
from didyma.learning.solution import Solution
from didyma.model import Saved
from didyma.protocol import seed_of, warn_of_convergence
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.feature_maps import (
    FeatureMap,
    Positional,
    TopMean,
    Truncated,
    parse_feature_map,
)
from didyma.ranking.latent_problem import LatentRankingProblem
from didyma.ranking.losses import AveragePrecision, ItemwiseLoss, PrecisionAt, parse_loss
from didyma.ranking.ranker import StartedRanker
from didyma.stateful import array_of

CLASSIFIER_CS = (1.0, 10.0, 100.0, 1000.0)


@dataclass(eq=False, repr=False)
class _LatentRanker(StartedRanker):
    """What both rankers share."""

    loss: str | ItemwiseLoss | None = "ap"
    C: float = 1.0
    _: KW_ONLY
    inference: str = "exact"

    _remedy = 'loss="ap(rel={level:g})" takes rows from {level:g} on as relevant'

    def _loss(self) -> ItemwiseLoss:
        return AveragePrecision() if self.loss is None else parse_loss(self.loss)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.inference, ("exact", "greedy"), "inference")
        self._feature_map()

    def _feature_map(self) -> FeatureMap:
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class LatentPerceptronRanker(_LatentRanker):
    """Latent structured perceptron for rankings (Haponchyk & Moschitti 2019).

    Visits one query at a time and, with Ψ(r) = Σ_j v_j φ(item at rank j), finds the ranking r̂ that
    maximises w·Ψ(r) + C·Δ(r). Unless Δ(r̂) = 0,

        w ← w + Ψ(r*) − Ψ(r̂),

    where r* ranks the relevant rows first, both classes by descending score. Ranks by w̄·x, with w̄
    the mean of all iterates. The paper's LSP is ``loss=None``, LSP-AP is ``inference="greedy"``,
    LSP-AP* is the default.

    Parameters
    ----------
    loss : str, ItemwiseLoss or None
        Δ in the search for r̂, as in `SVMRanker`; None searches without a loss.
    inference : {"exact", "greedy"}
        "greedy" is the paper's (for "ap" only); it is plain sorting for queries with one relevant
        row, and finds worse rankings than "exact" for most others.
    C : float
        Weight of the loss in the search. Good values depend on the scale of the features.
    epochs : int >= 1
        Passes over the queries.
    weights : "reciprocal", "discount" or non-increasing numbers
        v_j: 1/j, 1/log2(1 + j), or given.
    measure : str, optional
        Measure on ``eval_set``, by its ir-measures name, of whose best epoch the weights are kept;
        that of the loss if not given.
    random_state : int
        Order in which queries are visited.
    warm_start : bool
        A further `fit` begins at the weights of the last one. So can a first one, at ``coef_init``.
    callback : callable, optional
        Called with a `Progress` after each epoch; True stops. Not saved with a model.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    best_epoch_ : int
        The epoch whose weights are kept: the last one, unless there is an ``eval_set``.
    result_ : Result
        ``value`` is the mean loss of the last epoch's rankings r̂; there is no bound on it.
    history_ : list of dict
        One record per epoch: the learning curve.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]
    >>> ranker = LatentPerceptronRanker().fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    _: KW_ONLY
    epochs: int = 100
    weights: Any = "reciprocal"

    best_epoch_: Annotated[int, Saved()] = field(init=False)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Visit some more queries once, from where the last call or `fit` ended; rows as in `fit`.

        Columns must stay the same. ``best_epoch_`` and ``n_queries_`` count on. A ranker that was
        loaded from a file goes on from its weights, and the mean of iterates begins anew.
        """
        self._check_parameters()
        first = not hasattr(self, "coef_")
        calls, queries = (0, 0) if first else (self.best_epoch_, self.n_queries_)
        train = self._read_training(X, y, qid, group, sample_weight, reset=first)
        problem = self._problem(train)
        start = getattr(self, "_last", None)
        if start is None and not first:
            start = PerceptronState(self.coef_)
        perceptron = Perceptron(1, seed_of(self.random_state) + calls, float(self.C))
        self._learn(
            partial(perceptron.solve, problem, multiplicity=problem.multiplicity, start=start), {}
        )
        self.n_iter_ = self.best_epoch_ = calls + 1
        self.n_queries_ += queries
        return self

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        problem = self._problem(train)
        perceptron = Perceptron(self.epochs, seed_of(self.random_state), float(self.C))
        first = self._beginning(problem.n_features)
        start = None if first is None else PerceptronState(first)
        self._learn(
            partial(perceptron.solve, problem, multiplicity=problem.multiplicity, start=start),
            evaluation,
        )

    def _fit_shards(
        self, workers: Any, weights: NDArray[np.float64], n_jobs: int, evaluation: EvalSets
    ) -> None:
        from didyma.cluster.problem import ShardedProblem
        from didyma.cluster.solvers import MixedPerceptron
        from didyma.ranking.cluster import for_worker, sharded

        make = for_worker(self, n_jobs)._problem
        problem = sharded(ShardedProblem, workers, weights, make, self.n_features_in_)
        perceptron = MixedPerceptron(self.epochs, seed_of(self.random_state))
        self._learn(partial(perceptron.solve, problem), evaluation)

    def _problem(self, train: Lists) -> LatentRankingProblem:
        return LatentRankingProblem(
            *(train.X, train.y, train.groups, self._loss(), self._feature_map()),
            inference="sort" if self.loss is None else self.inference,
            loss_scale=self.C,
            online=True,
            query_weight=train.weights,
        )

    def _feature_map(self) -> FeatureMap:
        return Positional(self.weights)

    def _learn(self, solve: Callable[..., Solution], evaluation: EvalSets) -> None:
        monitor = Monitor(evaluation, self.judged_by(), None, self.callback)
        solution = solve(callback=monitor)
        self._last = solution.state
        self._keep(solution, solution.result, monitor, best=True)
        self.best_epoch_ = self.n_iter_
        if monitor.best_w is not None:
            curve = [list(record.values())[-len(evaluation)] for record in self.history_]
            self.best_epoch_ = int(self.history_[int(np.argmax(curve))]["n_iter"])


@dataclass(eq=False, repr=False)
class LatentSVMRanker(_LatentRanker):
    """Latent structural SVM for rankings (Yu & Joachims 2009; Haponchyk & Moschitti 2019).

    Looks for a local minimum, over the n queries that have a better and a worse row, of

        ½‖w‖² + (C/n) Σ_i ( max_r [Δ_i(r) + w·Ψ_i(r)] − max_{r perfect} w·Ψ_i(r) )

    by CCCP: rounds of completing the perfect rankings and solving a convex problem. The objective
    never increases with the default inference.

    Parameters
    ----------
    loss : str or ItemwiseLoss
        "ap", "precision@5", "rr", "roc", …, as in `SVMRanker`.
    C : float
        Weight of the loss against the norm. (Papers that write C Σ_i mean C/n of ours by it.)
    inference : {"exact", "greedy"}
        "greedy" is that of Haponchyk & Moschitti (for "ap" only). It loses the guarantee: see
        ``objective_trace_``.
    positions : {"relevant", "all"}
        Ranks that the search for the most violating ranking scores; "all" repeats the mismatch of
        the published method. The truncated map counts only as many ranks as there are relevant
        rows; with "all" the guarantee is lost too.
    feature_map : str, FeatureMap or None
        "truncated" (1/j for the j-th of P ranks), "positional", "top@5", … None is "top@k" for
        "precision@k", as in Yu & Joachims, and "truncated" for other losses.
    start : {"classifier", "random"}
        Where CCCP begins: at the weights of a classifier, or at random perfect rankings. In the
        classifier each query counts the same (rows weigh 1/#documents; C by its accuracy on
        ``eval_set``, or on the training rows). Where relevance is hard to tell, runs end at w = 0,
        a local minimum: mostly from random rankings, less often from the classifier.
    solver : {"one-slack", "bundle", "n-slack"}
        What solves the convex problem of a round; "bundle" is that of Yu & Joachims.
    tol : float
        CCCP stops when a round gains less, relative to the objective.
    max_iter : int
        Limit on rounds.
    n_restarts : int
        Runs, of which the one with the lowest objective is kept: the first as ``start`` says, the
        others from random perfect rankings.
    ties : int
        Where a run would end, so many perfect rankings that are tied with the last ones, or nearly
        so, are tried; see `didyma.learning.cccp`. The published procedure is 0.
    measure, patience, n_jobs, callback
        As in `SVMRanker`, with rounds for iterations.
    random_state : int
        For random starts.
    warm_start : bool
        A further `fit` begins at the weights of the last one, in the place of ``start``. So can a
        first one, at ``coef_init``.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    start_coef_ : array of shape (n_features,)
        Weights at the start; zero for random ones.
    objective_trace_ : array
        The objective after each round of the kept run, as the search for violating rankings
        measures it. Unless that is exact and scores the "relevant" positions, this is only a lower
        bound: it may fall while the objective itself rises.
    result_ : LatentResult
        ``value`` is the objective; ``dual`` bounds only the last convex problem; ``kept`` is the
        number of the run that was kept, ``values`` are the objectives of all, and ``escapes`` says
        how often a tied ranking led on.
    history_ : list of dict
        One record per round of all runs.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]
    >>> ranker = LatentSVMRanker(C=10).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    C: float = 100.0
    _: KW_ONLY
    positions: str = "relevant"
    feature_map: str | FeatureMap | None = None
    start: str = "classifier"
    solver: str = "one-slack"
    tol: float = 1e-3
    max_iter: int = 100
    n_restarts: int = 1
    ties: int = 4
    patience: int | None = None
    n_jobs: int | None = None

    start_coef_: Annotated[NDArray[np.float64], Saved("n_features")] = field(init=False)
    objective_trace_: Annotated[NDArray[np.float64], Saved("rounds")] = field(init=False)
    result_: LatentResult = field(init=False)

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        problem = self._problem(train)
        start = self._beginning(problem.n_features)
        if start is None and self.start == "classifier":
            start = remember(
                f"a classifier of {len(train)} rows",
                lambda: _classify(train, evaluation, self._loss().rel),
                lambda first: array_of(first, "weights", (self.n_features_in_,)),
            )
        self._descend(problem, start, evaluation)

    def _fit_shards(
        self, workers: Any, weights: NDArray[np.float64], n_jobs: int, evaluation: EvalSets
    ) -> None:
        """The classifier to start from is the mean of those of the shards."""
        from didyma.cluster.problem import ShardedLatentProblem
        from didyma.ranking.cluster import for_worker, sharded

        make = for_worker(self, n_jobs)._problem
        problem = sharded(ShardedLatentProblem, workers, weights, make, self.n_features_in_)
        start = None
        if self.start == "classifier":
            classifiers = workers.ask(_classify_shard, evaluation, self._loss().rel)
            start = weights @ np.array(classifiers)
        self._descend(problem, start, evaluation)

    def _problem(self, train: Lists) -> LatentRankingProblem:
        return LatentRankingProblem(
            *(train.X, train.y, train.groups, self._loss(), self._feature_map()),
            inference=self.inference,
            all_positions=self.positions == "all",
            query_weight=train.weights,
            n_jobs=self.n_jobs,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.positions, ("relevant", "all"), "positions")
        check_choice(self.start, ("classifier", "random"), "start")
        inner_solver(self.solver)

    def _feature_map(self) -> FeatureMap:
        if self.feature_map is not None:
            return parse_feature_map(self.feature_map)
        loss = self._loss()
        return TopMean(loss.k) if isinstance(loss, PrecisionAt) else Truncated()

    def _descend(
        self, problem: Any, start: NDArray[np.float64] | None, evaluation: EvalSets
    ) -> None:
        self.start_coef_ = np.zeros(problem.n_features) if start is None else start
        monitor = Monitor(evaluation, self.judged_by(), self.patience, self.callback)
        solver = CCCP(
            tol=self.tol, max_iter=self.max_iter, inner=inner_solver(self.solver), ties=self.ties
        )
        seed = seed_of(self.random_state)
        starts = [start, *[None] * (self.n_restarts - 1)]
        solution = best_of(
            solver.solve(problem, float(self.C), start=w, random_state=seed + run, callback=monitor)
            for run, w in enumerate(starts)
        )
        self._keep(solution, solution.result, monitor, best=self.patience is not None)
        self.objective_trace_ = np.array(solution.state.trace)
        self._gain = gain_over_zero(problem, float(self.C), solution, self.tol)
        result = solution.result
        exact = self.inference == "exact" and self.positions == "relevant"  # or no gap is certain
        if result.status == "limit" and result.n_iter == self.max_iter:
            warn_of_convergence(
                f"stopped after max_iter={self.max_iter} rounds, the last of which still gained "
                f"more than tol={self.tol:g}; raise max_iter or lower C",
            )
        elif result.status == "limit" and exact:
            warn_of_convergence(
                f"stopped after {result.n_iter} rounds with a relative gap of "
                f"{result.relative_gap:.1e}, above tol={self.tol:g}; raise tol, lower C or scale "
                "the features",
            )

    def _advice(self) -> str:
        return (
            "w = 0 is a local minimum of latent SVMs: try another start or C, scale the features, "
            "or use SVMRanker"
        )


def _classify(train: Lists, evaluation: EvalSets, rel: float) -> NDArray[np.float64]:
    """Weights of the most accurate linear classifier in which all queries count the same."""
    from sklearn.exceptions import ConvergenceWarning

    labels, weight = (train.y >= rel).astype(np.float64), _per_document(train)
    judged = next(iter(evaluation.values()), train)
    best: tuple[float, NDArray[np.float64]] = (-np.inf, np.zeros(train.X.shape[1]))
    for C in CLASSIFIER_CS:
        classifier = ClassificationRanker(C)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is but a start
            warnings.simplefilter("ignore", NothingLearnedWarning)
            classifier.fit(train.X, labels, qid=train.groups.codes, sample_weight=weight)
        right = (classifier.predict(judged.X) > 0) == (judged.y >= rel)
        accuracy = float(_per_document(judged) @ right)
        if accuracy > best[0]:
            best = accuracy, classifier.coef_
    return best[1]


def _classify_shard(part: Any, evaluation: EvalSets, rel: float) -> NDArray[np.float64]:
    return _classify(part.data.lists, evaluation, rel)


def _per_document(lists: Lists) -> NDArray[np.float64]:
    """The weight of each row such that those of a query add up to the query's."""
    weight = 1.0 if lists.weights is None else lists.weights
    return np.asarray((weight / lists.groups.sizes)[lists.groups.codes])
