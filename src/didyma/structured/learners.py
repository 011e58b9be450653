"""Learners for any task: structured perceptrons and structural SVMs, with and without latents.

    >>> from didyma.structured.learners import StructuredSVM
    >>> model = StructuredSVM(task, C=10.0).fit(examples, labels)   # doctest: +SKIP
    >>> model.predict(examples)                                     # doctest: +SKIP

A task (`didyma.Task`) brings features, inference and loss. Labels are what is observed
of an output; where a task has latent parts, the latent learners complete them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from os import PathLike
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError, ModelFileError
from didyma.execution import on_cluster
from didyma.learning.cccp import CCCP, LatentResult, best_of, inner_solver
from didyma.learning.monitor import Watch, gain_over_zero, warn_of_zero
from didyma.learning.perceptron import Perceptron, PerceptronState
from didyma.learning.solution import (
    Callback,
    Result,
    Solution,
    check_C,
    check_start,
    make_solver,
)
from didyma.model import Savable, Saved
from didyma.protocol import (
    Estimator,
    check_is_fitted,
    check_random_state,
    seed_of,
    warn_of_convergence,
)
from didyma.structured.task import Task, TaskProblem

Vector = NDArray[np.float64]
OutputMeasure = Callable[[Sequence[Any], Sequence[Any]], float]


@dataclass(eq=False, repr=False)
class StructuredLearner(Savable, Estimator):
    """What the four learners share: reading examples, held-out evaluation, prediction, files.

    Parameters
    ----------
    task : Task
        Features, inference and loss.
    measure : callable, optional
        With an ``eval_set``: ``measure(labels, outputs)``, higher is better; minus the mean loss if
        None.
    patience : int, optional
        With an ``eval_set``: stop after so many iterations without improvement, at the best one.
    random_state : int
        Seed of the order of examples, or of restarts.
    warm_start : bool
        A further `fit` goes on from the last one.
    callback : callable, optional
        Called with a `Progress` after each iteration; True stops.
    """

    task: Task | None = None
    _: KW_ONLY
    measure: OutputMeasure | None = None
    patience: int | None = None
    random_state: Any = 0
    warm_start: bool = False
    callback: Callback | None = None

    coef_: Annotated[Vector, Saved("weights")] = field(init=False)
    result_: Result = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)

    _transient: ClassVar[tuple[str, ...]] = ("task", "callback")
    _gain = np.inf  # over zero weights, where there is an objective
    _latent: ClassVar[bool] = False  # whether it learns tasks with latent parts, or without

    def fit(
        self,
        examples: Sequence[Any],
        labels: Sequence[Any],
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Learn from examples with their labels.

        Of perceptrons both may be Dask bags, partition by partition: these stay on the workers of
        the active Dask client, and weights are mixed after each epoch.

        An example of weight 2 counts as if it were given twice: c_i = sample_weight[i] / Σ_j
        sample_weight[j]. With ``eval_set`` = (examples, labels) the held-out measure is recorded in
        ``history_`` after each iteration.
        """
        return self._fit(examples, labels, sample_weight, eval_set)

    def _fit(
        self,
        examples: Sequence[Any],
        labels: Sequence[Any],
        sample_weight: ArrayLike | None,
        eval_set: tuple[Sequence[Any], Sequence[Any]] | None,
        **start: Any,
    ) -> Self:
        self._check_parameters()
        self._task()
        if eval_set is None and self.patience is not None:
            raise DataError("expected an eval_set to watch", field="patience")
        watch = Watch(
            {} if eval_set is None else {"score": lambda w: self._judge(w, *eval_set)},
            self.patience,
            self.callback,
            getattr(self, "C", None),
        )
        solution = self._solve(examples, labels, sample_weight, watch, **start)
        self.coef_ = solution.w if self.patience is None else watch.chosen(solution.w)
        self.result_ = solution.result
        self.history_ = watch.history
        self._solution = solution
        tol = getattr(self, "tol", 0.0)
        if self._gain <= tol:
            warn_of_zero(tol, "try another C, start or loss, or scale the features")
        if solution.result.status == "limit":
            warn_of_convergence(
                f"stopped after {solution.result.n_iter} iterations, short of tol; raise max_iter "
                "or tol, or lower C",
            )
        return self

    @on_cluster("didyma.cluster.bags:solve")
    def _solve(
        self, examples: Any, labels: Any, sample_weight: Any, watch: Watch, **start: Any
    ) -> Solution:
        weights = _weights(len(examples), len(labels), sample_weight)
        problem = self._pose()(examples, labels, weights / weights.sum())
        return self._learn(problem, weights, watch, **start)

    def _pose(self) -> Callable[..., TaskProblem]:
        """What makes a problem of examples, labels and weights."""
        task, learner = self._task(), type(self).__name__
        if task.latent == self._latent:
            return task.problem
        reason = f"has latent parts; use Latent{learner}"
        if self._latent:
            reason = f"defines no complete(w, x, y); use {learner.removeprefix('Latent')}"
        raise DataError(f"{type(task).__name__} {reason}", field="task")

    def _learn(self, problem: TaskProblem, weights: Vector, watch: Watch) -> Solution:
        """Solve the problem of examples with these weights."""
        raise NotImplementedError

    @on_cluster("didyma.cluster.bags:predict")
    def predict(self, examples: Any) -> Any:
        """Best output of each example: a list, or of a Dask bag another one."""
        check_is_fitted(self)
        task = self._task()
        return [task.argmax(self.coef_, x) for x in examples]

    @on_cluster("didyma.cluster.bags:score")
    def score(self, examples: Any, labels: Any) -> float:
        """The measure over the examples: minus the mean loss unless ``measure`` says otherwise.

        Outputs of a Dask bag are found where its examples are, and judged here.
        """
        check_is_fitted(self)
        self._check_parameters()
        return self._judge(self.coef_, examples, labels)

    @classmethod
    def load(cls, path: str | PathLike[str], task: Task) -> Self:  # type: ignore[override]
        """Read what `save` wrote. The task is not saved; pass it again."""
        learner = super().load(path)
        if len(learner.coef_) != task.n_features:
            raise ModelFileError(
                f"{path}: has {len(learner.coef_)} weights, the task {task.n_features} features"
            )
        return learner.set_params(task=task)

    def _judge(self, w: Vector, examples: Sequence[Any], labels: Sequence[Any]) -> float:
        task = self._task()
        return self._measured(labels, [task.argmax(w, x) for x in examples])

    def _measured(self, labels: Sequence[Any], outputs: Sequence[Any]) -> float:
        if self.measure is not None:
            return float(self.measure(labels, outputs))
        loss = self._task().loss
        return -float(np.mean([loss(y, output) for y, output in zip(labels, outputs)]))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (self.measure is None or callable(self.measure)):
            raise DataError(f"expected a function, found {self.measure!r:.40}", field="measure")

    def _task(self) -> Task:
        if not isinstance(self.task, Task):
            raise DataError(f"expected a didyma.Task, found {self.task!r}", field="task")
        return self.task

    def _former(self) -> Solution | None:
        return getattr(self, "_solution", None) if self.warm_start else None


@dataclass(eq=False, repr=False)
class StructuredPerceptron(StructuredLearner):
    """Averaged perceptron: w ← w + Ψ(x, y) − Ψ(x, ŷ) whenever ŷ is wrong.

    Parameters
    ----------
    epochs : int
        Passes over the examples.
    loss_scale : float, optional
        Inference during training adds this times the loss; None adds nothing.

    The other parameters are those of `StructuredLearner`; an iteration is an epoch.

    >>> from didyma.structured.examples import Signs
    >>> StructuredPerceptron(Signs()).fit([1.0, -2.0], [1, -1]).predict([3.0])
    [1]
    """

    epochs: int = 10
    _: KW_ONLY
    loss_scale: float | None = None

    def partial_fit(
        self,
        examples: Sequence[Any],
        labels: Sequence[Any],
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Visit some more examples once, from where the last call or `fit` ended."""
        former = getattr(self, "_solution", None)
        if former is None and hasattr(self, "coef_"):  # loaded from a file
            former = PerceptronState(self.coef_)
        return self._fit(examples, labels, sample_weight, None, epochs=1, former=former)

    def _learn(
        self,
        problem: TaskProblem,
        weights: Vector,
        watch: Watch,
        epochs: int | None = None,
        former: Solution | PerceptronState | None = None,
    ) -> Solution:
        learner = Perceptron(epochs or self.epochs, seed_of(self.random_state))
        start = former or self._former()
        return learner.solve(problem, multiplicity=weights, start=start, callback=watch)

    def _pose(self) -> Callable[..., TaskProblem]:
        return partial(
            super()._pose(),
            augmented=self.loss_scale is not None,
            loss_scale=1.0 if self.loss_scale is None else float(self.loss_scale),
            online=self._latent,
        )


class LatentStructuredPerceptron(StructuredPerceptron):
    """`StructuredPerceptron` that completes the label at the current weights before each update.

    >>> from didyma.structured.examples import Bags
    >>> bags = [np.array([[2.0, 1.0], [-1.0, 1.0]]), np.array([[-2.0, 1.0], [-1.0, 1.0]])]
    >>> learner = LatentStructuredPerceptron(Bags()).fit(bags, [True, False])
    >>> learner.predict(bags)
    [0, None]
    """

    _latent: ClassVar[bool] = True


@dataclass(eq=False, repr=False)
class StructuredSVM(StructuredLearner):
    """Structural SVM: ½‖w‖² + C Σ_i c_i max_ŷ [Δ(y_i, ŷ) + w·(Ψ(x_i, ŷ) − Ψ(x_i, y_i))].

    Parameters
    ----------
    C : float
        Weight of the loss against the norm.
    solver : {"one-slack", "bcfw", "n-slack", "bundle"}
        All minimise the same objective.
    tol : float
        Relative duality gap at which training stops.
    max_iter : int
        Most iterations (passes for "bcfw").

    The other parameters are those of `StructuredLearner`. The task has loss-augmented inference
    too; a warm start keeps cuts and works for any C.

    >>> from didyma.structured.examples import Signs
    >>> StructuredSVM(Signs(), C=10.0).fit([1.0, -2.0], [1, -1]).coef_.round(2)
    array([0.5])
    """

    C: float = 1.0
    _: KW_ONLY
    solver: str = "one-slack"
    tol: float = 1e-3
    max_iter: int = 1000

    def _learn(self, problem: TaskProblem, weights: Vector, watch: Watch) -> Solution:
        seed = seed_of(self.random_state)
        solver, C = make_solver(self.solver, self.tol, self.max_iter, seed), check_C(self.C)
        solution: Solution = solver.solve(problem, C, start=self._former(), callback=watch)
        self._gain = gain_over_zero(problem, C, solution, self.tol)
        return solution


@dataclass(eq=False, repr=False)
class LatentStructuredSVM(StructuredLearner):
    """Latent structural SVM by CCCP (Yu & Joachims 2009); see `didyma.learning.cccp`.

    Parameters
    ----------
    C : float
        Weight of the loss against the norm.
    solver : {"one-slack", "bundle", "n-slack"}
        What solves the convex problem of a round; "bundle" is the paper's.
    tol : float
        Stop when a round lowers the objective by less, relative to it.
    max_iter : int
        Most rounds.
    n_restarts : int
        Runs from different first completions; the one with the lowest objective is kept.
    ties : int
        Where a run would end, so many completions that are tied with the last one, or nearly so,
        are tried; see `didyma.learning.cccp`.

    The other parameters are those of `StructuredLearner`. The task defines ``complete`` too; an
    iteration is a round; a warm start begins at the last weights.

    Attributes
    ----------
    objective_trace_ : list of float
        Objective after each round of the run that was kept; it never increases if inference is
        exact.
    result_ : LatentResult
        How the kept run ended, which one that was (``kept``), the objectives of all (``values``),
        and how often a tied completion led on (``escapes``).

    >>> from didyma.structured.examples import Bags
    >>> bags = [np.array([[2.0, 1.0], [-1.0, 1.0]]), np.array([[-2.0, 1.0], [-1.0, 1.0]])]
    >>> learner = LatentStructuredSVM(Bags(), C=100.0).fit(bags, [True, False])
    >>> learner.predict(bags)
    [0, None]
    """

    C: float = 1.0
    _: KW_ONLY
    tol: float = 1e-3
    max_iter: int = 100
    n_restarts: int = 1
    ties: int = 4
    solver: str = "one-slack"

    objective_trace_: list[float] = field(init=False)
    result_: LatentResult = field(init=False)

    _latent: ClassVar[bool] = True

    def fit(
        self,
        examples: Sequence[Any],
        labels: Sequence[Any],
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[Sequence[Any], Sequence[Any]] | None = None,
        coef_init: ArrayLike | None = None,
    ) -> Self:
        """Learn from examples with their labels; see `StructuredSVM.fit`.

        The first completions are those of the weights ``coef_init``, or the task's own. A poor
        choice leads to a poor local optimum: weights of a perceptron are a good one.
        """
        first = None
        if coef_init is not None:
            first = check_start(coef_init, self._task().n_features)
        elif (former := self._former()) is not None:
            first = former.w
        return self._fit(examples, labels, sample_weight, eval_set, first=first)

    def _learn(
        self, problem: TaskProblem, weights: Vector, watch: Watch, first: Vector | None = None
    ) -> Solution:
        C = check_C(self.C)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_restarts)
        solver = CCCP(
            tol=self.tol, max_iter=self.max_iter, inner=inner_solver(self.solver), ties=self.ties
        )
        starts = [first, *[None] * (self.n_restarts - 1)]
        best = best_of(
            solver.solve(problem, C, start=start, random_state=seed, callback=watch)
            for start, seed in zip(starts, seeds.tolist())
        )
        self.objective_trace_ = best.state.trace
        self._gain = gain_over_zero(problem, C, best, self.tol)
        return best


def _weights(n_examples: int, n_labels: int, sample_weight: ArrayLike | None) -> Vector:
    if n_examples == 0:
        raise DataError("expected at least one example", field="examples")
    if n_labels != n_examples:
        raise DataError(f"expected {n_examples}, one per example, found {n_labels}", field="labels")
    if sample_weight is None:
        return np.ones(n_examples)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_examples,) or not (weights >= 0).all() or not weights.sum() < np.inf:
        raise DataError(
            f"expected {n_examples} numbers from 0 up, one per example", field="sample_weight"
        )
    if not weights.any():
        raise DataError("all weights are zero", field="sample_weight")
    return weights
