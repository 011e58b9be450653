"""SVMmap and its family: a linear ranker that is optimal for the measure it is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.data.lists import Lists
from didyma.data.matrix import Columns, Matrix
from didyma.errors import DataError, check_choice
from didyma.execution import on_cluster
from didyma.learning.monitor import EvalSets, Monitor, gain_over_zero
from didyma.learning.solution import SOLVERS, check_C, make_solver, reached
from didyma.protocol import clone, seed_of, unchanged, warn_of_convergence
from didyma.ranking.feature_maps import FeatureMap, parse_feature_map
from didyma.ranking.fitters import Fitter, HingeFitter, RampFitter, RankingResult
from didyma.ranking.losses import ItemwiseLoss
from didyma.ranking.problem import GRADES, RankingProblem
from didyma.ranking.ramp import BOUNDS, RampProblem, bound_of, uncut
from didyma.ranking.ranker import StartedRanker
from didyma.values import shown

__all__ = ["RankingResult", "SVMRanker", "default_C"]

HINGE_C, RAMP_FACTOR = 100.0, 3.0


def default_C(bound: str, loss: ItemwiseLoss, hinge: float = HINGE_C) -> float:
    """C where none is given: ``hinge``, or three times that for the ramp.

    A ramp counts no query for more than its largest loss, so it is soon flat, and what it has to
    tell shows only where weights are long. A hundred times costs five times as long, and is no
    better on held-out queries.

    >>> from didyma.ranking.losses import parse_loss
    >>> default_C("auto", parse_loss("ap")), default_C("auto", parse_loss("ndcg@10"))
    (100.0, 300.0)
    """
    return hinge * (RAMP_FACTOR if bound_of(bound, loss) == "ramp" else 1.0)


@dataclass(eq=False, repr=False)
class SVMRanker(StartedRanker):
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
        are larger for the ramp bound; 100 if not given, 300 with the ramp.
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
    measure : str, optional
        Measure that is watched on ``eval_set``, by its ir-measures name; that of the loss if not
        given.
    patience : int >= 1, optional
        Stop after so many iterations without a better value on ``eval_set``, and keep the best
        weights. Iterations are those at C, not those at smaller C by which "bcfw" approaches a
        large one; with the ramp bound, rounds.
    n_jobs : int, optional
        Threads; None uses every core. Results do not depend on it.
    random_state : int
        Order in which queries are visited.
    warm_start : bool
        A further `fit` begins at the weights of the last one. So can a first one, at ``coef_init``.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops. Not saved with a model.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    result_ : RankingResult
        Objective value, dual, gap, converged, n_iter, passes, status, seconds by stage, bound, and
        the bound over grades that was used ("joint", "thresholds", None if there are only two).
    history_ : list of dict
        One record per iteration; with the ramp bound per round, the first one of the start. The
        measure on ``eval_set`` is under its name, "AP"; of several sets "valid_0 AP" and so on.
    objective_trace_ : array
        With the ramp bound, the objective at the start and after each round; it never increases.

    >>> X = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]
    >>> ranker = SVMRanker(C=10).fit(X, [1, 0, 1, 0], qid=["a", "a", "b", "b"])
    >>> ranker.rank(X, qid=["a", "a", "b", "b"]).tolist()
    [1, 2, 1, 2]
    """

    loss: str | ItemwiseLoss = "ap"
    C: float | None = None
    _: KW_ONLY
    feature_map: str | FeatureMap = "pairwise"
    grades: str = "auto"
    bound: str = "auto"
    solver: str = "bcfw"
    tol: float = 1e-3
    max_iter: int = 1000
    patience: int | None = None
    n_jobs: int | None = None

    result_: RankingResult = field(init=False)
    objective_trace_: NDArray[np.float64] = field(init=False)

    _layout: ClassVar[tuple[str, ...]] = ()  # attributes that `_design` learns

    @on_cluster("didyma.ranking.cluster:path_on_cluster")
    def path(
        self,
        X: Any,
        y: ArrayLike | None,
        Cs: Iterable[float] | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_names: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """A fitted ranker for each C, in ascending order of C, or for its own; rows as in `fit`.

        Each solution starts from the one before, so that a path costs about two fits. The ranker
        itself stays as it is.
        """
        with self._on_path(Cs) as ascending:
            train = self._read_training(X, y, qid, group, sample_weight)
            evaluation = self._read_evaluation(eval_set, eval_qid, eval_group, eval_names)
            design, evaluation = self._design(train, evaluation)
            fitter = self._fitter(partial(self._problem, design))
            return self._path(
                fitter, evaluation, ascending, lambda ranker: ranker._check_learned(train)
            )

    @contextmanager
    def _on_path(self, Cs: Iterable[float] | None) -> Iterator[list[float] | None]:
        """The values of C in ascending order, for whose rankers this one reads the rows."""
        with unchanged(self):
            if Cs is not None:
                if isinstance(Cs, str | bytes | Mapping) or not isinstance(Cs, Iterable):
                    raise DataError(f"expected a list of numbers, found {shown(Cs)}", field="Cs")
                Cs = sorted(map(check_C, Cs))
                if Cs and self.C is None:
                    self.C = Cs[0]
            self._check_parameters()
            yield Cs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.grades, GRADES, "grades")
        parse_feature_map(self.feature_map)
        check_choice(self.solver, SOLVERS, "solver")
        self._bound()

    def _fit(self, train: Lists, evaluation: EvalSets) -> None:
        design, evaluation = self._design(train, evaluation)
        fitter = self._fitter(partial(self._problem, design))
        first = self._beginning(fitter.problem.n_features)
        if first is not None:
            fitter.begin_at(first)
        self._solve(fitter, evaluation)

    def _fit_shards(
        self, workers: Any, weights: NDArray[np.float64], n_jobs: int, evaluation: EvalSets
    ) -> None:
        from didyma.ranking.cluster import sharded_fitter

        self._solve(*sharded_fitter(self, workers, weights, n_jobs, evaluation))

    def _design_rows(self, X: Matrix) -> Any:
        """Rows of the design matrix, after `_design`."""
        return X

    def _design_shards(self, workers: Any, evaluation: EvalSets) -> tuple[int, Any, EvalSets]:
        """`_design` over shards: the number of weights, and the signs that they must have."""
        return self.n_features_in_, None, evaluation

    def _design(self, train: Lists, evaluation: EvalSets) -> tuple[Lists, EvalSets]:
        """Both with rows of the design matrix, whose columns the weights belong to."""
        return train, evaluation

    def _fitter(
        self,
        pose: Callable[..., Any],
        hinge: type[HingeFitter] = HingeFitter,
        ramp: type[RampFitter] = RampFitter,
    ) -> Fitter:
        """What solves the problems that ``pose(kind, loss, feature_map)`` makes of the rows."""
        loss, feature_map = self._loss(), parse_feature_map(self.feature_map)
        if self._bound() == "hinge":
            return hinge(pose(RankingProblem, loss, feature_map))
        convex = uncut(loss)
        return ramp(
            pose(RampProblem, loss, feature_map), pose(RankingProblem, convex, None), str(convex)
        )

    def _bound(self) -> str:
        check_choice(self.bound, BOUNDS, "bound")
        return bound_of(self.bound, self._loss())

    def _problem(
        self,
        design: Lists,
        kind: type[RankingProblem],
        loss: ItemwiseLoss,
        feature_map: FeatureMap | None,
        grades: str | None = None,
    ) -> Any:
        return kind(
            *(design.X, design.y, design.groups, loss, feature_map),
            grades=grades or self.grades,
            query_weight=design.weights,
            n_jobs=self.n_jobs,
        )

    def _path(
        self,
        fitter: Fitter,
        evaluation: EvalSets,
        Cs: list[float] | None,
        check: Callable[[Self], None],
    ) -> list[Self]:
        """A ranker for each C in ascending order, until Ctrl-C."""
        rankers: list[Self] = []
        for C in [self.weight()] if Cs is None else Cs:
            ranker = self._clone_with(C)
            ranker._solve(fitter, evaluation)
            check(ranker)
            rankers.append(ranker)
            if ranker.result_.status == "interrupted":
                break
        return rankers

    def _clone_with(self, C: float) -> Self:
        """A clone for another C that knows what was read, but no weights."""
        ranker: Self = clone(self).set_params(C=C)
        Columns.of(self).remember(ranker)
        for name in ("n_queries_", *self._layout):
            setattr(ranker, name, getattr(self, name))
        return ranker

    def _solve(self, fitter: Fitter, evaluation: EvalSets) -> None:
        C = self.weight()
        monitor = Monitor(evaluation, self.judged_by(), self.patience, self.callback, C)
        solution, result = fitter.solve(self._solver(), C, monitor)
        result = replace(result, grades=fitter.problem.grades)
        self._keep(solution, result, monitor, best=self.patience is not None)
        self._gain = gain_over_zero(fitter.problem, C, solution, self.tol)
        if result.bound == "ramp":
            self.objective_trace_ = np.array([record["value"] for record in self.history_])
        if result.status == "limit":
            short = f"a relative gap of {result.relative_gap:.1e}, above tol={self.tol:g}"
            if result.relative_gap <= reached(self.tol):
                short = "a last round that still gained"
            by_limit = result.rounds or max(result.n_iter, result.passes) >= self.max_iter
            warn_of_convergence(
                f"stopped after {self.n_iter_} {'rounds' if result.rounds else 'iterations'} "
                f"(max_iter={self.max_iter}) with {short}; raise "
                f"{'max_iter or tol' if by_limit else 'tol'}, lower C or scale the features",
            )

    def weight(self) -> float:
        """C, or the default for the bound."""
        if self.C is not None:
            return check_C(self.C)
        return default_C(self.bound, self._loss())

    def _solver(self) -> Any:
        return make_solver(self.solver, self.tol, self.max_iter, seed_of(self.random_state))

    def _advice(self) -> str:
        other = 'bound="ramp" or ' if self.result_.bound == "hinge" else ""
        return f'try {other}loss="ap", a larger C, or scale the features'
