"""How the parameters of `didyma.ranking.svm.SVMRanker` become weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from didyma.data.columns import Columns
from didyma.data.lists import Groups, Lists
from didyma.data.matrix import Matrix
from didyma.errors import DataError
from didyma.learning.bcfw import BCFW
from didyma.learning.bundle import ProximalBundle
from didyma.learning.cccp import CCCP
from didyma.learning.cutting_plane import NSlack, OneSlack
from didyma.learning.learned import Learner, gain_over_zero
from didyma.learning.monitor import Monitor
from didyma.learning.solution import Callback, Result, Solution, check_C, reached
from didyma.protocol import check_random_state, clone, warn_of_convergence
from didyma.ranking.feature_maps import FeatureMap, parse_feature_map
from didyma.ranking.losses import NDCG, ItemwiseLoss, parse_loss
from didyma.ranking.problem import RankingProblem, trainable_queries
from didyma.ranking.ramp import BOUNDS, RampProblem, bound_of, uncut

__all__ = ["Descent", "Hinge", "Ramp", "RankingResult", "SVMTraining", "default_C"]

MOST_ROUNDS = 100
HINGE_C, RAMP_FACTOR = 100.0, 100.0
SOLVERS = {"bcfw": BCFW, "one-slack": OneSlack, "n-slack": NSlack, "bundle": ProximalBundle}


def default_C(bound: str, loss: ItemwiseLoss, hinge: float = HINGE_C) -> float:
    """C where none is given: ``hinge``, or a hundred times that for the ramp.

    A ramp counts no query for more than its largest loss, so it is soon flat, and what it has to
    tell shows only where weights are long.

    >>> default_C("auto", parse_loss("ap")), default_C("auto", parse_loss("ndcg@10"))
    (100.0, 10000.0)
    """
    return hinge * (RAMP_FACTOR if bound_of(bound, loss) == "ramp" else 1.0)


@dataclass(frozen=True)
class RankingResult(Result):
    """How the training of a ranker ended.

    With the ramp bound ``n_iter`` counts the rounds, ``dual`` and ``gap`` are those of the last
    round's convex problem, and ``start`` is the loss at whose optimum the first one began.
    """

    bound: str = "hinge"
    rounds: int = 0
    start: str | None = None


class SVMTraining(Learner):
    """Parameters as those of `SVMRanker`, and how they become weights."""

    loss: str | ItemwiseLoss
    C: float | None
    feature_map: str | FeatureMap
    bound: str
    grades: str
    solver: str
    tol: float
    max_iter: int
    measure: str
    patience: int | None
    n_jobs: int | None
    random_state: Any
    callback: Callback | None

    _hinge_C: ClassVar[float] = HINGE_C
    _layout: ClassVar[tuple[str, ...]] = ()  # attributes that `_design` learns

    coef_: NDArray[np.float64]
    result_: RankingResult
    objective_trace_: NDArray[np.float64]
    history_: list[dict[str, Any]]
    n_iter_: int

    def _descent(
        self,
        X: Any,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None,
    ) -> Descent:
        loss, feature_map = parse_loss(self.loss), parse_feature_map(self.feature_map)
        problem = partial(self._problem, X=X, y=y, groups=groups, query_weight=query_weight)
        if self._bound() == "hinge":
            return Hinge(problem(RankingProblem, loss, feature_map))
        easy = uncut(loss)
        return Ramp(
            problem(RampProblem, loss, feature_map), problem(RankingProblem, easy), str(easy)
        )

    def _bound(self) -> str:
        if self.bound not in BOUNDS:
            names = ", ".join(map(repr, BOUNDS))
            raise DataError(f"expected one of {names}, found {self.bound!r}", field="bound")
        return bound_of(self.bound, parse_loss(self.loss))

    def _problem(
        self,
        kind: type[RankingProblem],
        loss: ItemwiseLoss,
        feature_map: FeatureMap | None = None,
        *,
        X: Any,
        y: NDArray[np.float64],
        groups: Groups,
        query_weight: NDArray[np.float64] | None = None,
        grades: str | None = None,
    ) -> Any:
        return kind(
            *(X, y, groups, loss, feature_map),
            grades=grades or self.grades,
            query_weight=query_weight,
            n_jobs=self.n_jobs,
        )

    def _follow(
        self,
        descent: Descent,
        rows: Matrix,
        grades: NDArray[np.float64],
        groups: Groups,
        evaluation: Lists | None,
        Cs: Iterable[float],
    ) -> list[Self]:
        """One that is fitted for each C, in ascending order, from the solution before."""
        return self._path(
            descent, evaluation, Cs, lambda ranker: ranker._check_learned(rows, grades, groups)
        )

    def _path(
        self,
        descent: Descent,
        evaluation: Lists | None,
        Cs: Iterable[float],
        check: Callable[[Self], None],
    ) -> list[Self]:
        rankers: list[Self] = []
        for C in sorted(float(C) for C in Cs):
            ranker = self._twin(C)
            ranker._solve(descent, evaluation)
            check(ranker)
            rankers.append(ranker)
            if ranker.result_.status == "interrupted":
                break
        return rankers

    def _twin(self, C: float) -> Self:
        """The same, not fitted yet, for another C."""
        ranker: Self = clone(self).set_params(C=C)
        Columns.of(self).remember(ranker)
        for name in ("n_queries_", *self._layout):
            setattr(ranker, name, getattr(self, name))
        return ranker

    def _solve(self, descent: Descent, evaluation: Lists | None) -> None:
        C = self.weight()
        monitor = Monitor(evaluation, self.measure, self.patience, self.callback, C)
        solution, result = descent.solve(self._solver(), C, monitor)
        self.coef_ = solution.w
        if self.patience is not None and monitor.best_w is not None:
            self.coef_ = monitor.best_w
        self.result_ = replace(result, grades=descent.problem.grades)
        self.history_ = monitor.history
        self.n_iter_ = result.n_iter
        self._gain = gain_over_zero(descent.problem, C, solution, self.tol)
        if result.bound == "ramp":
            self.objective_trace_ = np.array([record["value"] for record in self.history_])
        gap = result.gap / result.value if result.value > 0.0 else 0.0
        if result.status == "limit" or (result.converged and gap > reached(self.tol)):
            warn_of_convergence(
                f"stopped after {self.n_iter_} iterations (max_iter={self.max_iter}) with a "
                f"relative gap of {gap:.1e}, above tol={self.tol:g}; raise max_iter or tol, lower "
                "C or scale the features",
                stacklevel=4,
            )

    def weight(self) -> float:
        """C, or what suits the bound."""
        if self.C is not None:
            return check_C(self.C)
        return default_C(self.bound, parse_loss(self.loss), self._hinge_C)

    def _solver(self) -> Any:
        if self.solver not in SOLVERS:
            names = ", ".join(map(repr, SOLVERS))
            raise DataError(f"expected one of {names}, found {self.solver!r}", field="solver")
        if self.solver == "bcfw":
            return BCFW(tol=self.tol, max_passes=self.max_iter, random_state=self._seed())
        return SOLVERS[self.solver](tol=self.tol, max_iter=self.max_iter)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _trainable(self, y: NDArray[np.float64], groups: Groups) -> NDArray[np.bool_]:
        return trainable_queries(y, groups, parse_loss(self.loss))

    def _relevant(self, y: NDArray[np.float64], groups: Groups) -> NDArray[np.bool_]:
        loss = parse_loss(self.loss)
        if not isinstance(loss, NDCG):
            return y >= loss.rel
        least = np.full(len(groups), np.inf)
        np.minimum.at(least, groups.codes, y)
        return y > least[groups.codes]

    def _advice(self) -> str:
        other = 'bound="ramp" or ' if self.result_.bound == "hinge" else ""
        return f'try {other}loss="ap", a larger C, or scale the features'


class Descent(Protocol):
    """Fits of one problem, each of which starts where the last one can help."""

    problem: Any  # a `RankingProblem`, or a sum over shards of some

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """A solution at C, and how it was found."""
        ...


class Hinge:
    """One convex problem."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self._known: Solution | None = None

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """Go on from the last C."""
        self._known = solver.solve(self.problem, C, start=self._known, callback=callback)
        return self._known, RankingResult(**vars(self._known.result))


class Ramp:
    """First the loss without cut-off, by its hinge and the pairwise map; then rounds from there."""

    def __init__(self, problem: Any, easy: Any, name: str) -> None:
        self.problem = problem
        self._ramp, self._easy, self._name = problem, easy, name
        self._begun: Solution | None = None
        self._known: Solution | None = None

    def solve(self, solver: Any, C: float, callback: Callback) -> tuple[Solution, RankingResult]:
        """Go on from the last C."""
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
