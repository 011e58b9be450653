"""How marginals of trees answer to scores, by the inverse of the Laplacian of arcs.

The Laplacian L, whose determinant is the sum over trees, is linear in the weights of arcs,

    L = Σ over arcs   weight × E(arc),

so log det L has the gradient ⟨E(arc), L⁻¹⟩, and weight × gradient is an arc's marginal. Without a
single root, E of arc (m, h) is 1 at [m, m] and −1 at [m, h], which the root does not have. With
one, the first column has the weights of root arcs in its place (Koo et al. 2007).
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit
from didyma.kernels.rows import axpy, zero

__all__ = ["tree_covariances"]


@jit
def add_arc(matrix, m, h, single_root, weight):
    """Matrix += weight × E(arc), for head h of word m, where 0 is the root."""
    if h == 0:
        matrix[m - 1, 0 if single_root else m - 1] += weight
        return
    if m > 1 or not single_root:
        matrix[m - 1, m - 1] += weight
    if h > 1 or not single_root:
        matrix[m - 1, h - 1] -= weight


@jit
def answer(matrix, m, h, single_root):
    """⟨E(arc), matrix⟩, where the matrix is transposed as an inverse is."""
    if h == 0:
        return matrix[0 if single_root else m - 1, m - 1]
    value = 0.0
    if m > 1 or not single_root:
        value += matrix[m - 1, m - 1]
    if h > 1 or not single_root:
        value -= matrix[h - 1, m - 1]
    return value


@jit
def invert(matrix, order):
    """Invert in place by pivots that are largest in their columns; whether there is an inverse."""
    n = matrix.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        order[k] = best
        pivot = matrix[best, k]
        if not abs(pivot) > 0.0:
            return False
        for j in range(n):
            matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
        matrix[k, k] = 1.0
        for j in range(n):
            matrix[k, j] /= pivot
        for i in range(n):
            if i != k:
                factor = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(n):
                    matrix[i, j] -= factor * matrix[k, j]
    for k in range(n - 1, -1, -1):
        best = order[k]
        for i in range(n):
            matrix[i, k], matrix[i, best] = matrix[i, best], matrix[i, k]
    return True


@jit
def multiply(a, b, out):
    """Out = a b, four rows of b at a time."""
    n = a.shape[0]
    for i in range(n):
        zero(out[i])
        for k in range(0, n - 3, 4):
            w, x, y, z = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            for j in range(n):
                out[i, j] += (w * b[k, j] + x * b[k + 1, j]) + (y * b[k + 2, j] + z * b[k + 3, j])
        for k in range(n - n % 4, n):
            axpy(a[i, k], b[k], out[i])


@jit
def tree_covariances(scores, lengths, single_root, p, q, largest):
    """Covariance of each arc with Σ p over a tree's arcs, added to zeros.

    Scores, p and q are (B, n + 1, n + 1), entry [m, h] for head h of word m. With weights marginals
    move by marginals × p, with L⁻¹ by weights × its product with the change of L. ``largest`` is
    the largest entry of L⁻¹: what cancels in that product is as large as its square.
    """
    longest = scores.shape[1]
    weights = np.empty((longest, longest))
    order = np.empty(longest, np.int64)
    for b in range(scores.shape[0]):
        n = lengths[b]
        L, change, product = np.zeros((n, n)), np.zeros((n, n)), np.empty((n, n))
        for m in range(1, n + 1):
            highest, total = -np.inf, 0.0
            for h in range(n + 1):
                highest = max(highest, scores[b, m, h])
            for h in range(n + 1):
                total += np.exp(scores[b, m, h] - highest)
            for h in range(n + 1):  # a factor of a word's weights is one of its row of L
                weight = np.exp(scores[b, m, h] - highest) / total
                weights[m, h] = weight
                if weight > 0.0:
                    add_arc(L, m, h, single_root, weight)
                    add_arc(change, m, h, single_root, weight * p[b, m, h])
        if not invert(L, order):
            largest[b] = np.inf
            continue
        largest[b] = 0.0
        for m in range(n):
            for h in range(n):
                entry = abs(L[m, h])
                largest[b] = entry if not entry <= largest[b] else largest[b]
        multiply(L, change, product)
        multiply(product, L, change)
        for m in range(1, n + 1):
            for h in range(n + 1):
                weight = weights[m, h]
                if weight > 0.0:
                    along = answer(L, m, h, single_root) * p[b, m, h]
                    q[b, m, h] = weight * (along - answer(change, m, h, single_root))
