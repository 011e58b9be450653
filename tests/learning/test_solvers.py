"""Laws of all learners: one objective, one optimum, an honest gap."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from didyma.errors import DataError
from didyma.learning import NSlack, OneSlack, ProximalBundle
from didyma.learning.bcfw import BCFW
from didyma.learning.problem import PythonProblem
from didyma.polytope.active_set import project
from didyma.ranking.losses import NDCG, PrecisionAt, ReciprocalRank, RocArea
from didyma.ranking.problem import RankingProblem
from tests.learning.problems import (
    multiclass,
    optimum_by_enumeration,
    random_ranking,
    ranking_problem,
)

SOLVERS = [OneSlack(tol=1e-7), NSlack(tol=1e-6), ProximalBundle(tol=1e-7), BCFW(tol=1e-4)]


NAMES = ["one-slack", "n-slack", "bundle", "bcfw"]


EACH_SOLVER = pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)


def objective(problem, w, C):
    return 0.5 * w @ w + C * problem.weights @ problem.risks(w)


@EACH_SOLVER
@pytest.mark.parametrize("C", [0.3, 5.0, 40.0])
def test_optimum_equals_the_enumeration_of_all_rankings(solver, C):
    X, y, groups = random_ranking(seed=int(C))
    best = optimum_by_enumeration(X, y, groups, C)
    result = solver.solve(ranking_problem(seed=int(C)), C).result
    assert result.converged
    assert result.dual <= best + 1e-6
    assert result.value >= best - 1e-6
    assert result.value == pytest.approx(best, rel=2 * solver.tol + 1e-7)


@EACH_SOLVER
def test_the_report_is_true(solver):
    problem = ranking_problem(seed=2, n_queries=12, n_rows=8, n_features=4)
    solution = solver.solve(problem, 20.0)
    result = solution.result
    assert result.value == pytest.approx(objective(problem, solution.w, 20.0), rel=1e-9)
    assert result.gap == pytest.approx(result.value - result.dual)
    assert -1e-9 <= result.gap <= solver.tol * result.value
    assert result.status == "converged"
    assert result.passes >= 1
    assert result.seconds["total"] >= max(v for k, v in result.seconds.items() if k != "total")


@EACH_SOLVER
def test_a_task_given_by_its_argmax_alone(solver):
    """Crammer-Singer against liblinear, which solves it in its own way."""
    problem = multiclass()
    liblinear = LinearSVC(
        multi_class="crammer_singer", C=10.0 / 30, fit_intercept=False, tol=1e-9, max_iter=100_000
    ).fit(problem.X, problem.labels)
    expected = objective(problem, liblinear.coef_.ravel(), 10.0)
    assert solver.solve(problem, 10.0).result.value == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(
    "loss", [RocArea(), ReciprocalRank(), NDCG(), NDCG(k=2), PrecisionAt(k=2)], ids=str
)
def test_all_learners_agree_on_every_loss(loss):
    values = []
    for solver in (OneSlack(tol=1e-6), BCFW(tol=1e-4)):
        problem = ranking_problem(seed=4, loss=loss, n_queries=10, n_rows=7)
        values.append(solver.solve(problem, 10.0).result.value)
    assert values[0] == pytest.approx(values[1], rel=2e-4)


def test_all_learners_agree_on_thresholds_of_grades():
    X, _, groups = random_ranking(seed=12, n_queries=8, n_rows=7)
    y = np.random.default_rng(12).integers(0, 4, len(X)).astype(float)
    weight = np.linspace(0.5, 2.0, len(groups))
    problem = RankingProblem(X, y, groups, NDCG(), grades="thresholds", query_weight=weight)
    values = []
    for solver in SOLVERS:
        result = solver.solve(problem, 10.0).result
        assert result.converged
        values.append(result.value)
    np.testing.assert_allclose(values, values[0], rtol=3e-4)


def test_cutting_planes_are_the_projection_of_sparsemap():
    """Maths B3: the one-slack dual is the active-set projection with the oracle cut_all."""
    problem = ranking_problem(seed=5, n_queries=6, n_rows=6)
    C = 7.0

    def oracle(u):
        cut = problem.cut_all(-u)
        if cut.at(-u) <= 0.0:
            return np.zeros_like(u), 0.0
        return C * cut.direction, C * cut.loss

    projection = project(oracle, problem.n_features, tol=1e-11)
    learned = OneSlack(tol=1e-10).solve(problem, C)
    assert projection.converged
    np.testing.assert_allclose(-projection.point, learned.w, atol=1e-5)
    # τ = C ξ, the risk at the optimum.
    assert projection.tau == pytest.approx(C * problem.weights @ problem.risks(learned.w), rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS[:1] + SOLVERS[2:], ids=["one-slack", "bundle", "bcfw"])
def test_continuation_over_C_reaches_the_same_optimum(solver):
    problem = ranking_problem(seed=6, n_queries=15, n_rows=8)
    solution = None
    for C in (0.5, 2.0, 10.0, 50.0):
        solution = solver.solve(problem, C, start=solution)
        cold = solver.solve(problem, C)
        assert solution.result.converged
        assert solution.result.value == pytest.approx(cold.result.value, rel=2e-4)
        again = objective(problem, solution.w, C)
        assert solution.result.value == pytest.approx(again, rel=1e-9)


@EACH_SOLVER
def test_a_callback_can_stop(solver):
    problem = ranking_problem(seed=10, n_queries=15, n_rows=10)
    seen = []

    def stop_at_two(progress):
        seen.append(progress)
        return len(seen) == 2

    solution = solver.solve(problem, 1e4, callback=stop_at_two)
    assert solution.result.status == "stopped"
    assert not solution.result.converged
    assert solution.result.n_iter == len(seen) == 2
    assert solution.result.value == pytest.approx(objective(problem, solution.w, 1e4), rel=1e-9)
    assert seen[1].relative_gap == pytest.approx(seen[1].gap / seen[1].value)


@EACH_SOLVER
def test_ctrl_c_keeps_what_was_learned(solver):
    problem = ranking_problem(seed=11, n_queries=15, n_rows=10)
    seen = []

    def interrupt(progress):
        seen.append(progress.n_iter)
        if len(seen) == 3:
            raise KeyboardInterrupt

    solution = solver.solve(problem, 1e4, callback=interrupt)
    assert solution.result.status == "interrupted"
    assert solution.result.value == pytest.approx(objective(problem, solution.w, 1e4), rel=1e-9)
    assert solution.result.dual <= solution.result.value


@EACH_SOLVER
def test_ctrl_c_before_the_first_iteration(solver):
    class Interrupted(type(multiclass())):
        def cut(self, w, i):
            if not self.ready:
                self.ready = True
                raise KeyboardInterrupt
            return super().cut(w, i)

    base = multiclass()
    problem = Interrupted(base.X, base.labels, 3)
    problem.ready = False
    solution = solver.solve(problem, 1.0)
    assert solution.result.status == "interrupted"
    assert np.all(solution.w == 0.0)
    assert solution.result.value == pytest.approx(objective(problem, solution.w, 1.0))


def test_a_limit_is_reported():
    problem = ranking_problem(seed=12, n_queries=15, n_rows=10)
    for solver in (BCFW(max_passes=1), OneSlack(max_iter=1), ProximalBundle(max_iter=1)):
        result = solver.solve(problem, 1e5).result
        assert result.status == "limit"
        assert not result.converged
        assert result.gap > 0


def frozen(solution):
    """All that a solution holds, as bytes."""
    return pickle.dumps(solution)


@pytest.mark.parametrize("solver", SOLVERS[:1] + SOLVERS[2:], ids=["one-slack", "bundle", "bcfw"])
def test_a_solution_that_serves_as_a_start_does_not_change(solver):
    problem = ranking_problem(seed=14, n_queries=10, n_rows=6)
    first = solver.solve(problem, 2.0)
    before = frozen(first)
    second, third = (solver.solve(problem, 30.0, start=first) for _ in range(2))
    assert frozen(first) == before
    np.testing.assert_array_equal(second.w, third.w)
    assert not np.array_equal(first.w, second.w)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e6])
@pytest.mark.parametrize(
    "solver",
    [
        *(BCFW(tol=0.0, max_passes=m) for m in (1, 2, 10, 60)),
        *(OneSlack(tol=0.0, max_iter=m) for m in (1, 40)),
        *(NSlack(tol=0.0, max_iter=m) for m in (1, 12)),
        *(ProximalBundle(tol=0.0, max_iter=m) for m in (1, 40)),
    ],
    ids=str,
)
def test_whatever_ends_a_run_its_solution_is_for_the_C_that_was_asked_for(solver, C):
    problem = ranking_problem(seed=15, n_queries=12, n_rows=8, noise=3.0)
    solution = solver.solve(problem, C)
    result = solution.result
    best = OneSlack(tol=1e-9).solve(problem, C).result
    assert result.value == pytest.approx(objective(problem, solution.w, C), rel=1e-9)
    assert result.dual <= best.value * (1 + 1e-9)
    assert result.value >= best.dual * (1 - 1e-9)
    assert result.gap == pytest.approx(result.value - result.dual)
    assert result.converged == (result.status == "converged")
    if result.converged:
        assert result.gap <= 1e-12 * result.value
    else:
        assert result.status == "limit"
        assert result.gap > 0.0


def test_a_problem_without_a_cut_says_so():
    with pytest.raises(NotImplementedError, match="defines no cut"):
        OneSlack().solve(PythonProblem(n_examples=1, n_features=1), 1.0)


def test_cuts_are_forgotten_but_the_optimum_stays():
    """Long runs drop cuts that are not in use; the bound must stay valid."""
    problem = ranking_problem(seed=13, n_queries=30, n_rows=12, n_features=8, noise=4.0)
    exact = OneSlack(tol=1e-9, max_iter=5000).solve(problem, 300.0)
    again = ProximalBundle(tol=1e-9, max_iter=5000).solve(problem, 300.0)
    assert again.result.n_iter > 60  # longer than any unused cut is kept
    assert again.result.value == pytest.approx(exact.result.value, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 0.01])
def test_n_slack_ends_by_the_rule_of_the_paper(epsilon):
    """No cut is violated by more than its slack and ε, and so the gap is C ε at most."""
    problem, C = ranking_problem(), 10.0
    solution = NSlack(tol=0.0, epsilon=epsilon).solve(problem, C)
    assert solution.result.status == "converged"
    assert 1e-9 < solution.result.gap <= 1.1 * C * epsilon
    assert solution.result.n_iter < NSlack(tol=1e-6).solve(problem, C).result.n_iter
    with pytest.raises(DataError, match="epsilon: expected above 0"):
        NSlack(epsilon=0.0).solve(problem, C)
