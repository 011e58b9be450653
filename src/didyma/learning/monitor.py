"""What happens while a model learns: a trace, a measure on held-out examples, early stopping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.learning.scoring import linear_scores
from didyma.learning.solution import Callback, Progress
from didyma.stateful import Stateful

__all__ = ["Monitor", "Watch"]

Vector = NDArray[np.float64]

RECORDED = ("n_iter", "passes", "seconds", "C", "value", "dual", "gap")  # of each iteration


class Watch(Stateful):
    """A callback that records each iteration and knows when a held-out measure stops improving.

    ``history`` has one record per iteration: n_iter, passes, seconds, C, value, dual, gap, and
    under ``name`` what ``evaluate(w)`` says, if it is given; higher is better. With ``patience``
    the run stops after so many iterations without a better value; ``best_w`` are the weights of the
    best. Iterations at another C than ``C``, on the way to it, are recorded but never kept.
    """

    _changing: ClassVar[tuple[str, ...]] = ("history", "best_w", "best_value", "_waited")

    def __init__(
        self,
        evaluate: Callable[[Vector], float] | None,
        name: str,
        patience: int | None,
        callback: Callback | None,
        C: float | None = None,
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self.best_w: Vector | None = None
        self.best_value = -np.inf
        self._evaluate, self._name = evaluate, name
        self._patience, self._callback, self._C = patience, callback, C
        self._waited = 0

    def check_state(self) -> None:
        """Refuse records that are not those of `__call__`."""
        names = [*RECORDED, *([] if self._evaluate is None else [self._name])]
        for record in self.history:
            if list(record) != names or not all(type(v) in (int, float) for v in record.values()):
                raise ValueError(f"history should have records of {', '.join(names)}")

    def __call__(self, progress: Progress) -> bool:
        """Record an iteration; True stops the run."""
        record = {name: getattr(progress, name) for name in RECORDED}
        self.history.append(record)
        stop = False
        if self._evaluate is not None:
            value = self._evaluate(progress.w)
            record[self._name] = value
            if self._C is None or progress.C == self._C:
                stop = self._keep(value, progress.w)
        if self._callback is not None:
            stop = bool(self._callback(progress)) or stop
        return stop

    def chosen(self, w: Vector) -> Vector:
        """The weights of the best iteration, or those of the last one if there is none."""
        return w if self.best_w is None else self.best_w

    def _keep(self, value: float, w: Vector) -> bool:
        if value > self.best_value:
            self.best_value, self.best_w, self._waited = value, w.copy(), 0
        else:
            self._waited += 1
        return self._patience is not None and self._waited >= self._patience


class Monitor(Watch):
    """`Watch` over a ranking measure on held-out queries."""

    def __init__(
        self,
        evaluation: Lists | None,
        measure: str,
        patience: int | None,
        callback: Callback | None,
        C: float | None = None,
    ) -> None:
        if evaluation is None:
            super().__init__(None, measure, patience, callback, C)
            return
        from didyma.metrics import Evaluator

        evaluator = Evaluator(evaluation.y, evaluation.groups, measure)
        judged = evaluator.measures[0]

        def evaluate(w: Vector) -> float:
            return evaluator(linear_scores(evaluation.X, w)).mean(judged)

        super().__init__(evaluate, str(judged), patience, callback, C)
