"""Learners over structures, against the same programme written out and solved by another method."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from didyma import DataError, Structure, StructuredPerceptron, StructuredSVM
from didyma.solvers import Milp
from didyma.structured import StructureTask
from didyma.structures import Chain, Matching


class Pairs(Structure):
    """Two of the options."""

    def argmax(self, scores):
        return np.argsort(-scores, kind="stable")[:2]


def given(x):
    return x


def with_steps(x):
    """Two features of a word and its tag, one for staying at a tag."""
    words = np.zeros((len(x), 2, 3))
    words[:, 0, 0], words[:, 1, 1] = x, x
    steps = np.zeros((2, 2, 3))
    steps[0, 0, 2] = steps[1, 1, 2] = 1.0
    return words, {"transitions": steps}


def with_capacity(x):
    features, capacity = x
    return features, {"upper": [capacity]}


def pairs(rng):
    xs = [rng.standard_normal((4, 2)) for _ in range(5)]
    outputs = [np.isin(np.arange(4), pair) for pair in itertools.combinations(range(4), 2)]
    labels = [outputs[i] for i in rng.integers(0, 6, 5)]
    features = [[x[output].sum(axis=0) for output in outputs] for x in xs]
    return StructureTask(Pairs(), given, 2), xs, labels, [outputs] * 5, features


def knapsacks(rng):
    xs = [(rng.standard_normal((4, 2)), float(c)) for c in (3, 4, 5)]
    weights = np.array([3, 2, 2, 1])
    outputs = [
        [np.array(o, bool) for o in itertools.product((0, 1), repeat=4) if weights @ o <= c]
        for _, c in xs
    ]
    labels = [fits[rng.integers(len(fits))] for fits in outputs]
    features = [[x[o].sum(axis=0) for o in fits] for (x, _), fits in zip(xs, outputs)]
    task = StructureTask(Milp([weights], [0]), with_capacity, 2)
    return task, xs, labels, outputs, features


def chains(rng):
    xs = [rng.standard_normal(3) for _ in range(4)]
    outputs = [np.array(tags) for tags in itertools.product((0, 1), repeat=3)]
    labels = [outputs[i] for i in rng.integers(0, 8, 4)]
    features = [
        [
            np.array([x[t == 0].sum(), x[t == 1].sum(), float((t[1:] == t[:-1]).sum())])
            for t in outputs
        ]
        for x in xs
    ]
    return StructureTask(Chain(), with_steps, 3), xs, labels, [outputs] * 4, features


CASES = {"own": pairs, "milp": knapsacks, "chain": chains}


def solved_by_hand(C, labels, outputs, features):
    """Min ½‖w‖² + C/n Σ ξ_i with every constraint, by sequential quadratic programming."""
    n, k = len(labels), len(features[0][0])
    rows, losses, which = [], [], []
    for i, (y, all_outputs, psi) in enumerate(zip(labels, outputs, features)):
        (gold,) = (p for o, p in zip(all_outputs, psi) if np.array_equal(o, y))
        for o, p in zip(all_outputs, psi):
            rows.append(p - gold)
            losses.append(float((o != y).sum()))
            which.append(i)
    rows, losses, which = np.array(rows), np.array(losses), np.array(which)
    solution = minimize(
        lambda z: 0.5 * z[:k] @ z[:k] + C / n * z[k:].sum(),
        np.concatenate([np.zeros(k), np.full(n, losses.max())]),
        jac=lambda z: np.concatenate([z[:k], np.full(n, C / n)]),
        constraints={
            "type": "ineq",
            "fun": lambda z: z[k:][which] - losses - rows @ z[:k],
            "jac": lambda z: np.hstack([-rows, np.eye(n)[which]]),
        },
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solution.success
    return solution.x[:k], solution.fun


@pytest.mark.parametrize("solver", ["one-slack", "bcfw"])
@pytest.mark.parametrize("name", CASES)
def test_the_svm_is_that_of_all_constraints(name, solver):
    task, xs, labels, outputs, features = CASES[name](np.random.default_rng(0))
    w, value = solved_by_hand(2.0, labels, outputs, features)
    learner = StructuredSVM(task, C=2.0, solver=solver, tol=1e-7, max_iter=20_000).fit(xs, labels)
    np.testing.assert_allclose(learner.coef_, w, atol=1e-3)
    risks = task.problem(xs, labels, np.full(len(xs), 1 / len(xs))).risks(learner.coef_)
    objective = 0.5 * learner.coef_ @ learner.coef_ + 2.0 * risks.mean()
    assert objective == pytest.approx(value, rel=1e-6)
    assert np.abs(w).max() > 0.01


@pytest.mark.parametrize("name", CASES)
def test_it_answers_as_a_list_does(name):
    rng = np.random.default_rng(1)
    task, xs, labels, outputs, features = CASES[name](rng)
    w = rng.standard_normal(task.n_features)
    for x, y, listed, psi in zip(xs, labels, outputs, features):
        for output, vector in zip(listed, psi):
            np.testing.assert_allclose(task.features(x, output), vector)
            assert task.loss(y, output) == (y != output).sum()
        scores = np.array(psi) @ w
        np.testing.assert_array_equal(task.argmax(w, x), listed[int(np.argmax(scores))])
        losses = [task.loss(y, output) for output in listed]
        worst = task.loss_augmented(w, x, y, 0.7)
        found = 0.7 * task.loss(y, worst) + task.features(x, worst) @ w
        assert found == pytest.approx((scores + 0.7 * np.array(losses)).max())


def test_a_perceptron_learns_a_matching():
    rng = np.random.default_rng(0)
    xs = [(rng.random(4), rng.random(4)) for _ in range(20)]
    task = StructureTask(Matching(), distances, 1)
    labels = [task.argmax(np.array([-1.0]), x) for x in xs]
    learner = StructuredPerceptron(task).fit(xs[:10], labels[:10])
    assert learner.score(xs[10:], labels[10:]) == 0.0
    assert learner.coef_[0] < 0


def distances(x):
    return np.abs(np.subtract.outer(*x))[..., None] ** 2


def test_wrong_features_are_named():
    with pytest.raises(DataError, match=r"features: expected a last axis of 3 features"):
        StructureTask(Pairs(), given, 3).argmax(np.zeros(3), np.zeros((4, 2)))
    with pytest.raises(DataError, match=r"features: expected 2 axes"):
        StructureTask(Pairs(), given, 2).argmax(np.zeros(2), np.zeros(2))
    with pytest.raises(DataError, match=r"expected a didyma\.Structure"):
        StructureTask(Pairs, given, 2)
