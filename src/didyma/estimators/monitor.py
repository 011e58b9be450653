"""What happens while a ranker learns: a trace, a measure on held-out queries, early stopping."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.estimators.base import EvaluationSet, linear_scores
from didyma.learning.solution import Callback, Progress

__all__ = ["Monitor"]


class Monitor:
    """A callback that records each iteration and knows when held-out queries stop improving.

    ``history`` has one record per iteration: n_iter, passes, seconds, C, value, dual, and the
    measure on the evaluation set under its name. With ``patience`` the run stops after so many
    iterations without a better value, and ``best_w`` are the weights of the best one.
    """

    def __init__(
        self,
        evaluation: EvaluationSet | None,
        measure: str,
        patience: int | None,
        callback: Callback | None,
    ) -> None:
        self.history: list[dict[str, Any]] = []
        self.best_w: NDArray[np.float64] | None = None
        self.best_value = -np.inf
        self._evaluation, self._patience, self._callback = evaluation, patience, callback
        self._waited = 0
        if evaluation is not None:
            from didyma.metrics import Evaluator

            self._evaluator = Evaluator(evaluation.y, evaluation.groups, measure)
            self._measure = self._evaluator.measures[0]

    def __call__(self, progress: Progress) -> bool:
        """Record an iteration; True stops the run."""
        record = {
            "n_iter": progress.n_iter,
            "passes": progress.passes,
            "seconds": progress.seconds,
            "C": progress.C,
            "value": progress.value,
            "dual": progress.dual,
        }
        self.history.append(record)
        stop = False
        if self._evaluation is not None:
            scores = linear_scores(self._evaluation.X, progress.w)
            value = self._evaluator(scores).mean(self._measure)
            record[str(self._measure)] = value
            stop = self._keep(value, progress.w)
        if self._callback is not None:
            stop = bool(self._callback(progress)) or stop
        return stop

    def _keep(self, value: float, w: NDArray[np.float64]) -> bool:
        if value > self.best_value:
            self.best_value, self.best_w, self._waited = value, w.copy(), 0
        else:
            self._waited += 1
        return self._patience is not None and self._waited >= self._patience
