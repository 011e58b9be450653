"""Objectives for other boosters: derivatives of exact bounds, and the calls of each library."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import didyma
from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.metrics import parse_all
from didyma.ranking.losses import parse_loss
from didyma.ranking.problem import RankingProblem

SIZES = [6, 8, 5]


def judged(seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, sum(SIZES)).astype(float)
    y[np.cumsum(SIZES) - 1], y[[0, 6, 14]] = 0.0, 2.0
    return rng.standard_normal((len(y), 3)), y


@pytest.mark.parametrize("loss", ["ap", "ndcg", "ndcg@3", "precision@2", "rr", "roc"])
@pytest.mark.parametrize("bound", ["hinge", "ramp"])
def test_the_gradient_is_that_of_the_bound(loss, bound):
    _, y = judged()
    scores = np.random.default_rng(1).standard_normal(len(y))
    function = didyma.objective(loss, bound=bound)
    gradient, weight = function.derivatives(scores, y, SIZES)
    problem = function._problem(y, SIZES, None)

    def risk(at):
        slopes, constant = problem.slopes(at)
        return len(SIZES) * (constant + slopes @ at)

    step = 1e-6
    numeric = [
        (risk(scores + step * unit) - risk(scores - step * unit)) / (2 * step)
        for unit in np.eye(len(y))
    ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    assert (weight > 0).all()
    assert np.all(weight >= np.abs(gradient))


def test_the_hinge_is_that_of_linear_rankers():
    X, y = judged()
    groups = Groups.from_sizes(SIZES, len(y))
    problem = RankingProblem(X, y, groups, parse_loss("ndcg@3"))
    w = np.array([1.0, -2.0, 0.5])
    gradient, _ = didyma.objective("ndcg@3").derivatives(X @ w, y, SIZES)
    np.testing.assert_allclose(X.T @ gradient / len(SIZES), problem.cut_all(w).direction)


def test_a_query_of_weight_two_counts_twice():
    _, y = judged()
    scores = np.random.default_rng(1).standard_normal(len(y))
    weight = np.repeat([2.0, 1.0, 0.0], SIZES)
    once, _ = didyma.objective("ap").derivatives(scores, y, SIZES)
    weighted, _ = didyma.objective("ap").derivatives(scores, y, SIZES, weight)
    np.testing.assert_allclose(weighted, weight * once)


@pytest.mark.parametrize("group", [None, []])
def test_without_groups_it_is_refused(group):
    with pytest.raises(DataError, match="size of each query"):
        didyma.objective("ap")(np.array([1.0, 0.0]), np.zeros(2), None, group)


def test_copies_are_equal_also_after_a_call():
    function = didyma.objective("ap")
    function(np.array([1.0, 0.0]), np.zeros(2), None, [2])
    assert copy.deepcopy(function) == pickle.loads(pickle.dumps(function)) == function


def separable():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    y = (X[:, 0] * X[:, 1] > 0.3).astype(float)
    return X, y, [20] * 20


def average_precision(scores, y, sizes):
    lists = didyma.Lists(scores[:, None], y, np.repeat(np.arange(len(sizes)), sizes))
    (measure,) = parse_all("AP")
    return didyma.evaluate(scores, y, lists.groups, measure).mean(measure)


SMALL = {"num_leaves": 8, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1}


@pytest.mark.parametrize("loss", ["ap", "ndcg@10"])
def test_lightgbm_trains_with_it(loss):
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    X, y, sizes = separable()
    function = didyma.objective(loss)
    data = lightgbm.Dataset(X, y, group=sizes)
    model = lightgbm.train({"objective": function, **SMALL}, data, 20)
    assert average_precision(model.predict(X), y, sizes) > 0.95
    ranker = lightgbm.LGBMRanker(objective=function, n_estimators=20, **SMALL)
    np.testing.assert_allclose(ranker.fit(X, y, group=sizes).predict(X), model.predict(X))
    with pytest.raises(DataError, match="size of each query"):
        lightgbm.train({"objective": function, **SMALL}, lightgbm.Dataset(X, y), 2)


def test_xgboost_trains_with_it():
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    X, y, sizes = separable()
    data = xgboost.DMatrix(X, y, qid=np.repeat(np.arange(20), sizes))
    parameters = {"max_depth": 3, "nthread": 1, "min_child_weight": 1e-3, "base_score": 0.0}
    model = xgboost.train(parameters, data, 20, obj=didyma.objective("ap"))
    assert average_precision(model.predict(data).astype(float), y, sizes) > 0.95
    with pytest.raises(DataError, match="size of each query"):
        xgboost.train(parameters, xgboost.DMatrix(X, y), 2, obj=didyma.objective("ap"))
