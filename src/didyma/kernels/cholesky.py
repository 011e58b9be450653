"""A Cholesky factor that grows and shrinks with an active set.

``L[:n, :n]`` is lower triangular with L L' = K; appending and deleting one row cost O(n²).
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["append", "delete", "solve", "solve_lower"]


@jit
def solve_lower(L, n, b):
    """Overwrite b[:n] with L⁻¹ b."""
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * b[j]
        b[i] = total / L[i, i]


@jit
def solve(L, n, b):
    """Overwrite b[:n] with K⁻¹ b."""
    solve_lower(L, n, b)
    for i in range(n - 1, -1, -1):
        b[i] /= L[i, i]
        for j in range(i):
            b[j] -= L[i, j] * b[i]


@jit
def append(L, n, row, schur):
    """Add a row: `row` is L⁻¹ k already, `schur` the squared new diagonal entry."""
    for j in range(n):
        L[n, j] = row[j]
    L[n, n] = np.sqrt(schur)


@jit
def delete(L, n, i):
    """Remove row and column i; Givens rotations restore the triangle."""
    for r in range(i, n - 1):
        for j in range(r + 2):
            L[r, j] = L[r + 1, j]
    for j in range(i, n - 1):
        a, b = L[j, j], L[j, j + 1]
        norm = np.hypot(a, b)
        cos, sin = a / norm, b / norm
        L[j, j] = norm
        L[j, j + 1] = 0.0
        for r in range(j + 1, n - 1):
            a, b = L[r, j], L[r, j + 1]
            L[r, j] = cos * a + sin * b
            L[r, j + 1] = cos * b - sin * a
