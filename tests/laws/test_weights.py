"""A weight of m is the same as m copies, for every estimator that takes weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.applications.motif.finder import MotifFinder
from didyma.errors import DataError
from didyma.learning.perceptron import Perceptron
from didyma.learning.problem import Cut, PythonProblem
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker
from didyma.ranking.latent import LatentPerceptronRanker, LatentSVMRanker
from didyma.ranking.svm import SVMRanker
from didyma.structured.learners import (
    LatentStructuredPerceptron,
    LatentStructuredSVM,
    StructuredPerceptron,
    StructuredSVM,
)
from tests.learning.tasks import Parts, Whole, examples_of_parts, examples_of_wholes

RNG = np.random.default_rng(5)
SIZES = np.array([5, 3, 6, 4, 5])
QID = np.repeat(np.arange(5), SIZES)
X = RNG.normal(size=(len(QID), 3))
Y = (X[:, 0] + RNG.normal(size=len(X)) > 0).astype(float)
Y[np.cumsum(SIZES) - 1], Y[np.cumsum(SIZES) - 2] = 1.0, 0.0
COPIES = np.array([2, 1, 0, 3, 1])
WEIGHT = COPIES[QID].astype(float)

# Copies stand next to their original, each a query of its own.
ROWS = np.concatenate([np.tile(np.flatnonzero(q == QID), m) for q, m in enumerate(COPIES)])
COPY = np.repeat(np.arange(COPIES.sum()), np.repeat(SIZES, COPIES))

RANKERS = [
    SVMRanker(C=5.0, tol=1e-7),
    SVMRanker(C=5.0, tol=1e-7, solver="one-slack"),
    SVMRanker(C=5.0, tol=1e-7, solver="n-slack"),
    SVMRanker(C=5.0, tol=1e-7, solver="bundle", loss="roc"),
    LatentSVMRanker(C=5.0, tol=1e-7),
    LatentPerceptronRanker(epochs=5),
    LatentPerceptronRanker("rr", 2.0, epochs=3, weights="discount"),
    ClassificationRanker(C=5.0, tol=1e-9),
    ClassificationRanker(C=5.0, tol=1e-9, cost_ratio="balanced"),
    ClassificationRanker(C=1.0, tol=1e-9, loss="hinge"),
    PolynomialRanker(C=5.0, n_candidates=None, tol=1e-9),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_a_query_of_weight_two_is_a_query_given_twice(ranker: Any) -> None:
    weighted = ranker.fit(X, Y, qid=QID, sample_weight=WEIGHT)
    scores, value = weighted.predict(X), weighted.result_.value
    score = weighted.score(X, Y, sample_weight=WEIGHT, qid=QID)
    repeated = ranker.fit(X[ROWS], Y[ROWS], qid=COPY)
    np.testing.assert_allclose(scores, repeated.predict(X), rtol=1e-3, atol=1e-3)
    assert value == pytest.approx(repeated.result_.value, rel=1e-6)
    assert score == pytest.approx(repeated.score(X[ROWS], Y[ROWS], qid=COPY))


def test_a_path_takes_weights() -> None:
    ranker = SVMRanker(tol=1e-7)
    weighted = ranker.path(X, Y, [1.0, 20.0], qid=QID, sample_weight=WEIGHT)
    repeated = ranker.path(X[ROWS], Y[ROWS], [1.0, 20.0], qid=COPY)
    for one, other in zip(weighted, repeated, strict=True):
        assert one.result_.value == pytest.approx(other.result_.value, rel=1e-6)
        alone = SVMRanker(C=one.C, tol=1e-7).fit(X, Y, qid=QID, sample_weight=WEIGHT)
        assert one.result_.value == pytest.approx(alone.result_.value, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (StructuredPerceptron(Whole(), 5), examples_of_wholes(20)),
        (StructuredSVM(Whole(), 10.0, tol=1e-7), examples_of_wholes(20)),
        (StructuredSVM(Whole(), 10.0, tol=1e-5, solver="bcfw"), examples_of_wholes(20)),
        (LatentStructuredPerceptron(Parts(), 5, loss_scale=1.0), examples_of_parts(20)),
        (LatentStructuredSVM(Parts(), 10.0, tol=1e-7), examples_of_parts(20)),
    ],
    ids=["perceptron", "svm", "bcfw", "latent-perceptron", "latent-svm"],
)
def test_an_example_of_weight_two_is_an_example_given_twice(model: Any, data: Any) -> None:
    examples, labels = data
    copies = np.arange(20) % 3
    start = {"coef_init": np.eye(3).ravel()} if isinstance(model, LatentStructuredSVM) else {}
    weighted = model.fit(examples, labels, sample_weight=copies, **start)
    w, value = weighted.coef_.copy(), weighted.result_.value
    again = np.repeat(np.arange(20), copies).tolist()
    repeated = model.fit([examples[i] for i in again], [labels[i] for i in again], **start)
    assert value == pytest.approx(repeated.result_.value, rel=1e-4)
    np.testing.assert_allclose(w, repeated.coef_, rtol=0.02, atol=0.02)


def test_a_sequence_of_weight_two_is_a_sequence_given_twice() -> None:
    sequences = ["CCGATTCC", "GGGATTGG", "ACCAGATT", "CCCCCCCC", "GAGAGTGA"]
    labels = [1, 1, 1, -1, -1]
    copies = np.array([2, 1, 1, 3, 1])
    finder = MotifFinder(length=4, order=0, tol=1e-6)
    weighted = finder.fit(sequences, labels, sample_weight=copies).result_.value
    again = np.repeat(np.arange(5), copies)
    repeated = finder.fit([sequences[i] for i in again], np.array(labels)[again]).result_.value
    assert weighted == pytest.approx(repeated, rel=1e-3)


class Halfspaces(PythonProblem):
    """The perceptron's own problem."""

    def cut(self, w: np.ndarray, i: int) -> Cut:
        x = X[i]
        return Cut(-x, 1.0) if w @ x <= 0 else Cut(0 * x, 0.0)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=6).filter(any))
def test_visits_of_a_perceptron_are_copies_bit_by_bit(counts: list[int]) -> None:
    class Copies(Halfspaces):
        def cut(self, w: np.ndarray, i: int) -> Cut:
            return super().cut(w, int(again[i]))

    again = np.repeat(np.arange(6), counts)
    weighted = Perceptron(4).solve(Halfspaces(6, 3), multiplicity=np.array(counts, float))
    repeated = Perceptron(4).solve(Copies(len(again), 3))
    np.testing.assert_array_equal(weighted.w, repeated.w)
    assert weighted.result.value == repeated.result.value


def test_a_fraction_of_a_visit_is_a_smaller_step() -> None:
    problem = Halfspaces(1, 3)
    half = Perceptron(1).solve(problem, multiplicity=np.array([0.5]))
    np.testing.assert_array_equal(half.state.w, 0.5 * X[0])
    none = Perceptron(1).solve(problem, multiplicity=np.array([1e-9]))
    np.testing.assert_allclose(none.w, 0.0, atol=1e-8)
    with pytest.raises(DataError, match="sample_weight: weights ask for"):
        Perceptron(1).solve(problem, multiplicity=np.array([1e12]))


def test_a_class_without_weight_is_refused() -> None:
    weight = np.where(QID == 0, 1.0, 0.0)
    labels = np.where(QID == 0, 0.0, Y)
    for ranker in (ClassificationRanker(), PolynomialRanker()):
        with pytest.raises(DataError, match="rows of one class have no weight"):
            ranker.fit(X, labels, qid=QID, sample_weight=weight)
