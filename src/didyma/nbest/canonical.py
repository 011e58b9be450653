"""Directions along which two views agree: regularised canonical correlations, sparse and exact.

Rows of X (n, d1), Y (n, d2) and Z (n, d2) belong together. With s = 1/n or 1 and 0 < τ ≤ 1 let

    Cxx = (1 − τ) s X'X + τ I,   Cyy = (1 − τ) s Y'Y + τ I,   Cxy = s X'Z;

wanted are the solutions of Cxy b = ρ Cxx a, Cxy' a = ρ Cyy b of largest ρ, scaled such that
A'CxxA = B'CyyB = I. With Z = Y this is canonical correlation analysis. Without a it reads

    Cxy' Cxx⁻¹ Cxy b = ρ² Cyy b,   a = Cxx⁻¹ Cxy b / ρ,

a symmetric problem of the second view, where Cxx⁻¹ Cxy is a ridge regression of Z on X (and without
b one of the first, where that is the smaller). Neither X nor Y is ever made dense, and no inverse
is approximated: see `Covariance`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from didyma.checkpoints import remember
from didyma.data.matrix import Matrix, dense
from didyma.stateful import array_of, record_of

Array = NDArray[np.float64]

LARGE = 16_000  # most dimensions that are ever factored: 2 GB
SMALL = 2_000  # most dimensions of an eigenproblem that is solved as a whole
TOLERANCE = 1e-10
MAX_ITERATIONS = 5_000
BLOCK = 256  # columns worked on at a time
LANCZOS_TOLERANCE = 1e-8
# Lanczos works on ρ² + SHIFT × (about the largest ρ²), lest it seek relative precision of zeros.
SHIFT = 0.01
POWERS = 3
NEGLIGIBLE = 1e-9  # of the largest ρ²: such directions are noise


def transpose(X: Matrix) -> Matrix:
    """X' such that products with it are fast."""
    return sp.csr_array(X.T) if sp.issparse(X) else X.T


class Covariance:
    """C = c X'X + τ I of a view X (n, d), to multiply and to divide by.

    Of X'X and XX' the smaller is factored by Cholesky where that makes a solution cheaper than by
    conjugate gradients, which X being sparse and C well-conditioned favour: never if X is dense.
    These stop at a relative residual of 1e-10. A dense X of more rows than columns is read once:
    from then on C itself, which is smaller, is multiplied by.
    """

    def __init__(self, X: Matrix, c: float, tau: float) -> None:
        self.X, self.c, self.tau = X, c, tau
        self.XT = transpose(X)
        self.dual = X.shape[0] < X.shape[1]
        m = min(X.shape)
        self.explicit = not (sp.issparse(X) or self.dual) and m <= LARGE
        self.factored = m <= LARGE and (
            not sp.issparse(X) or m**2 <= 2 * self.iterations() * X.size
        )

    def iterations(self) -> float:
        """About how many iterations conjugate gradients need."""
        return float(np.sqrt(self.condition()) * np.log(2 / TOLERANCE) / 4)

    def condition(self, iterations: int = 20) -> float:
        """The condition number of C if it were of full rank, by power iteration."""
        v = np.ones(self.X.shape[1])
        largest = 0.0
        for _ in range(iterations):
            v = self.XT @ (self.X @ v)
            largest = float(np.linalg.norm(v))
            if largest == 0:
                return 1.0
            v = v / largest
        return 1.0 + self.c * largest / self.tau

    def product(self, V: Array) -> Array:
        """C V."""
        return self.matrix @ V if self.explicit else _product(self.X, self.XT, self.c, self.tau, V)

    def solve(self, V: Array) -> Array:
        """C⁻¹ V."""
        if not self.factored:
            return _conjugate_gradients(self.product, V)
        if self.dual:  # Woodbury, with nothing left out
            return (V - self.c * (self.XT @ self._divide(self.X @ V))) / self.tau
        return self._divide(V)

    def regress(self, cross: Cross, B: Array) -> Array:
        """C⁻¹ Cxy B, the coefficients of a ridge regression of s Z B on X."""
        if self.factored and self.dual:
            return self.XT @ self._divide(cross.scale * (cross.Z @ B))
        return self.solve(cross.product(B))

    def explained(self, cross: Cross) -> Array:
        """Cxy' C⁻¹ Cxy."""
        if not (self.factored and self.dual):
            right = cross.matrix
            if not self.factored:
                return right.T @ self.solve(right)
            factor, lower = self._factor
            half = scipy.linalg.solve_triangular(factor, right, lower=lower, check_finite=False)
            return half.T @ half
        explained = np.empty((cross.Z.shape[1], cross.Z.shape[1]))
        for start in range(0, len(explained), BLOCK):
            columns = slice(start, start + BLOCK)
            right = self._divide(cross.scale * dense(cross.ZT[columns]).T)
            explained[:, columns] = cross.transposed(self.XT @ right)
        return explained

    @cached_property
    def matrix(self) -> Array:
        """C itself."""
        return self._gram(self.XT, self.X)

    def _divide(self, V: Array) -> Array:
        return scipy.linalg.cho_solve(self._factor, V, check_finite=False)

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        if self.explicit:
            gram = self.matrix
        else:
            gram = self._gram(self.X, self.XT) if self.dual else self._gram(self.XT, self.X)
        # The transpose, which is the same, lies in memory as LAPACK wants it.
        return scipy.linalg.cho_factor(
            gram.T, lower=True, overwrite_a=not self.explicit, check_finite=False
        )

    def _gram(self, left: Matrix, right: Matrix) -> Array:
        if not sp.issparse(left):
            gram = left @ right  # which, right being its transpose, is half the work
        else:
            gram = np.empty((left.shape[0], left.shape[0]))
            for start in range(0, len(gram), BLOCK):
                gram[start : start + BLOCK] = dense(left[start : start + BLOCK] @ right)
        gram *= self.c
        gram[np.diag_indices(len(gram))] += self.tau
        return gram


def _product(X: Matrix, XT: Matrix, c: float, tau: float, V: Array) -> Array:
    """(c X'X + τ I) V."""
    return c * (XT @ (X @ V)) + tau * V


class Cross:
    """Cxy = s X'Z of two views, to multiply by; a matrix if the views are dense and larger."""

    def __init__(self, X: Matrix, Z: Matrix, scale: float) -> None:
        self.X, self.Z, self.scale = X, Z, scale
        self.XT, self.ZT = transpose(X), transpose(Z)
        is_dense = not (sp.issparse(X) or sp.issparse(Z))
        self.explicit = is_dense and X.shape[0] >= max(X.shape[1], Z.shape[1])

    @cached_property
    def matrix(self) -> Array:
        """Cxy itself."""
        return self.scale * dense(self.XT @ self.Z)

    def product(self, B: Array) -> Array:
        """Cxy B."""
        return self.matrix @ B if self.explicit else self.scale * (self.XT @ (self.Z @ B))

    def transposed(self, A: Array) -> Array:
        """Cxy' A."""
        return self.matrix.T @ A if self.explicit else self.scale * (self.ZT @ (self.X @ A))


def _conjugate_gradients(product: Callable[[Array], Array], right: Array) -> Array:
    """Solve C V = right for a positive definite C, each column by itself."""
    columns = right.reshape(len(right), -1)
    solution = np.zeros_like(columns)
    for start in range(0, columns.shape[1], BLOCK):
        block = slice(start, start + BLOCK)
        solution[:, block] = _solve_block(product, columns[:, block])
    return solution.reshape(right.shape)


def _solve_block(product: Callable[[Array], Array], right: Array) -> Array:
    V = np.zeros_like(right)
    residual = right.copy()
    direction = right.copy()
    square = _squares(residual)
    goal = TOLERANCE**2 * square
    for _ in range(MAX_ITERATIONS):
        active = square > goal
        if not active.any():
            break
        image = product(direction)
        curvature = np.sum(direction * image, axis=0)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=active)
        V += step * direction
        residual -= step * image
        new = _squares(residual)
        direction *= np.divide(new, square, out=np.zeros_like(new), where=active)
        direction += residual
        square = new
    return V


def _squares(V: Array) -> Array:
    return np.asarray(np.sum(V * V, axis=0))


def leading_subspace(X: Matrix, rank: int, random_state: int, passes: int = 2) -> Array:
    """Orthonormal columns (d, rank) that span about the leading right singular vectors of X.

    There are fewer columns if X has fewer rows or columns, and then nothing is left out.

    A random sketch with power iterations (Halko, Martinsson and Tropp 2011).
    """
    XT = transpose(X)
    basis = np.random.default_rng(random_state).standard_normal((X.shape[1], min(rank, *X.shape)))
    for _ in range(passes):
        basis = np.linalg.qr(XT @ (X @ basis))[0]
    return basis


@dataclass(frozen=True, eq=False)
class Directions:
    """Columns of A (d1, k) and B (d2, k) with their correlations ρ, largest first.

    ``residual`` is how far they are from solving both equations, relative to what these balance.
    """

    A: Array
    B: Array
    correlations: Array
    residual: float

    def prefix(self, k: int) -> Directions:
        """The first k directions: those of a smaller model, as each is found without the others."""
        return Directions(self.A[:, :k], self.B[:, :k], self.correlations[:k], self.residual)


class CanonicalCorrelations:
    """The equations of two views for one τ; all that does not depend on Z is computed once.

    ``bases`` are orthonormal columns that a view is restricted to, or None for all of its space;
    the directions are the exact solution among those in the bases.

    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> found = CanonicalCorrelations(X, X[:, :2], tau=1e-6, scale=1 / 50).solve(X[:, :2], 2)
    >>> found.correlations.round(3)
    array([1., 1.])
    """

    def __init__(
        self,
        X: Matrix,
        Y: Matrix,
        tau: float,
        scale: float,
        bases: tuple[Array | None, Array | None] = (None, None),
    ) -> None:
        self.X, self.Y, self.tau, self.scale, self.bases = X, Y, tau, scale, bases
        c = (1.0 - tau) * scale
        self._inputs, self._outputs = (
            Covariance(_restricted(view, basis), c, tau) for view, basis in zip((X, Y), bases)
        )

    def solve(self, Z: Matrix, k: int) -> Directions:
        """The k leading directions, or as many as there are."""
        name = f"{k} directions of {Z.shape[0]} rows at tau={self.tau}"
        sizes = self.X.shape[1], Z.shape[1]

        def check(saved: dict[str, Any]) -> None:
            directions = record_of(Directions, saved)
            (n,) = array_of(directions.correlations, "correlations", (None,), low=0.0).shape
            for name, array, size in zip("AB", (directions.A, directions.B), sizes):
                array_of(array, name, (size, n))

        return Directions(**remember(name, lambda: vars(self._solve(Z, k)), check))

    def _solve(self, Z: Matrix, k: int) -> Directions:
        cross = Cross(self._inputs.X, _restricted(Z, self.bases[1]), self.scale)
        first, second = cross.X.shape[1], cross.Z.shape[1]
        if first <= min(second, SMALL):
            explained = cross.matrix @ self._outputs.solve(cross.matrix.T)
            square, A = _significant(*_leading(explained, self._inputs.matrix, k))
            B = self._outputs.solve(cross.matrix.T @ A) / np.sqrt(square)
        else:
            square, B = _significant(*self._second_view(cross, k))
            A = self._inputs.regress(cross, B) / np.sqrt(square)
        A, B = (V if basis is None else basis @ V for V, basis in zip((A, B), self.bases))
        signs = np.where(B[np.argmax(abs(B), axis=0), np.arange(len(square))] < 0, -1.0, 1.0)
        A, B, correlations = A * signs, B * signs, np.sqrt(square)
        if any(basis is not None for basis in self.bases):
            cross = Cross(self.X, Z, self.scale)
        return Directions(A, B, correlations, self._residual(cross, A, B, correlations))

    def _second_view(self, cross: Cross, k: int) -> tuple[Array, Array]:
        """Solve Cxy' Cxx⁻¹ Cxy b = ρ² Cyy b.

        Either all of the second view is regressed on the first, or by Lanczos' method one vector
        after the other, about 2k of them; with a large factor at hand the former is cheaper.
        """
        d: int = cross.Z.shape[1]
        k = min(k, d)
        every = min(*self._inputs.X.shape, SMALL) if self._inputs.factored else 0
        if d <= max(4 * k, every):
            return _leading(self._inputs.explained(cross), self._outputs.matrix, k)
        start = np.random.default_rng(0).standard_normal(d)
        size = 0.0

        def left(b: Array) -> Array:
            explained = cross.transposed(self._inputs.regress(cross, b))
            return explained + SHIFT * size * self._outputs.product(b)

        for _ in range(POWERS):
            start = self._outputs.solve(left(start))
            size = float(np.linalg.norm(start))
            if size == 0:
                return np.zeros(0), np.zeros((d, 0))
            start /= size
        functions = (left, self._outputs.product, self._outputs.solve)
        A, M, Minv = (LinearOperator((d, d), matvec=f, dtype=float) for f in functions)
        square, B = eigsh(A, k, M=M, Minv=Minv, v0=start, tol=LANCZOS_TOLERANCE)
        return square - SHIFT * size, B

    def _residual(self, cross: Cross, A: Array, B: Array, correlations: Array) -> float:
        """Of the whole problem, so that it also shows what restricting the views has cost."""
        sides = (
            (cross.product(B), self._covariance_product(0, A) * correlations),
            (cross.transposed(A), self._covariance_product(1, B) * correlations),
        )
        return max(
            float(np.linalg.norm(left - right) / max(np.linalg.norm(left), np.finfo(float).tiny))
            for left, right in sides
        )

    def _covariance_product(self, view: int, V: Array) -> Array:
        """Cxx V or Cyy V, of the whole view."""
        if self.bases[view] is None:
            return (self._inputs, self._outputs)[view].product(V)
        X = (self.X, self.Y)[view]
        return _product(X, X.T, (1.0 - self.tau) * self.scale, self.tau, V)


def _leading(left: Array, C: Array, k: int) -> tuple[Array, Array]:
    """The largest ρ², at most k, and the vectors of left v = ρ² C v."""
    d = len(C)
    return scipy.linalg.eigh((left + left.T) / 2, C, subset_by_index=(max(0, d - k), d - 1))


def _significant(square: Array, vectors: Array) -> tuple[Array, Array]:
    """The solutions whose ρ² is not negligible, largest first."""
    order = np.argsort(-square)
    order = order[square[order] > NEGLIGIBLE * square.max(initial=0.0)]
    return square[order], vectors[:, order]


def _restricted(view: Matrix, basis: Array | None) -> Matrix:
    return view if basis is None else view @ basis
