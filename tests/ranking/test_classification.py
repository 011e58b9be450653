"""The classification baselines against an independent solution of their objective."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.ranking.classification import ClassificationRanker, PolynomialRanker, baseline
from didyma.ranking.scaling import QueryMinMaxScaler, QueryPercentileScaler

RNG = np.random.default_rng(7)
N = 60
QID = np.repeat(np.arange(6), 10)
Y = (RNG.random(N) < 0.25) * RNG.integers(1, 3, N)
X = RNG.normal(size=(N, 3)) + 0.8 * (Y >= 1)[:, None]
NEW = RNG.normal(size=(N, 3))


def objective(w: NDArray[np.float64], C: float, cost: NDArray[np.float64], power: int) -> float:
    margin = np.where(Y >= 1, 1, -1) * (X @ w[:-1] + w[-1])
    return float(w @ w / 2 + C / N * np.sum(cost * np.maximum(0, 1 - margin) ** power))


def optimum(C: float, cost: NDArray[np.float64], power: int) -> float:
    """The objective's least value: of the dual for the hinge, which is not smooth."""
    if power == 2:
        start = np.zeros(4)
        return float(minimize(objective, start, (C, cost, 2), method="BFGS", tol=1e-9).fun)
    signed = np.where(Y >= 1, 1, -1)[:, None] * np.column_stack([X, np.ones(N)])

    def dual(alpha: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w = signed.T @ alpha
        return float(w @ w / 2 - alpha.sum()), signed @ w - 1

    bounds = [(0, C / N * c) for c in cost]
    found = minimize(dual, np.zeros(N), jac=True, bounds=bounds, options={"ftol": 1e-14})
    return -float(found.fun)


@pytest.mark.parametrize(("loss", "power"), [("hinge", 1), ("squared_hinge", 2)])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("cost_ratio", [1.0, 3.0, "balanced"])
def test_it_minimises_the_documented_objective(
    loss: str, power: int, C: float, cost_ratio: float | str
) -> None:
    ranker = ClassificationRanker(C, loss=loss, cost_ratio=cost_ratio, tol=1e-5)
    ranker.fit(X, Y, qid=QID)
    relevant = Y >= 1
    ratio = np.sum(~relevant) / np.sum(relevant) if cost_ratio == "balanced" else cost_ratio
    cost = np.where(relevant, ratio, 1)
    cost = cost / cost.mean()
    value = objective(np.append(ranker.coef_, ranker.intercept_), C, cost, power)
    assert ranker.result_.value == pytest.approx(value, rel=1e-12)
    assert value == pytest.approx(optimum(C, cost, power), rel=1e-3)
    assert ranker.result_.converged


def test_balanced_costs_weigh_both_classes_equally() -> None:
    relevant = np.array([True, False, False, False, False])
    cost = ClassificationRanker(cost_ratio="balanced")._costs(relevant, np.ones(5))
    assert cost.mean() == 1
    assert cost[relevant].sum() == cost[~relevant].sum()
    np.testing.assert_array_equal(ClassificationRanker()._costs(relevant, np.ones(5)), np.ones(5))


def test_queries_without_weight_are_not_there() -> None:
    kept = QID < 4
    weighted = ClassificationRanker(C=6.0).fit(X, Y, qid=QID, sample_weight=kept * 1.0)
    alone = ClassificationRanker(C=6.0).fit(X[kept], Y[kept], qid=QID[kept])
    np.testing.assert_allclose(weighted.coef_, alone.coef_, atol=1e-2)
    doubled = ClassificationRanker(C=6.0).fit(X, Y, qid=QID, sample_weight=np.full(N, 2.0))
    np.testing.assert_allclose(doubled.coef_, ClassificationRanker(C=6.0).fit(X, Y).coef_)


def test_scores_are_decision_values() -> None:
    ranker = ClassificationRanker().fit(X, Y, qid=QID)
    np.testing.assert_allclose(ranker.predict(X), X @ ranker.coef_ + ranker.intercept_)
    sparse = ClassificationRanker().fit(sp.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), ranker.predict(X), atol=1e-2)


def test_rows_of_one_class_queries_are_used_without_warning() -> None:
    ranker = ClassificationRanker().fit([[0.0], [1.0], [3.0]], [0, 0, 1], qid=[1, 1, 2])
    assert ranker.n_queries_ == 2
    assert ranker.coef_[0] > 0
    with pytest.raises(DataError, match="nothing to learn from"):
        ClassificationRanker().fit([[0.0], [1.0]], [1, 1], qid=[1, 2])


def test_one_warning_when_the_solver_gives_up() -> None:
    with pytest.warns(ConvergenceWarning, match="no convergence in 3 rounds at C=1000") as caught:
        ranker = ClassificationRanker(C=1000.0, loss="hinge", max_iter=3).fit(X, Y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not ranker.result_.converged
    assert ranker.result_.n_iter == 3


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e8])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_convergence_at_any_C_and_scale(C: float, scale: float) -> None:
    assert ClassificationRanker(C).fit(X * scale, Y).result_.converged


def test_runs_repeat_exactly() -> None:
    first, second = (ClassificationRanker(C=100.0).fit(X, Y).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C: expected a positive number"),
        ({"C": np.nan}, "C: expected a positive number"),
        ({"cost_ratio": "even"}, "cost_ratio: expected"),
        ({"cost_ratio": -1.0}, "cost_ratio: expected"),
        ({"loss": "logistic"}, "loss"),
    ],
)
def test_bad_parameters(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassificationRanker(**parameters).fit(X, Y)


def test_the_four_baselines() -> None:
    plain, balanced = baseline("acc", C=3.0), baseline("acc2", C=3.0)
    assert (plain.C, plain.cost_ratio, plain.loss) == (3.0, 1.0, "hinge")
    assert (balanced.C, balanced.cost_ratio, balanced.loss) == (3.0, "balanced", "hinge")
    for name, scaler in (("acc3", QueryPercentileScaler), ("acc4", QueryMinMaxScaler)):
        pipeline = baseline(name, C=3.0)
        assert isinstance(pipeline, Pipeline)
        assert isinstance(pipeline[0], scaler)
        assert pipeline[-1].get_params() == plain.get_params()
        with config_context(enable_metadata_routing=True):
            pipeline.fit(X, Y, qid=QID)
            features = pipeline[:-1].transform(X, qid=QID)
        assert features.shape == (N, 3 * 50)
        np.testing.assert_allclose(pipeline[1].thresholds_[:50], np.arange(1, 51) / 51)
    with pytest.raises(DataError, match="acc5"):
        baseline("acc5")


@pytest.mark.parametrize("name", ["acc3", "acc4"])
def test_scaled_baselines_ignore_the_range_of_each_query(name: str) -> None:
    stretched = X * (1 + QID[:, None]) + 100 * QID[:, None]
    with config_context(enable_metadata_routing=True):
        pipeline = baseline(name, C=10.0).fit(X, Y, qid=QID)
        np.testing.assert_allclose(
            pipeline.predict(stretched, qid=QID), pipeline.predict(X, qid=QID)
        )


def test_the_polynomial_baseline_is_scikit_learns(tmp_path: Path) -> None:
    ranker = PolynomialRanker(C=50.0, gamma=0.5, n_candidates=None, tol=1e-6).fit(X, Y, qid=QID)
    svm = SVC(C=50.0 / len(Y), kernel="poly", degree=3, gamma=0.5, coef0=1.0, tol=1e-6)
    svm.fit(X, Y >= 1)
    np.testing.assert_allclose(ranker.predict(NEW), svm.decision_function(NEW), atol=1e-9)
    # Strong duality: the value is that of the dual.
    kernel = (0.5 * svm.support_vectors_ @ svm.support_vectors_.T + 1.0) ** 3
    dual = np.abs(svm.dual_coef_).sum() - 0.5 * (svm.dual_coef_ @ kernel @ svm.dual_coef_.T).item()
    assert ranker.result_.value == pytest.approx(dual, rel=1e-4)
    ranker.save(tmp_path / "m")
    loaded = PolynomialRanker.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(NEW), ranker.predict(NEW))
    sparse = PolynomialRanker(C=50.0, gamma=0.5, n_candidates=None, tol=1e-6)
    sparse.fit(sp.csr_array(X), Y, qid=QID)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(NEW)), ranker.predict(NEW), atol=1e-3)


def test_ten_candidates_a_query() -> None:
    shuffle = np.random.default_rng(4).permutation(200)
    queries = np.repeat(np.arange(4), 50)[shuffle]
    relevant = (np.tile(np.arange(50), 4) < 3)[shuffle]
    groups = Groups.from_qid(queries)
    kept = PolynomialRanker()._candidates(relevant, groups)
    assert np.bincount(queries[kept]).tolist() == [10] * 4
    assert relevant[kept].sum() == relevant.sum()
    other = PolynomialRanker(random_state=1)._candidates(relevant, groups)
    assert not np.array_equal(kept, other)
    np.testing.assert_array_equal(PolynomialRanker()._candidates(relevant, groups), kept)
    many = PolynomialRanker()._candidates(np.arange(40) < 30, Groups.from_sizes([40], 40))
    assert (len(many), int(np.sum(many >= 30))) == (10, 1)
    full = PolynomialRanker()._candidates(np.ones(40, dtype=bool), Groups.from_sizes([40], 40))
    assert len(full) == 10
    with pytest.raises(DataError, match="n_candidates: expected None or a whole number from 2 on"):
        PolynomialRanker(n_candidates=1).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"C": 0.0}, "C: expected a positive"), ({"gamma": "auto"}, "gamma: expected 'scale' or")],
)
def test_wrong_parameters_of_the_baseline(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PolynomialRanker(**parameters).fit(X, Y, qid=QID)


@pytest.mark.filterwarnings("ignore::didyma.errors.NothingLearnedWarning")
def test_the_baseline_says_when_it_gives_up() -> None:
    with pytest.warns(ConvergenceWarning, match="no convergence in 3 rounds"):
        ranker = PolynomialRanker(C=1e6, max_iter=3).fit(X, Y, qid=QID)
    assert not ranker.result_.converged
