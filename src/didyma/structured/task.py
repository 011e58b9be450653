"""Task: what learners must know about a kind of output, and nothing more.

A task scores an output by w·Ψ(x, output) and answers with its best outputs under such scores. The
output may have a latent part that a gold label y does not show: a ranking of the relevant items,
the place of a motif, the tree behind a cluster. Then `complete` finds the best output that agrees
with y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.learning.problem import Cut, PythonProblem

Vector = NDArray[np.float64]


class Task(ABC):
    """Features, inference and loss of a kind of output; see `examples/own_task.py`.

    An oracle that a learner needs and a task lacks is an error, never replaced by another one.

    >>> class Signs(Task):
    ...     "Is the number positive? The sign of a weight tells."
    ...     n_features = 1
    ...     def features(self, x, output):
    ...         return np.array([x * output])
    ...     def argmax(self, w, x):
    ...         return 1 if w[0] * x > 0 else -1
    ...     def loss(self, y, output):
    ...         return float(y != output)
    ...     def loss_augmented(self, w, x, y, scale=1.0):
    ...         return max((1, -1), key=lambda output: scale * (output != y) + w[0] * x * output)
    >>> from didyma import StructuredSVM
    >>> StructuredSVM(Signs(), C=10.0).fit([1.0, -2.0], [1, -1]).predict([3.0])
    [1]
    """

    n_features: int

    @abstractmethod
    def features(self, x: Any, output: Any) -> Vector:
        """Joint feature vector Ψ(x, output)."""

    @abstractmethod
    def argmax(self, w: Vector, x: Any) -> Any:
        """Output that maximises w·Ψ(x, output)."""

    @abstractmethod
    def loss(self, y: Any, output: Any) -> float:
        """Δ(y, output): what it costs to answer so where y is right; 0 for a right answer."""

    def loss_augmented(self, w: Vector, x: Any, y: Any, scale: float = 1.0) -> Any:
        """Output that maximises scale · Δ(y, output) + w·Ψ(x, output)."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no loss_augmented(w, x, y, scale), which this learner "
            "needs"
        )

    def complete(self, w: Vector, x: Any, y: Any) -> Any:
        """Output that maximises w·Ψ(x, output) among those that agree with y."""
        raise NotImplementedError(
            f"{type(self).__name__} defines no complete(w, x, y), which a latent learner needs"
        )

    def initial(self, x: Any, y: Any, rng: np.random.Generator) -> Any:
        """Completion to begin with: that of zero weights unless a task knows better."""
        return self.complete(np.zeros(self.n_features), x, y)

    @property
    def latent(self) -> bool:
        """Whether outputs have a part that gold labels do not show."""
        return type(self).complete is not Task.complete

    def problem(
        self, examples: Sequence[Any], labels: Sequence[Any], weights: Vector, **options: Any
    ) -> TaskProblem:
        """The examples as a problem; a task with faster sums over examples returns its own."""
        return TaskProblem(self, examples, labels, weights, **options)


class TaskProblem(PythonProblem):
    """Examples of a task as a sum of cuts.

    ``augmented`` adds the loss, times ``loss_scale``, to the scores of inference. Gold outputs are
    the labels, or completions of them: those of the last `complete`, or with ``online`` those of
    the weights of each question.

    >>> from didyma.structured.examples import Signs
    >>> TaskProblem(Signs(), [1.0, -2.0], [1, -1], np.array([0.5, 0.5])).cut_all(np.zeros(1))
    Cut(direction=array([-3.]), loss=1.0)
    """

    tie: ClassVar[float] = 1e-9  # completions whose scores differ by less are equally good

    def __init__(
        self,
        task: Task,
        examples: Sequence[Any],
        labels: Sequence[Any],
        weights: Vector,
        *,
        augmented: bool = True,
        loss_scale: float = 1.0,
        online: bool = False,
    ) -> None:
        super().__init__(len(examples), task.n_features, weights)
        self.task, self.examples, self.labels = task, examples, labels
        self.augmented, self.loss_scale, self.online = augmented, loss_scale, online
        self.gold: list[Any] = [] if task.latent else list(labels)
        self._gold_features: list[Vector] = []
        if not task.latent:
            self._refresh()

    def cut(self, w: Vector, i: int) -> Cut:
        """Features of the most violating output less those of the gold one, and its loss."""
        task, x, y = self.task, self.examples[i], self.labels[i]
        if self.augmented:
            output = task.loss_augmented(w, x, y, self.loss_scale)
        else:
            output = task.argmax(w, x)
        gold = task.features(x, task.complete(w, x, y)) if self.online else self._gold_features[i]
        return Cut(task.features(x, output) - gold, self.loss_scale * task.loss(y, output))

    def begin(self, rng: np.random.Generator) -> Vector:
        """Choose the first completions."""
        self.gold = [self.task.initial(x, y, rng) for x, y in zip(self.examples, self.labels)]
        return self._refresh()

    def complete(self, w: Vector) -> Vector:
        """Complete every label at w; the weighted sum of the gold features.

        Where several completions are equally good the former one is kept, so that rounding does not
        decide how a run goes on.
        """
        for i, (x, y) in enumerate(zip(self.examples, self.labels)):
            output = self.task.complete(w, x, y)
            new = float(self.task.features(x, output) @ w)
            old = float(self._gold_features[i] @ w) if self._gold_features else -np.inf
            if new > old + self.tie * max(1.0, abs(old)) or not self._gold_features:
                self.gold[i : i + 1] = [output]
        return self._refresh()

    def _refresh(self) -> Vector:
        self._gold_features = [
            np.asarray(self.task.features(x, output), dtype=np.float64)
            for x, output in zip(self.examples, self.gold)
        ]
        for i, vector in enumerate(self._gold_features):
            if vector.shape != (self.n_features,):
                raise DataError(
                    f"{type(self.task).__name__}.features must return {self.n_features} numbers, "
                    f"returned shape {vector.shape} for example {i}"
                )
        if not self._gold_features:
            return np.zeros(self.n_features)
        return np.asarray(self.weights @ np.array(self._gold_features))
