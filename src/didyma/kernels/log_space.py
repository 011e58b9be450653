"""Sums and inner products of numbers that are given as logarithms."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["log_dot", "log_plus"]


@jit
def log_dot(a, b):
    """Logarithm of Σ exp(a + b)."""
    highest = -np.inf
    for i in range(a.shape[0]):
        value = a[i] + b[i]
        highest = value if value > highest else highest
    if highest == -np.inf:
        return highest
    total = 0.0
    for i in range(a.shape[0]):
        total += np.exp(a[i] + b[i] - highest)
    return highest + np.log(total)


@jit
def log_plus(a, b):
    """Logarithm of exp(a) + exp(b)."""
    high, low = (a, b) if a > b else (b, a)
    if low == -np.inf or low - high < -40.0:  # too small to be seen
        return high
    return high + np.log1p(np.exp(low - high))
