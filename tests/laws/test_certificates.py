"""Law: the default solver certifies its gap, however small or ill-posed the problem is."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.data.groups import Groups
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack, ProximalBundle
from didyma.learning.n_slack import NSlack
from didyma.learning.problem import clipped
from didyma.learning.row_bcfw import RowBCFW
from didyma.ranking.bins import Bins
from didyma.ranking.losses import parse_loss
from didyma.ranking.problem import RankingProblem

LOSSES = ("ap", "ndcg@3", "ndcg", "roc", "rr", "precision@2")
TINY = 1000


def tiny(seed, loss, bins=None, signs=None):
    """Up to six queries of up to six rows with up to four features, some of them on a grid.

    Every second one has weights, and grades are bounded in either way. With ``bins`` the features
    are step functions of those, which rise, fall or may do either by ``signs``.
    """
    rng = np.random.default_rng(seed)
    queries, rows, features = rng.integers([1, 2, 1], [7, 7, 5])
    X = rng.standard_normal((queries * rows, features))
    y = rng.integers(0, 3, len(X)).astype(float)
    y[::rows], y[1::rows] = 3.0, 0.0
    groups = Groups.from_sizes([rows] * queries, len(X))
    X = np.round(X) if seed % 3 == 0 else X
    C, weight = 10.0 ** rng.uniform(-1, 4), rng.integers(1, 5, queries) if seed % 2 else None
    bound = {"grades": ("auto", "joint", "thresholds")[seed % 9 // 3], "query_weight": weight}
    signs = None if signs is None else np.resize(signs, features)
    stored = X if bins is None else Bins.of(X, bins, signs=signs).transform(X)
    return RankingProblem(stored, y, groups, parse_loss(loss), **bound, n_jobs=1), C


@pytest.mark.parametrize("loss", LOSSES)
def test_every_tiny_problem_is_certified(loss):
    for seed in range(LOSSES.index(loss), TINY, len(LOSSES)):
        problem, C = tiny(seed, loss)
        result = BCFW(tol=1e-6).solve(problem, C).result
        assert result.converged, seed
        assert result.gap <= 1e-6 * result.value


@pytest.mark.parametrize("signs", [None, np.array([1, -1, 0], np.int8)], ids=["free", "monotone"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_tiny_problem_over_binned_rows_is_certified(loss, signs):
    for seed in range(LOSSES.index(loss), TINY, len(LOSSES)):
        problem, C = tiny(seed, loss, bins=4, signs=signs)
        solution = RowBCFW(tol=1e-6).solve(problem, C)
        result, w = solution.result, solution.w
        assert result.converged, seed
        assert result.gap <= 1e-6 * result.value
        assert result.value == pytest.approx(0.5 * w @ w + C * problem.weights @ problem.risks(w))
        np.testing.assert_array_equal(clipped(w, problem.weight_signs), w)
        exact = OneSlack(tol=1e-8).solve(problem, C).result
        assert exact.converged, seed
        assert result.dual <= exact.value * (1 + 1e-9)
        assert exact.dual <= result.value * (1 + 1e-9)


@pytest.mark.parametrize("seed", [84, 232, 355, 386, 418])
def test_where_passes_stop_paying_cuts_of_all_queries_go_on(seed, monkeypatch):
    problem, C = tiny(seed, LOSSES[seed % len(LOSSES)])
    exact = OneSlack(tol=1e-9).solve(problem, C).result.value
    result = BCFW(tol=1e-6).solve(problem, C).result
    assert result.value == pytest.approx(exact, rel=2e-6)
    monkeypatch.setattr("didyma.learning.bcfw.PATIENCE", np.inf)
    assert result.passes < BCFW(tol=1e-6, max_passes=300).solve(problem, C).result.passes


@pytest.mark.parametrize(
    ("scale", "C", "tol"), [(1e4, 1e2, 1e-3), (1.0, 1e7, 1e-6), (1.0, 1e8, 1e-6)]
)
@pytest.mark.parametrize("solver", [BCFW, OneSlack], ids=lambda kind: kind.__name__)
def test_the_value_is_that_of_the_weights_however_long_they_are(solver, scale, C, tol):
    for seed in range(60 if solver is BCFW else 15):
        rng = np.random.default_rng(seed)
        queries, rows, features = rng.integers([1, 2, 5], [5, 6, 31])
        X = scale * rng.standard_normal((queries * rows, features))
        y = np.tile(np.arange(rows) == 0, queries).astype(float)
        groups = Groups.from_sizes([rows] * queries, len(X))
        problem = RankingProblem(X, y, groups, parse_loss("roc"), n_jobs=1)
        solution = solver(tol=tol).solve(problem, C)
        result, w = solution.result, solution.w
        value = 0.5 * w @ w + C * problem.weights @ problem.risks(w)
        assert result.value == pytest.approx(value, rel=1e-4), seed  # or what rounding leaves


@pytest.mark.parametrize("solver", [BCFW, OneSlack, ProximalBundle, NSlack])
def test_what_is_certified_does_not_depend_on_the_units_of_features(solver):
    rng = np.random.default_rng(0)
    y, groups = np.tile([1.0, 0, 1, 0], 6), Groups.from_sizes([4] * 6, 24)
    X = rng.standard_normal((24, 3)) + np.outer(y, [1.0, 0.0, 0.0])
    for unit in 2.0 ** np.array([0, 15, 20, 25]):
        problem = RankingProblem(X * unit, y, groups, parse_loss("ap"), n_jobs=1)
        result = solver().solve(problem, 10.0 / unit**2).result
        assert result.converged
        assert result.value * unit**2 == pytest.approx(2.2951, rel=1e-3)


@pytest.mark.parametrize(("seed", "C"), [(30, 1e5), (2070, 1e6)])
def test_where_the_mean_of_planes_hides_what_tells_cuts_apart_they_go_on_without_it(seed, C):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((15, 30)), np.tile([1.0, 0, 0, 1, 0], 3)
    problem = RankingProblem(X, y, Groups.from_sizes([5] * 3, 15), parse_loss("ap"), n_jobs=1)
    assert BCFW().solve(problem, C).result.converged
