"""Sums of coefficients over the crossed levels of all pairs of columns."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["cross"]

BLOCK = 64  # rows whose levels stay in the nearest cache while all columns meet them


@jit
def cross(levels, rows, coef, n_levels, out):
    """out[j, a, k, b] += Σ coef[r] over rows at level a of column j and level b of k, for j < k.

    ``levels`` count from 0.
    """
    n_columns = levels.shape[1]
    width = np.uint32(n_levels * n_columns)
    flat = out.reshape(-1)
    for start in range(0, rows.shape[0], BLOCK):
        stop = min(start + BLOCK, rows.shape[0])
        for j in range(n_columns - 1):
            for r in range(start, stop):
                c = coef[r]
                if c != 0.0:
                    own = levels[rows[r]]
                    base = np.uint32(n_levels * j + own[j]) * width
                    for k in range(j + 1, n_columns):
                        flat[base + np.uint32(n_levels * k) + np.uint32(own[k])] += c
