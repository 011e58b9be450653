from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

from didyma.nbest.canonical import CanonicalCorrelations
from didyma.nbest.projections import Discriminative, RerankingProblem, cosines, similarities

TAU, LAM, K = 0.6, 0.4, 3


def problem(seed=0, n=15, d1=8, d2=6, sparse=False):
    """Lists of none to four candidates, some of them right, and losses of all sizes."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(1.0, (n, d1)).astype(float)
    Y = rng.poisson(1.0, (n, d2)).astype(float)
    sizes = np.concatenate([[0, 1], rng.integers(1, 5, n - 2)])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(Y, sizes, axis=0) + rng.poisson(0.5, (starts[-1], d2))
    losses = np.abs(rows - np.repeat(Y, sizes, axis=0)).sum(axis=1)
    make = sp.csr_array if sparse else np.asarray
    return RerankingProblem(make(X), make(Y), make(rows), starts, losses)


def literal_solve(X, Y, Z, k):
    """A and B by whitening and a singular value decomposition."""
    n = len(X)
    Lx = np.linalg.cholesky((1 - TAU) * X.T @ X / n + TAU * np.eye(X.shape[1]))
    Ly = np.linalg.cholesky((1 - TAU) * Y.T @ Y / n + TAU * np.eye(Y.shape[1]))
    whitened = scipy.linalg.solve_triangular(Lx, X.T @ Z / n, lower=True)
    whitened = scipy.linalg.solve_triangular(Ly, whitened.T, lower=True).T
    U, _, V = np.linalg.svd(whitened)
    return np.linalg.inv(Lx).T @ U[:, :k], np.linalg.inv(Ly).T @ V[:k].T


def literal_algorithm(given, step, rounds):
    """The alternation, candidate by candidate, as one reads it."""
    X, Y, n = given.X, given.Y, len(given.X)
    lists = [range(given.starts[i], given.starts[i + 1]) for i in range(n)]
    alpha = given.losses.copy()
    for _ in range(rounds):
        Z = np.zeros_like(Y)
        for i, own in enumerate(lists):
            Z[i] = (1 - LAM) * Y[i]
            for j in own:
                Z[i] += LAM * alpha[j] * (Y[i] - given.candidates[j]) / len(own)
        A, B = literal_solve(X, Y, Z, K)
        slacks = np.zeros(n)
        for i, own in enumerate(lists):
            margin = {j: X[i] @ A @ B.T @ (Y[i] - given.candidates[j]) for j in own}
            psi = [(1 - margin[j]) * given.losses[j] for j in own]
            slacks[i] = min([value for value in psi if value > 0], default=0.0)
            if slacks[i] > 0:
                for j in own:
                    if given.losses[j] > 0:
                        d = margin[j] - (1 - slacks[i] / given.losses[j])
                        alpha[j] = max(0.0, alpha[j] - step * d)
    return A, B, slacks


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_alternation_is_the_literal_one(seed, rounds, sparse):
    A, B, slacks = literal_algorithm(problem(seed), 0.7, rounds)
    given = problem(seed, sparse=sparse)
    views = CanonicalCorrelations(given.X, given.Y, TAU, 1 / given.X.shape[0])
    learned = Discriminative(step=0.7, max_iter=rounds, tol=0.0).solve(given, views, LAM, K)
    np.testing.assert_allclose(learned.directions.A @ learned.directions.B.T, A @ B.T, atol=1e-7)
    np.testing.assert_allclose(learned.slacks, slacks, atol=1e-6)
    assert learned.n_iter == rounds
    assert not learned.converged


def test_multipliers_change_and_stay_nonnegative():
    given = problem()
    views = CanonicalCorrelations(given.X, given.Y, TAU, 1 / given.X.shape[0])
    found = views.solve(given.target(LAM, given.losses), K)
    margins = given.margins(found.A, found.B)
    slacks = given.slacks(margins)
    moved = given.moved(given.losses, margins, slacks, 100.0)
    assert np.all(moved >= 0)
    assert np.any(moved == 0)
    assert np.any(moved > given.losses)
    np.testing.assert_array_equal(moved[given.losses == 0], 0.0)


def test_slacks_are_the_least_positive_ones():
    empty = np.zeros((5, 1))
    given = RerankingProblem(
        np.zeros((4, 1)), np.zeros((4, 1)), empty, np.array([0, 3, 3, 4, 5]), np.arange(5.0)
    )
    margins = np.array([0.0, 0.5, 0.0, 2.0, 1.0])
    np.testing.assert_allclose(given.slacks(margins), [0.5, 0.0, 0.0, 0.0])


def test_a_share_of_zero_forgets_the_candidates():
    given = problem(sparse=True)
    assert given.target(0.0, given.losses) is given.Y
    only = given.target(1.0, given.losses).toarray()
    np.testing.assert_array_equal(only[0], 0.0)  # its list is empty


def test_it_stops_when_slacks_do_not_change():
    given = problem()
    views = CanonicalCorrelations(given.X, given.Y, TAU, 1 / given.X.shape[0])
    learned = Discriminative(step=0.0, max_iter=5, tol=1e-6).solve(given, views, LAM, K)
    assert (learned.n_iter, learned.converged) == (2, True)


def test_a_callback_sees_each_round_and_may_stop():
    given = problem()
    views = CanonicalCorrelations(given.X, given.Y, TAU, 1 / given.X.shape[0])
    rounds = []
    learner = Discriminative(max_iter=4, tol=0.0)
    learner.solve(given, views, LAM, K, callback=rounds.append)
    assert [each.n_iter for each in rounds] == [1, 2, 3, 4]
    assert rounds[0].change == np.inf
    assert all(each.slack >= 0 and each.residual < 1e-6 for each in rounds)
    stopped = learner.solve(given, views, LAM, K, callback=lambda each: each.n_iter == 2)
    assert stopped.n_iter == 2


def test_margins_and_similarities_are_computed_in_blocks(monkeypatch):
    given, rng = problem(), np.random.default_rng(0)
    A, B = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
    margins = given.margins(A, B)
    near = similarities(given.X, given.candidates, given.lists, A, B)
    monkeypatch.setattr("didyma.nbest.projections.BLOCK", 4)
    np.testing.assert_allclose(given.margins(A, B), margins)
    np.testing.assert_allclose(similarities(given.X, given.candidates, given.lists, A, B), near)
    i, j = given.lists[7], 7
    expected = given.X[i] @ A @ B.T @ (given.Y[i] - given.candidates[j])
    assert margins[j] == pytest.approx(expected)


def test_a_zero_vector_is_similar_to_nothing():
    rows = np.array([[1.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(cosines(rows, rows), [1.0, 0.0])
    np.testing.assert_array_equal(cosines(rows[:, :0], rows[:, :0]), [0.0, 0.0])
