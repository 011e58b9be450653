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


RELEVANT, LEVEL = np.array([1.0, 0.0, 0.0, 1.0]), np.zeros(4)


@pytest.mark.parametrize(
    ("y", "scores", "weight", "group", "message"),
    [
        (RELEVANT, np.zeros(3), None, [4], "scores: 3 for 4 labels"),
        (RELEVANT, np.zeros(5), None, [4], "scores: 5 for 4 labels"),
        (RELEVANT, np.zeros((4, 3)), None, [4], r"scores: .* for each row, found shape \(4, 3\)"),
        (
            RELEVANT,
            [0.0, np.nan, 0.0, 0.0],
            None,
            [4],
            "scores: row 1: .* finite number, found nan",
        ),
        (
            RELEVANT,
            [0.0, 0.0, np.inf, 0.0],
            None,
            [4],
            "scores: row 2: .* finite number, found inf",
        ),
        (RELEVANT, [[0.0], [0.0, 1.0]], None, [4], "scores: expected an array"),
        ([1.0, 0.0, np.nan, 1.0], LEVEL, None, [4], "y: row 2: expected a finite number"),
        (np.array([1, None, 0, 0]), LEVEL, None, [4], "y: row 1: .* finite number, found None"),
        (RELEVANT * 1j, LEVEL, None, [4], "y: expected numbers, found complex128"),
        (["bad", "good", "bad", "bad"], LEVEL, None, [4], "y: expected numbers"),
        (np.ma.array(RELEVANT, mask=RELEVANT > 0), LEVEL, None, [4], "y: has masked values"),
        ([], [], None, [0], "y: expected a number for each row"),
        (None, LEVEL, None, [4], "y: expected a number for each row"),
        (RELEVANT, LEVEL, None, [3], "group: sizes add up to 3 but there are 4 rows"),
        (RELEVANT, LEVEL, None, 4, "group: expected a list of query sizes"),
        (RELEVANT, LEVEL, None, ["four"], "group: expected a list of query sizes"),
        (RELEVANT, LEVEL, np.ones(3), [4], "weight: expected 4 weights"),
        (RELEVANT, LEVEL, 2.0, [4], "weight: expected 4 weights"),
        (RELEVANT, LEVEL, [1.0, 1.0, np.nan, 1.0], [4], "weight: expected finite weights"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(y, scores, weight, group, message):
    with pytest.raises(DataError, match=f"^{message}"):
        didyma.objective("ap")(y, scores, weight, group)


def test_lists_are_arrays():
    function = didyma.objective("ap")
    expected = function(RELEVANT, LEVEL, np.ones(4), np.array([4]))
    found = function(RELEVANT.tolist(), LEVEL.tolist(), [1.0] * 4, [4])
    np.testing.assert_array_equal(found, expected)


def test_labels_that_change_in_place_are_read_again():
    function, y = didyma.objective("ap"), RELEVANT.copy()
    function(y, LEVEL, None, [4])
    y[:] = y[::-1] - RELEVANT + [0.0, 1.0, 0.0, 0.0]
    gradient, _ = function(y, LEVEL, None, [4])
    np.testing.assert_array_equal(gradient, didyma.objective("ap")(y, LEVEL, None, [4])[0])
    y[0] = np.nan
    with pytest.raises(DataError, match="y: row 0"):
        function(y, LEVEL, None, [4])


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
