from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from didyma.nbest import canonical
from didyma.nbest.canonical import CanonicalCorrelations, Covariance, Cross, leading_subspace

SHAPES = [(40, 7, 5), (12, 30, 6), (30, 9, 25)]


def views(n, d1, d2, seed=0):
    """Sparse counts with something in common, and a target that is not the second view."""
    rng = np.random.default_rng(seed)
    hidden = rng.poisson(0.7, (n, 4))
    X = hidden @ rng.poisson(0.4, (4, d1)) + rng.poisson(0.2, (n, d1))
    Y = hidden @ rng.poisson(0.4, (4, d2)) + rng.poisson(0.2, (n, d2))
    Z = 0.7 * Y + 0.3 * rng.normal(size=Y.shape) * (Y > 0)
    return X.astype(float), Y.astype(float), Z


def reference(X, Y, Z, tau, scale):
    """All solutions of the joint generalised eigenproblem with positive ρ, by one dense solver."""
    d1, d2 = X.shape[1], Y.shape[1]
    Cxx = (1 - tau) * scale * X.T @ X + tau * np.eye(d1)
    Cyy = (1 - tau) * scale * Y.T @ Y + tau * np.eye(d2)
    Cxy = scale * X.T @ Z
    left = np.block([[np.zeros((d1, d1)), Cxy], [Cxy.T, np.zeros((d2, d2))]])
    rho, vectors = scipy.linalg.eigh(left, scipy.linalg.block_diag(Cxx, Cyy))
    order = np.argsort(-rho)[: np.sum(rho > 1e-8)]
    A, B = np.sqrt(2) * vectors[:d1, order], np.sqrt(2) * vectors[d1:, order]
    return rho[order], A, B, Cxx, Cyy, Cxy


@pytest.fixture(params=["factored", "iterative"])
def method(request, monkeypatch):
    """Both ways to solve, at any size: factor everything, or nothing."""
    if request.param == "iterative":
        monkeypatch.setattr(canonical, "SMALL", 0)
        monkeypatch.setattr(canonical, "LARGE", 0)
    return request.param


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", ["mean", "sum"])
@pytest.mark.parametrize("tau", [0.1, 0.9, 1.0])
def test_directions_are_those_of_the_joint_eigenproblem(shape, scale, tau, method):
    X, Y, Z = views(*shape)
    scale = 1 / len(X) if scale == "mean" else 1.0
    rho, A, B, Cxx, Cyy, _ = reference(X, Y, Z, tau, scale)
    k = 3
    found = CanonicalCorrelations(sp.csr_array(X), sp.csr_array(Y), tau, scale).solve(
        sp.csr_array(Z), k
    )
    np.testing.assert_allclose(found.correlations, rho[:k], rtol=1e-6)
    np.testing.assert_allclose(found.A.T @ Cxx @ found.A, np.eye(k), atol=1e-6)
    np.testing.assert_allclose(found.B.T @ Cyy @ found.B, np.eye(k), atol=1e-6)
    # Signs are free, of both at once.
    np.testing.assert_allclose(found.A @ found.B.T, A[:, :k] @ B[:, :k].T, atol=1e-6)
    assert found.residual < 1e-6


@pytest.mark.parametrize("shape", SHAPES)
def test_dense_views_give_what_sparse_ones_give(shape, method):
    X, Y, Z = views(*shape)
    dense = CanonicalCorrelations(X, Y, 0.5, 1.0).solve(Z, 4)
    sparse = CanonicalCorrelations(*map(sp.csr_array, (X, Y)), 0.5, 1.0).solve(sp.csr_array(Z), 4)
    np.testing.assert_allclose(dense.A, sparse.A, atol=1e-7)
    np.testing.assert_allclose(dense.B, sparse.B, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_lanczos_finds_what_a_dense_solver_finds(shape, monkeypatch):
    X, Y, Z = views(*shape)
    exact = CanonicalCorrelations(X, Y, 0.5, 0.1)
    expected = exact.solve(Z, 1)
    monkeypatch.setattr(canonical, "SMALL", 0)
    found = exact.solve(Z, 1)  # factored already, but the second view is now too large
    np.testing.assert_allclose(found.correlations, expected.correlations, rtol=1e-8)
    np.testing.assert_allclose(found.A, expected.A, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(2, 20),
    st.integers(1, 25),
    st.floats(1e-3, 10.0),
    st.floats(0.01, 1.0),
    st.integers(0, 9),
)
def test_every_way_to_divide_by_a_covariance_agrees(n, d, c, tau, seed):
    rng = np.random.default_rng(seed)
    X, V, Z = rng.normal(size=(n, d)), rng.normal(size=(d, 3)), rng.normal(size=(n, 2))
    B, Cxy = rng.normal(size=(2, 3)), 0.7 * X.T @ Z
    C = c * X.T @ X + tau * np.eye(d)
    direct, iterative = Covariance(X, c, tau), Covariance(sp.csr_array(X), c, tau)
    iterative.factored = False
    for covariance in (direct, iterative):
        cross = Cross(covariance.X, Z, 0.7)
        assert cross.explicit is (covariance is direct and n >= max(d, 2))
        np.testing.assert_allclose(cross.product(B), Cxy @ B, atol=1e-9)
        np.testing.assert_allclose(cross.transposed(V), Cxy.T @ V, atol=1e-9)
        np.testing.assert_allclose(covariance.matrix, C)
        np.testing.assert_allclose(covariance.product(V), C @ V, atol=1e-9)
        np.testing.assert_allclose(C @ covariance.solve(V), V, atol=1e-6)
        np.testing.assert_allclose(C @ covariance.regress(cross, B), Cxy @ B, atol=1e-6)
        np.testing.assert_allclose(
            covariance.explained(cross), Cxy.T @ np.linalg.solve(C, Cxy), atol=1e-6
        )


@pytest.mark.parametrize("shape", [(9, 5), (5, 9)])
def test_blocks_make_up_the_whole(shape, method, monkeypatch):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=shape), rng.normal(size=(shape[0], 7))
    covariance = Covariance(sp.csr_array(X), 0.5, 0.5)
    cross = Cross(covariance.X, sp.csr_array(Z), 0.7)
    explained, matrix = covariance.explained(cross), covariance.matrix
    monkeypatch.setattr(canonical, "BLOCK", 2)
    covariance = Covariance(X, 0.5, 0.5)
    assert covariance.factored is (method == "factored")
    np.testing.assert_allclose(covariance.matrix, matrix)
    np.testing.assert_allclose(covariance.explained(Cross(X, Z, 0.7)), explained, atol=1e-8)


def test_what_is_cheaper_decides_what_is_factored(monkeypatch):
    X = sp.csr_array(np.diag(np.linspace(1.0, 10.0, 300)))
    assert Covariance(X, 1.0, 0.5).condition() == pytest.approx(1 + 100 / 0.5, rel=0.05)
    assert not Covariance(X, 1.0, 0.5).factored
    assert Covariance(X, 1.0, 1e-3).factored  # ill-conditioned
    assert Covariance(X.toarray(), 1.0, 0.5).factored  # has many entries
    assert not Covariance(sp.csr_array((300, 300)), 1.0, 0.5).factored
    monkeypatch.setattr(canonical, "LARGE", 299)
    assert not Covariance(X, 1.0, 1e-3).factored


def test_directions_end_where_the_views_have_no_more_in_common(method):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(60, 2))
    X, Y = hidden @ rng.normal(size=(2, 20)), hidden @ rng.normal(size=(2, 30))
    found = CanonicalCorrelations(X, Y, 0.1, 1 / 60).solve(Y, 5)
    assert found.A.shape == (20, 2)
    np.testing.assert_allclose(
        found.correlations, reference(X, Y, Y, 0.1, 1 / 60)[0][:2], rtol=1e-6
    )
    assert found.residual < 1e-6


def test_without_anything_in_common_there_are_no_directions(method):
    X, Y = np.eye(20)[:, :10], np.eye(20)[:, 10:]
    found = CanonicalCorrelations(X, Y, 0.5, 1.0).solve(Y, 2)
    assert found.A.shape == (10, 0)
    assert found.correlations.shape == (0,)


def test_a_subspace_of_a_decaying_view_is_almost_all_of_it():
    rng = np.random.default_rng(0)
    n, d1, d2, rank = 200, 80, 12, 30
    left, right = (
        np.linalg.qr(rng.normal(size=(n, d1)))[0],
        np.linalg.qr(rng.normal(size=(d1, d1)))[0],
    )
    X = 10 * left @ np.diag(0.7 ** np.arange(d1)) @ right
    Y = X @ rng.normal(size=(d1, d2)) + 0.1 * rng.normal(size=(n, d2))
    basis = leading_subspace(sp.csr_array(X), rank, random_state=0)
    np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-12)
    assert np.linalg.norm(X - X @ basis @ basis.T) < 2 * 10 * 0.7**rank
    exact = CanonicalCorrelations(X, Y, 0.5, 1 / n).solve(Y, 4)
    close = CanonicalCorrelations(X, Y, 0.5, 1 / n, (basis, None)).solve(Y, 4)
    np.testing.assert_allclose(close.correlations, exact.correlations, rtol=1e-4)
    np.testing.assert_allclose(close.A @ close.B.T, exact.A @ exact.B.T, atol=1e-3)
    assert exact.residual < 1e-9 < close.residual < 1e-2


def test_a_restricted_view_is_solved_exactly_within_its_basis():
    """Directions in the bases are the canonical ones of the projected views."""
    X, Y, Z = views(40, 9, 8)
    P, Q = leading_subspace(X, 4, 0), leading_subspace(Y, 3, 0)
    found = CanonicalCorrelations(X, Y, 0.5, 1.0, (P, Q)).solve(Z, 2)
    rho, A, B, *_ = reference(X @ P, Y @ Q, Z @ Q, 0.5, 1.0)
    np.testing.assert_allclose(found.correlations, rho[:2])
    np.testing.assert_allclose(found.A @ found.B.T, P @ A[:, :2] @ B[:, :2].T @ Q.T, atol=1e-8)


def test_correlations_are_those_of_scikit_learn():
    from sklearn.cross_decomposition import CCA

    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(300, 3))
    X, Y = (hidden @ rng.normal(size=(3, d)) + rng.normal(size=(300, d)) for d in (6, 5))
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    found = CanonicalCorrelations(X, Y, 1e-9, 1 / 300).solve(Y, 3)
    x, y = CCA(n_components=3, tol=1e-10, max_iter=5000).fit_transform(X, Y)
    theirs = [np.corrcoef(x[:, i], y[:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(found.correlations, theirs, atol=1e-6)
