"""Small problems whose optimum is known by independent means."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.optimize import minimize

from didyma.data.groups import Groups
from didyma.learning.problem import Cut, PythonProblem
from didyma.ranking.losses import AveragePrecision
from didyma.ranking.problem import RankingProblem
from tests.reference import coefficients, measure_loss


def random_ranking(seed=0, n_queries=4, n_rows=4, n_features=3, noise=1.0):
    """Features, labels and groups of a few small queries."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_queries * n_rows, n_features))
    truth = X @ rng.standard_normal(n_features) + noise * rng.standard_normal(len(X))
    y = np.zeros(len(X))
    for q in range(n_queries):
        own = slice(q * n_rows, (q + 1) * n_rows)
        y[own] = truth[own] > np.median(truth[own])
    return X, y, Groups.from_sizes([n_rows] * n_queries, len(X))


def ranking_problem(seed=0, loss=None, **options):
    """The same as a problem."""
    X, y, groups = random_ranking(seed, **options)
    return RankingProblem(X, y, groups, loss or AveragePrecision())


def optimum_by_enumeration(X, y, groups, C, name="ap"):
    """Min ½‖w‖² + (C/n) Σ ξ_i with one constraint for every ranking of every query, by SLSQP."""
    return optimum_over(X, y, groups, C, name)


def optimum_over(X, y, groups, C, name, k=None, golds=None):
    """The same for a loss with a cut-off, with ``golds`` beyond Ψ* of each query, as rows."""
    n, d = len(groups), X.shape[1]
    golds = np.zeros((n, d)) if golds is None else golds
    directions, losses, owners = [], [], []
    for q in range(n):
        rows = groups.rows[groups.starts[q] : groups.starts[q + 1]]
        labels = y[rows].astype(int)
        perfect = coefficients("pairwise", labels, tuple(np.argsort(-labels)), np.empty(0))
        for order in permutations(range(len(rows))):
            c = coefficients("pairwise", labels, order, np.empty(0)) - perfect
            directions.append(c @ X[rows] - golds[q])
            losses.append(measure_loss(name, labels[list(order)], k))
            owners.append(q)
    rows = np.unique(np.round(np.column_stack([directions, losses, owners]), 12), axis=0)
    directions, losses, owners = rows[:, :d], rows[:, d], rows[:, d + 1].astype(int)
    weights = np.full(n, C / n)

    def objective(z):
        return 0.5 * z[:d] @ z[:d] + weights @ z[d:]

    def gradient(z):
        return np.concatenate([z[:d], weights])

    slack = np.zeros((len(owners), n))
    slack[np.arange(len(owners)), owners] = 1.0
    A = np.hstack([-directions, slack])
    start = np.concatenate([np.zeros(d), np.ones(n)])
    solution = minimize(
        objective,
        start,
        jac=gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda z: A @ z - losses, "jac": lambda z: A},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert solution.success
    return solution.fun


class Multiclass(PythonProblem):
    """Crammer-Singer SVM in plain Python: a structure given by nothing but its argmax."""

    def __init__(self, X, labels, n_classes):
        super().__init__(len(X), X.shape[1] * n_classes)
        self.X, self.labels, self.n_classes = X, labels, n_classes

    def cut(self, w, i):
        scores = w.reshape(self.n_classes, -1) @ self.X[i]
        gold = self.labels[i]
        augmented = scores + (np.arange(self.n_classes) != gold)
        best = int(np.argmax(augmented))
        direction = np.zeros((self.n_classes, self.X.shape[1]))
        direction[best] += self.X[i]
        direction[gold] -= self.X[i]
        return Cut(direction.ravel(), float(best != gold))


def multiclass(seed=0):
    """Thirty points of three classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 30)
    X = rng.standard_normal((30, 4)) + np.eye(3, 4)[labels]
    return Multiclass(X, labels, 3)
