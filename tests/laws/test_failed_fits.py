"""Law: a fit that fails, or is interrupted, leaves an estimator as it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from didyma import (
    AdditiveSVMRanker,
    ClassificationRanker,
    LatentPerceptronRanker,
    LatentSVMRanker,
    PolynomialRanker,
    RidgeRanker,
    SVMRanker,
)
from didyma.errors import DataError
from didyma.protocol import Estimator

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(60, 4)), np.repeat(np.arange(6), 10)
Y = (X[:, 0] + X[:, 1] > 0.7).astype(float)
RANKERS = [
    AdditiveSVMRanker(C=4.0, line="quantile"),
    ClassificationRanker(),
    LatentPerceptronRanker(epochs=3),
    LatentSVMRanker(),
    PolynomialRanker(),
    RidgeRanker(),
    SVMRanker(),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_of_rankers(ranker: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    scores = ranker.fit(frame, Y, qid=QID).predict(frame)
    for rows, grades, queries in (
        (frame[list("dcba")] * 7, Y * 0, QID),
        (X[:, :2], Y, QID[:5]),
        (X * 1e100, Y, QID),
    ):
        with pytest.raises(DataError):
            ranker.fit(rows, grades, qid=queries)
        np.testing.assert_array_equal(ranker.predict(frame), scores)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: type(ranker).__name__)
def test_of_rankers_that_know_nothing(ranker: Any) -> None:
    new = type(ranker)()
    with pytest.raises(DataError):
        new.fit(X, Y * 0, qid=QID)
    with pytest.raises(NotFittedError):
        new.predict(X)


def test_of_a_class_of_ones_own() -> None:
    @dataclass(eq=False, repr=False)
    class Mean(Estimator):
        mean_: float = field(init=False)

        def fit(self, X: Any, y: Any = None) -> Mean:
            self.mean_ = float(np.mean(X))
            if y is not None:
                raise KeyboardInterrupt
            return self

    mean = Mean().fit([1.0, 3.0])
    with pytest.raises(KeyboardInterrupt):
        mean.fit([5.0], 0)
    assert mean.mean_ == 2.0
