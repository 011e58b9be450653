"""Sums over shards are problems, and their solvers reach the optimum of all examples at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from didyma.cluster.problem import ShardedLatentProblem, ShardedProblem, ShardState
from didyma.cluster.solvers import CoCoA, MixedPerceptron, _Common
from didyma.cluster.workers import Workers
from didyma.data.groups import Groups
from didyma.learning import NSlack, OneSlack, ProximalBundle
from didyma.learning.bcfw import BCFW
from didyma.learning.cccp import CCCP
from didyma.learning.cutting_plane import CutPool
from didyma.learning.row_bcfw import RowBCFW
from didyma.ranking.bins import Binned
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from didyma.ranking.ramp import RampProblem
from tests.learning.problems import random_ranking

N_QUERIES, N_ROWS, N_FEATURES = 12, 8, 5
SHARDS = {1: [12], 2: [5, 7], 4: [1, 2, 4, 5], 12: [1] * 12}


def problem_of(kind, X, y, n_queries):
    groups = Groups.from_sizes([N_ROWS] * n_queries, len(y))
    return kind(X, y, groups, AveragePrecision())


def data(binned=False):
    X, y, _ = random_ranking(3, N_QUERIES, N_ROWS, N_FEATURES)
    if not binned:
        return X, y
    bins = np.clip(np.floor(X * 1.5) + 3, 0, 6).astype(np.uint8)
    signs = np.array([1, -1, 0, 0, 1], np.int8)
    return Binned(bins, 8, np.ones(N_FEATURES, bool), signs=signs), y


def sharded(sizes, kind=RankingProblem, binned=False, whole=ShardedProblem):
    """The same problem in one piece and in shards of so many queries."""
    X, y = data(binned)
    cuts = np.cumsum([0, *sizes])
    here = Workers(
        [(X[a * N_ROWS : b * N_ROWS], y[a * N_ROWS : b * N_ROWS]) for a, b in pairwise(cuts)]
    )
    here.follow(lambda shard: ShardState(shard), 0)
    here.follow(
        lambda part: ShardState(
            part.data, problem_of(kind, *part.data, len(part.data[1]) // N_ROWS)
        ),
        1,
    )
    one = problem_of(kind, X, y, N_QUERIES)
    weights = np.array(sizes) / N_QUERIES
    return one, whole(here, one.n_features, weights, weight_signs=one.weight_signs)


def objective(problem, C, w):
    return 0.5 * w @ w + C * problem.weights @ problem.risks(w)


@pytest.mark.parametrize("sizes", SHARDS.values(), ids=str)
def test_a_sum_over_shards_is_the_problem(sizes):
    one, many = sharded(sizes)
    for w in np.random.default_rng(0).normal(size=(3, N_FEATURES)):
        assert many.weights @ many.risks(w) == pytest.approx(one.weights @ one.risks(w))
        cut, summed = one.cut_all(w), many.cut_all(w)
        assert summed.loss == pytest.approx(cut.loss)
        np.testing.assert_allclose(summed.direction, cut.direction, atol=1e-12)


SOLVERS = {
    "cocoa": lambda tol: CoCoA(BCFW(tol=tol)),
    "one-slack": lambda tol: OneSlack(tol=tol),
    "n-slack": lambda tol: NSlack(tol=tol),
    "bundle": lambda tol: ProximalBundle(tol=tol),
}


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sizes", [SHARDS[1], SHARDS[2], SHARDS[4]], ids=str)
def test_the_optimum_does_not_depend_on_shards(sizes, solver, C):
    tol = 1e-3
    one, many = sharded(sizes)
    best = BCFW(tol=1e-6).solve(one, C).result
    found = SOLVERS[solver](tol).solve(many, C)
    assert found.result.converged
    assert found.result.gap <= tol * found.result.value
    assert found.result.value == pytest.approx(objective(one, C, found.w), rel=1e-9)
    assert found.result.dual <= best.value * (1 + 1e-9)
    assert best.dual * (1 - 1e-9) <= found.result.value <= best.value * (1 + 1.1 * tol)


@pytest.mark.parametrize("C", [3.0, 3000.0])
@pytest.mark.parametrize("solver", [CoCoA(RowBCFW(tol=1e-3)), OneSlack(tol=1e-3)], ids=type)
@pytest.mark.parametrize("sizes", [SHARDS[1], SHARDS[4]], ids=str)
def test_signs_of_binned_weights_hold_on_shards(sizes, solver, C):
    one, many = sharded(sizes, binned=True)
    best = RowBCFW(tol=1e-6).solve(one, C)
    found = solver.solve(many, C)
    assert np.all(found.w * one.weight_signs >= 0.0)
    assert found.result.converged
    assert found.result.value == pytest.approx(objective(one, C, found.w), rel=1e-9)
    assert best.result.dual <= found.result.value <= best.result.value * 1.002


def test_the_dual_never_falls():
    _, many = sharded(SHARDS[4])
    solver, duals = CoCoA(BCFW()), []
    common = _Common(np.zeros(N_FEATURES), 50.0, CutPool(N_FEATURES))
    for number in range(30):
        duals.append(solver._round(many, common, number)[1])
    assert duals[0] > 0
    assert np.all(np.diff(duals) >= -1e-12)
    assert duals[-1] > 1.1 * duals[0]


def test_where_rounds_gain_little_one_slack_goes_on(monkeypatch):
    monkeypatch.setattr("didyma.cluster.solvers.STALLED", 0.01)
    one, many = sharded(SHARDS[4])
    best, seen = BCFW(tol=1e-6).solve(one, 100.0).result, []
    found = CoCoA(BCFW(tol=1e-3)).solve(many, 100.0, callback=lambda p: seen.append(p))
    assert found.result.converged
    assert best.dual <= found.result.value <= best.value * 1.002
    assert [p.n_iter for p in seen] == list(range(1, found.result.n_iter + 1))
    again = CoCoA(BCFW(tol=1e-3)).solve(many, 120.0, start=found)
    assert again.result.converged


def test_a_path_goes_on_from_the_last_solution():
    one, many = sharded(SHARDS[2])
    solver, known = CoCoA(BCFW(tol=1e-4)), None
    for C in (1.0, 5.0, 20.0):
        known = solver.solve(many, C, start=known)
        best = BCFW(tol=1e-6).solve(one, C).result
        assert best.dual <= known.result.value <= best.value * 1.001
    afresh = solver.solve(many, 20.0)  # which does not go on from anything
    assert afresh.result.converged
    assert afresh.result.passes > known.result.passes


class Forgetful(Workers):
    """Loses what it has kept of a shard every few questions, as a cluster that loses workers."""

    asked = 0

    def ask(self, *question, **each):
        self.asked += 1
        if self.asked % 4 == 0:
            self._caches[self.asked % self.n_shards] = type(self._caches[0])()
        return super().ask(*question, **each)


@pytest.mark.parametrize("solver", ["cocoa", "one-slack"])
def test_what_is_lost_is_made_again(solver):
    one, many = sharded(SHARDS[4])
    best = BCFW(tol=1e-6).solve(one, 2.0).result
    many.workers.__class__ = Forgetful
    found = SOLVERS[solver](5e-3).solve(many, 2.0)
    assert many.workers.asked > 4
    assert found.result.converged
    assert found.result.value == pytest.approx(objective(one, 2.0, found.w), rel=1e-9)
    assert best.dual <= found.result.value <= best.value * 1.006


def test_completions_survive_a_loss():
    one, many = sharded(SHARDS[4], RampProblem, whole=ShardedLatentProblem)
    start = np.random.default_rng(1).normal(size=N_FEATURES)
    np.testing.assert_allclose(many.complete(start), one.complete(start), atol=1e-12)
    w = -start
    before = many.risks(w)
    many.workers._caches = [type(cache)() for cache in many.workers._caches]
    np.testing.assert_array_equal(many.risks(w), before)
    assert many.weights @ before == pytest.approx(one.weights @ one.risks(w))


@pytest.mark.parametrize("sizes", [SHARDS[1], SHARDS[4]], ids=str)
def test_rounds_of_cccp_on_shards(sizes):
    one, many = sharded(sizes, RampProblem, whole=ShardedLatentProblem)
    start = np.random.default_rng(2).normal(size=N_FEATURES)
    solver = CCCP(tol=1e-4)
    found, best = solver.solve(many, 20.0, start=start), solver.solve(one, 20.0, start=start)
    assert np.all(np.diff(found.state.trace) <= 1e-9)
    assert found.result.value == pytest.approx(
        objective(one_completed(one, found.w), 20.0, found.w)
    )
    assert found.result.value == pytest.approx(best.result.value, rel=0.02)


def one_completed(problem, w):
    problem.complete(w)
    return problem


@pytest.mark.parametrize("sizes", [SHARDS[1], SHARDS[4]], ids=str)
def test_mixed_perceptrons_separate(sizes):
    """Of separable examples all are ranked right in the end, however many shards there are."""
    X, y = data()
    truth = np.arange(1.0, N_FEATURES + 1)
    scores = (X @ truth).reshape(N_QUERIES, N_ROWS)
    y[:] = (scores > np.median(scores, axis=1, keepdims=True)).ravel()
    X += 0.5 * np.where(y[:, None] > 0, truth, -truth) / truth.sum()
    cuts = np.cumsum([0, *sizes]) * N_ROWS
    here = Workers([(X[a:b], y[a:b]) for a, b in pairwise(cuts)])
    here.follow(lambda s: ShardState(s, problem_of(RankingProblem, *s, len(s[1]) // N_ROWS)), 0)
    many = ShardedProblem(here, N_FEATURES, np.array(sizes) / N_QUERIES)
    values = []
    found = MixedPerceptron(50).solve(many, callback=lambda p: values.append(p.value))
    assert values[0] > 0 == values[-1]
    assert found.result.status == "converged"
    right = (X @ found.w).reshape(N_QUERIES, N_ROWS)
    relevant = y.reshape(N_QUERIES, N_ROWS) > 0
    assert np.where(relevant, right, np.inf).min() > -np.inf
    assert all(own[keep].min() > own[~keep].max() for own, keep in zip(right, relevant))


def test_a_callback_stops_a_run():
    one, many = sharded(SHARDS[2])
    found = CoCoA(BCFW()).solve(many, 1e4, callback=lambda p: True)
    assert found.result.status == "stopped"
    assert found.result.value == pytest.approx(objective(one, 1e4, found.w))
