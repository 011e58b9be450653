"""Block-coordinate Frank-Wolfe: its dual, its planes, the order of its visits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from didyma.data.groups import Groups
from didyma.errors import DataError
from didyma.learning import bcfw
from didyma.learning.bcfw import BCFW
from didyma.learning.cutting_plane import OneSlack
from didyma.learning.problem import PythonProblem
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from tests.learning.problems import (
    ranking_problem,
)


def test_the_dual_of_bcfw_never_decreases():
    problem = ranking_problem(seed=7, n_queries=20, n_rows=10)
    duals = []
    BCFW(tol=1e-4).solve(problem, 50.0, callback=lambda progress: duals.append(progress.dual))
    assert len(duals) > 3
    assert np.all(np.diff(duals) >= -1e-9)


def test_a_path_goes_on_from_the_planes_of_the_last_value():
    problem = ranking_problem(seed=7, n_queries=400, n_rows=20, n_features=10)
    solution, passes, alone = None, 0.0, 0.0
    for C in np.geomspace(0.5, 100.0, 8):
        alone += BCFW().solve(problem, C).result.passes
        solution = BCFW().solve(problem, C, start=solution)
        result = solution.result
        exact = 0.5 * solution.w @ solution.w + C * problem.weights @ problem.risks(solution.w)
        assert result.value == pytest.approx(exact, rel=1e-12)
        assert result.dual >= (1 - 1e-3) * result.value
        passes += result.passes
    assert passes < 0.8 * alone


def test_a_C_nearby_costs_a_certificate_alone():
    problem = ranking_problem(seed=7, n_queries=1000, n_rows=30, n_features=20)
    solution = BCFW().solve(problem, 100.0)
    nearby = BCFW().solve(problem, 101.0, start=solution)
    assert nearby.result.converged
    assert nearby.result.passes == 1.0
    assert nearby.result.n_iter == 0
    exact = 0.5 * nearby.w @ nearby.w + 101.0 * problem.weights @ problem.risks(nearby.w)
    assert nearby.result.value == pytest.approx(exact, rel=1e-12)
    best = OneSlack(tol=1e-6).solve(problem, 101.0).result.value
    assert best <= exact * (1 + 1e-6) <= best * (1 + 1e-3) * (1 + 1e-5)


@pytest.mark.parametrize("n_planes", [2, 3, 10])
def test_bcfw_converges_with_any_number_of_planes(n_planes):
    problem = ranking_problem(seed=8, n_queries=15, n_rows=10)
    exact = OneSlack(tol=1e-7).solve(problem, 30.0).result.value
    result = BCFW(tol=1e-4, n_planes=n_planes, max_passes=5000).solve(problem, 30.0).result
    assert result.converged
    assert result.value == pytest.approx(exact, rel=1.1e-4)


@pytest.mark.parametrize("n", [1, 3, 99, 1000])
def test_bcfw_visits_every_example_it_does_not_know_in_another_order_each_time(n):
    rng = np.random.default_rng(0)
    orders = [BCFW._choose(np.full(n, np.inf), rng) for _ in range(2)]
    for order in orders:
        assert np.array_equal(np.sort(order), np.arange(n))
    assert n < 4 or not np.array_equal(*orders)
    gaps = np.where(np.arange(n) % 2 == 0, 1.0, 0.0)
    chosen = BCFW._choose(gaps, rng)
    assert len(np.unique(chosen)) == len(chosen) <= n
    assert set(range(0, n, 2)) <= set(chosen.tolist())


def test_bcfw_visits_many_examples_in_long_runs():
    # Each run is one long read where rows are mapped and do not fit into memory.
    n = 300_000
    order = BCFW._choose(np.full(n, np.inf), np.random.default_rng(0))
    assert sorted(order) == list(range(n))
    assert 900 < np.count_nonzero(np.diff(order) != 1) < 1100


def test_bcfw_is_reproducible():
    problem = ranking_problem(seed=9, n_queries=15, n_rows=10)
    first, second = (BCFW(random_state=3).solve(problem, 10.0) for _ in range(2))
    assert np.array_equal(first.w, second.w)
    assert not np.array_equal(first.w, BCFW(random_state=4).solve(problem, 10.0).w)


def test_stages_leave_passes_for_the_C_that_was_asked_for():
    problem = ranking_problem(seed=15, n_queries=12, n_rows=8, noise=3.0)
    seen = []
    BCFW(tol=0.0, max_passes=40).solve(problem, 1e4, callback=lambda p: seen.append(p.C))
    assert seen[0] < 1e4
    assert seen.count(1e4) >= 15


def test_data_too_wide_for_planes_is_refused_with_advice():
    class Wide(PythonProblem):
        cut_cost = 1e-4

    with pytest.raises(DataError, match="one-slack"):
        BCFW().solve(Wide(n_examples=100_000, n_features=1_000_000), 1.0)


@pytest.mark.parametrize("seed", range(8))
def test_bcfw_converges_on_one_query_alone(seed):
    """It has as many active cuts as weights, so that a few remembered planes would not do."""
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.random((40, 5))
    problem = RankingProblem(X, np.floor(X[:, 0]), Groups.from_sizes([40], 40), AveragePrecision())
    assert BCFW().solve(problem, 30.0).result.converged


@pytest.mark.parametrize("sweeps", [1, 9, 49, 57])
def test_an_interrupted_run_reports_the_value_of_its_weights(monkeypatch, sweeps):
    """Also in the midst of a pass after a certificate, which has moved the weights since."""
    left = iter(())

    def sweep_planes(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return core_sweep(*arguments)

    core_sweep = bcfw.sweep_planes
    monkeypatch.setattr(bcfw, "sweep_planes", sweep_planes)
    for seed in range(20):
        problem, left = ranking_problem(seed=seed, n_queries=20, n_rows=10), iter(range(sweeps))
        seen = []
        solution = BCFW(tol=1e-5).solve(problem, 50.0, callback=seen.append)
        result, w = solution.result, solution.w
        exact = 0.5 * w @ w + 50.0 * problem.weights @ problem.risks(w)
        assert result.status in ("interrupted", "converged")
        assert result.value == pytest.approx(exact, rel=1e-12)
        assert all(one.w is not other.w for one, other in pairwise(seen))


def test_a_run_that_meets_tol_at_its_last_pass_has_converged():
    statuses = set()
    for seed in range(40):
        problem = ranking_problem(seed=seed, n_queries=20, n_rows=10)
        for passes in (2, 4, 6, 8):
            result = BCFW(tol=0.05, max_passes=passes).solve(problem, 5.0).result
            assert result.converged == (result.gap <= 0.05 * result.value)
            statuses.add(result.status)
    assert statuses == {"converged", "limit"}
