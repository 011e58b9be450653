"""No fit fails silently, and none that learned is accused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from didyma.errors import NothingLearnedWarning
from didyma.learning.monitor import concordance
from didyma.ranking.classification import ClassificationRanker
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.svm import SVMRanker
from didyma.structured.learners import StructuredSVM
from didyma.structured.task import Task


def judged(noise, n_queries=60, n_rows=20, seed=0):
    """Queries with many relevant rows, which one of four features tells apart up to the noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_queries * n_rows, 4))
    y = (X[:, 0] + noise * rng.standard_normal(len(X)) > 0.8).astype(float)
    qid = np.repeat(np.arange(n_queries), n_rows)
    y[::n_rows], y[1::n_rows] = 1, 0
    return X, y, qid


def fitted(ranker, data):
    X, y, qid = data
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.fit(X, y, qid=qid)
    return ranker, [w for w in caught if issubclass(w.category, NothingLearnedWarning)]


def test_the_hinge_of_a_cut_off_that_stays_at_zero_says_so():
    data = judged(noise=3.0)
    ranker, caught = fitted(SVMRanker("precision@5", C=100, bound="hinge"), data)
    assert np.linalg.norm(ranker.coef_) < 0.5
    assert len(caught) == 1
    assert 'try bound="ramp" or loss="ap"' in str(caught[0].message)
    assert caught[0].filename == __file__
    for better in (SVMRanker("precision@5", C=100), SVMRanker("ap", C=100)):
        _, caught = fitted(better, data)
        assert caught == []


def test_each_ranker_of_a_path_is_looked_at():
    X, y, qid = judged(noise=3.0)
    with pytest.warns(NothingLearnedWarning) as caught:
        SVMRanker("precision@5", bound="hinge").path(X, y, [10.0, 100.0], qid=qid)
    assert len(caught) == 2


@pytest.mark.parametrize(
    "ranker",
    [
        SVMRanker(),
        SVMRanker("ndcg"),
        SVMRanker("precision@5"),
        LatentSVMRanker(),
        LatentPerceptronRanker(epochs=5),
        ClassificationRanker(),
    ],
    ids=str,
)
def test_rankers_that_learn_are_silent_and_constants_are_not(ranker):
    X, y, qid = judged(noise=0.5)
    assert fitted(ranker, (X, y, qid))[1] == []
    _, caught = fitted(ranker, (np.zeros_like(X), y, qid))
    assert len(caught) == 1
    assert "nothing was learned" in str(caught[0].message)


def test_grades_above_one_only_are_no_reason():
    X, y, qid = judged(noise=0.5)
    assert fitted(SVMRanker("ndcg"), (X, y + 1, qid))[1] == []


def test_concordance_by_its_definition():
    rng = np.random.default_rng(0)
    sizes = rng.integers(9, 15, 20)
    query = np.repeat(np.arange(20), sizes)
    scores = np.round(2 * rng.standard_normal(len(query)))
    relevant = np.zeros(len(query), dtype=bool)
    for number in range(20):
        relevant[rng.permutation(np.flatnonzero(query == number))[: 1 + number % 8]] = True
    shares = concordance(scores, relevant, np.cumsum([0, *sizes]))
    for number, share in enumerate(shares):
        among = query == number
        pairs = np.sign(scores[among & relevant][:, None] - scores[among & ~relevant])
        assert share == pytest.approx((pairs.mean() + 1) / 2)


class Noise(Task):
    """Labels that nothing in the examples tells: their sign is a coin that was thrown."""

    n_features = 1

    def features(self, x, y):
        return np.array([x * y])

    def loss_augmented(self, w, x, y, scale=1.0):
        return max((-1, 1), key=lambda other: scale * (other != y) + w[0] * x * other)

    def argmax(self, w, x):
        return 1 if w[0] * x > 0 else -1

    def loss(self, y, other):
        return float(y != other)


@pytest.mark.parametrize("solver", ["bcfw", "one-slack"])
def test_a_task_of_ones_own_is_looked_at_too(solver):
    examples = [1.0, 1.0, -1.0, -1.0]
    learner = StructuredSVM(Noise(), C=1.0, solver=solver)
    with pytest.warns(NothingLearnedWarning, match="zero weights"):
        learner.fit(examples, [1, -1, 1, -1])
    learner.fit(examples, [1, 1, -1, -1])
