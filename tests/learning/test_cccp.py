"""CCCP by its guarantee: the objective never increases, and cuts survive a round."""

from __future__ import annotations

import numpy as np
import pytest

from didyma.learning.cccp import CCCP
from didyma.structured.learners import (
    LatentStructuredSVM,
)
from didyma.structured.task import Task
from tests.learning.tasks import Parts, examples_of_parts


@pytest.fixture
def parts():
    return examples_of_parts()


def objective(task, w, examples, labels, C):
    """½‖w‖² + C mean( max Δ + w·Ψ − max over completions w·Ψ )."""
    risk = 0.0
    for x, y in zip(examples, labels):
        worst = task.loss_augmented(w, x, y)
        risk += task.loss(y, worst) + w @ task.features(x, worst)
        risk -= w @ task.features(x, task.complete(w, x, y))
    return 0.5 * w @ w + C * risk / len(examples)


@pytest.mark.parametrize(
    ("C", "solver"),
    [
        *((0.1, "one-slack"), (10.0, "one-slack"), (1000.0, "one-slack")),
        *((1.0, "bundle"), (1.0, "n-slack")),
    ],
)
def test_cccp_never_increases_its_objective(parts, C, solver):
    model = LatentStructuredSVM(Parts(), C, tol=1e-4, solver=solver).fit(*parts)
    trace = np.array(model.objective_trace_)
    assert np.all(np.diff(trace) <= 1e-9 * np.abs(trace[:-1]))
    assert trace[-1] == pytest.approx(objective(Parts(), model.coef_, *parts, C))
    assert model.result_.status == "converged"
    assert len(trace) > 1


def test_shifted_cuts_save_oracle_calls():
    """Which local optimum is reached is another matter, which rounding may decide."""
    weights, passes = np.full(40, 1.0 / 40), {True: 0.0, False: 0.0}
    for seed in range(2):
        parts = examples_of_parts(seed=seed)
        for reuse in passes:
            solver = CCCP(tol=1e-4, reuse=reuse)
            solution = solver.solve(Parts().problem(*parts, weights), 100.0)
            passes[reuse] += solution.result.passes
            value = objective(Parts(), solution.w, *parts, 100.0)
            assert solution.result.value == pytest.approx(value)
    assert passes[True] < 0.8 * passes[False]


def test_a_shifted_pool_is_the_pool_of_the_shifted_problem(parts):
    """After a completion the old cuts must still bound the new risk from below."""
    from didyma.learning.cutting_plane import OneSlack

    problem = Parts().problem(*parts, np.full(40, 1.0 / 40))
    gold = problem.begin(np.random.default_rng(0))
    solution = OneSlack().solve(problem, 10.0)
    completed = problem.complete(solution.w)
    pool = solution.state
    pool.shift(gold - completed)
    rng = np.random.default_rng(1)
    for _ in range(20):
        w = rng.standard_normal(problem.n_features)
        risk = problem.weights @ problem.risks(w)
        assert (pool.losses + pool.directions @ w).max() <= risk + 1e-9
    np.testing.assert_allclose(pool.gram, pool.directions @ pool.directions.T)
    assert not pool.directions[0].any()  # the plane of the completion itself
    assert pool.losses[0] == 0.0


def test_restarts_keep_the_best():
    few = examples_of_parts(8)
    model = LatentStructuredSVM(Parts(), 50.0, tol=1e-2, n_restarts=4, random_state=1)
    found = model.fit(*few).result_
    assert found.value == min(found.values) == found.values[found.kept]
    assert len(set(found.values)) > 1
    assert found.kept > 0
    assert model.objective_trace_[-1] == found.value
    assert found.value == pytest.approx(objective(Parts(), model.coef_, *few, 50.0))
    assert len(model.objective_trace_) == found.n_iter
    seeds = np.random.RandomState(1).randint(2**31 - 1, size=4)
    kept = CCCP(tol=1e-2, ties=4).solve(
        Parts().problem(*few, np.full(8, 1.0 / 8)), 50.0, random_state=int(seeds[found.kept])
    )
    np.testing.assert_array_equal(model.coef_, kept.w)


class Options(Task):
    """Is one of the rows of x above 1? The label completes to the row that scores best."""

    n_features = 2

    def features(self, x, output):
        return np.zeros(2) if output is None else np.array(x[output], dtype=float)

    def loss(self, y, output):
        return float(output is None)

    def _best(self, w, x, others):
        return max([*others, *range(len(x))], key=lambda h: w @ self.features(x, h) + (h is None))

    def argmax(self, w, x):
        return self._best(w, x, [])

    def loss_augmented(self, w, x, y, scale=1.0):
        return self._best(w, x, [None])

    def complete(self, w, x, y):
        return self._best(w, x, [])

    def initial(self, x, y, rng):
        return 0


def test_a_tie_between_completions_is_no_end():
    """Both rows of the first example score 2 at w = (2, 1), the optimum against the first row.

    Against the second row the optimum is w = (0, 1), with a fifth of the objective.
    """
    examples, labels = [[(1, 0), (0, 2)], [(0, 1)]], [True, True]
    fitted = {
        ties: LatentStructuredSVM(Options(), 100.0, tol=1e-6, ties=ties).fit(examples, labels)
        for ties in (0, 2)
    }
    np.testing.assert_allclose(fitted[0].coef_, [2.0, 1.0], atol=1e-6)
    assert fitted[0].result_.value == pytest.approx(2.5)
    assert fitted[0].result_.escapes == 0
    np.testing.assert_allclose(fitted[2].coef_, [0.0, 1.0], atol=1e-6)
    assert fitted[2].result_.value == pytest.approx(0.5)
    assert fitted[2].result_.escapes == 1
    assert np.all(np.diff(fitted[2].objective_trace_) <= 1e-9)
    assert fitted[2].result_.status == "converged"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_tried_never_loses(parts, seed):
    problem = Parts().problem(*(part[:15] for part in parts), np.full(15, 1.0 / 15))
    found = [CCCP(tol=1e-2, ties=t).solve(problem, 30.0, random_state=seed) for t in (0, 4)]
    values = found[1].state.trace
    assert found[0].state.trace[-2] <= 1.01 * found[0].state.trace[-1]  # or it would go on
    assert values[: len(found[0].state.trace)] == found[0].state.trace
    assert np.all(np.diff(values) <= 1e-9 * np.array(values[:-1]))
    assert found[1].result.value == values[-1] <= found[0].result.value
    assert len(values) >= len(found[0].state.trace) + 4
