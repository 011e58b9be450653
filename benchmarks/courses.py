"""Courses of training: seconds and the held-out measure, tree after tree, on one thread.

Seconds begin with the arrays in memory, so that building a library's own data set counts; judging
the held-out queries after a tree does not. Rows with equal scores count as if they were shuffled.
Boosters learn at a rate of 0.1 and have the default shape of their trees (LightGBM: 31 leaves;
XGBoost: six levels) and everything else by default.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.data.lists import Lists
from didyma.metrics import Evaluator
from didyma.ranking.objective import objective

__all__ = ["Course", "of_lightgbm", "of_ranker", "of_xgboost"]

MEASURE = "nDCG(dcg='exp-log2')@10"
RATE = 0.1

Vector = NDArray[np.float64]


@dataclass
class Course:
    """What is recorded while a ranker is trained."""

    held_out: Lists
    seconds: list[float] = field(default_factory=list)  # of training, up to each record
    values: list[float] = field(default_factory=list)  # of the measure, at each record

    def __post_init__(self) -> None:
        # After a few trees most rows have equal scores: no order of a file shall decide.
        self._evaluate = Evaluator(self.held_out.y, self.held_out.groups, MEASURE).expected
        self._scores = np.zeros(len(self.held_out))
        self._begun = time.perf_counter()  # moves on while held-out queries are judged

    def record(self, predict: Callable[[], Any]) -> None:
        """Note the seconds, then judge by the scores so far and those that are predicted now."""
        now = time.perf_counter()
        self.seconds.append(now - self._begun)
        self._scores += predict()
        self.values.append(self._evaluate(self._scores).mean(MEASURE))
        self._begun += time.perf_counter() - now

    def trees_to(self, value: float) -> int | None:
        """The least number of trees with at least this value of the measure."""
        reached = np.flatnonzero(np.array(self.values) >= value)
        return int(reached[0]) + 1 if len(reached) else None


def of_ranker(make: Callable[[], Any], train: Lists, held_out: Lists) -> Course:
    """One record, at the end of a fit."""
    course = Course(held_out)
    ranker = make().fit(train.X, train.y, qid=train.qid)
    course.record(lambda: ranker.predict(held_out.X))
    return course


def of_lightgbm(builtin: str | None, train: Lists, held_out: Lists, trees: int) -> Course:
    """A record for each tree, by one of LightGBM's objectives or, without a name, by ours."""
    import lightgbm

    settings = {"learning_rate": RATE, "num_threads": 1, "verbose": -1}

    def after_tree(state: Any) -> None:
        tree = {"start_iteration": state.iteration, "num_iteration": 1}
        course.record(lambda: state.model.predict(held_out.X, **tree))

    course = Course(held_out)
    data = lightgbm.Dataset(train.X, train.y, group=train.groups.sizes)
    settings["objective"] = builtin or objective("ndcg")
    lightgbm.train(settings, data, trees, callbacks=[after_tree])
    return course


def of_xgboost(builtin: str | None, train: Lists, held_out: Lists, trees: int) -> Course:
    """A record for each tree, by one of XGBoost's objectives or, without a name, by ours."""
    import xgboost

    class AfterTree(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            tree = {"iteration_range": (epoch, epoch + 1), "output_margin": True}
            course.record(lambda: model.predict(rows, **tree))
            return False

    settings = {"eta": RATE, "nthread": 1, "verbosity": 0, "tree_method": "hist"}
    settings |= {"objective": builtin} if builtin else {"base_score": 0.0}
    rows = xgboost.DMatrix(held_out.X, nthread=1)
    course = Course(held_out)
    data = xgboost.DMatrix(train.X, train.y, group=train.groups.sizes, nthread=1)
    custom = None if builtin else objective("ndcg")
    xgboost.train(settings, data, trees, obj=custom, callbacks=[AfterTree()])
    return course
