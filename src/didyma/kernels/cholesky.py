"""A Cholesky factor that grows and shrinks with an active set.

``L[:n, :n]`` is lower triangular with L L' = K; appending and deleting one row cost O(n²). The two
rows of ``Z`` hold L⁻¹ 1 and L⁻¹ θ, which grow and shrink along with it: what it takes to minimise
½ y'Ky − θ'y over all y of a given sum.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit, jit_sum

__all__ = ["append", "delete", "minimise", "partial_dot", "solve_lower", "solve_upper"]


@jit_sum
def partial_dot(a, b, n):
    """Sum of a[j] b[j] over the first n."""
    total = 0.0
    for j in range(n):
        total += a[j] * b[j]
    return total


@jit
def solve_lower(L, n, b):
    """Overwrite b[:n] with L⁻¹ b."""
    for i in range(n):
        b[i] = (b[i] - partial_dot(L[i], b, i)) / L[i, i]


@jit
def solve_upper(L, n, b):
    """Overwrite b[:n] with L'⁻¹ b."""
    for i in range(n - 1, -1, -1):
        value = b[i] / L[i, i]
        b[i] = value
        for j in range(i):
            b[j] -= L[i, j] * value


@jit
def append(L, Z, n, row, schur, theta):
    """Add a row: `row` is L⁻¹ k, `schur` the squared new diagonal entry, θ its right-hand side."""
    diagonal = np.sqrt(schur)
    for j in range(n):
        L[n, j] = row[j]
    L[n, n] = diagonal
    Z[0, n] = (1.0 - partial_dot(row, Z[0], n)) / diagonal
    Z[1, n] = (theta - partial_dot(row, Z[1], n)) / diagonal


@jit
def delete(L, Z, n, i):
    """Remove row and column i; Givens rotations restore the triangle, and turn Z along."""
    for r in range(i, n - 1):
        for j in range(r + 2):
            L[r, j] = L[r + 1, j]
    for j in range(i, n - 1):
        a, b = L[j, j], L[j, j + 1]
        norm = np.sqrt(a * a + b * b)
        cos, sin = a / norm, b / norm
        L[j, j] = norm
        for r in range(j + 1, n - 1):
            a, b = L[r, j], L[r, j + 1]
            L[r, j] = cos * a + sin * b
            L[r, j + 1] = cos * b - sin * a
        for k in range(Z.shape[0]):
            a, b = Z[k, j], Z[k, j + 1]
            Z[k, j] = cos * a + sin * b
            Z[k, j + 1] = cos * b - sin * a


@jit
def minimise(L, Z, n, total, y):
    """Y = argmin ½ y'Ky − θ'y over y with the given sum; returns the multiplier of the sum."""
    t = (partial_dot(Z[0], Z[1], n) - total) / partial_dot(Z[0], Z[0], n)
    for i in range(n):
        y[i] = Z[1, i] - t * Z[0, i]
    solve_upper(L, n, y)
    return t
