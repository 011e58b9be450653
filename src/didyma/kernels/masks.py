"""How far scores reach, when −∞ is left out of account."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["extent"]


@jit
def extent(values):
    """Highest (−∞ if none) and lowest (∞) finite value and sum of the positive ones, per row."""
    highest, lowest, positive = (
        np.full(values.shape[0], -np.inf),
        np.full(values.shape[0], np.inf),
        np.zeros(values.shape[0]),
    )
    for b in range(values.shape[0]):
        high, low, total = -np.inf, np.inf, 0.0
        row = values[b]
        for i in range(row.shape[0]):
            value = row[i]
            high = value if value > high else high
            low = value if -np.inf < value < low else low
            total += value if value > 0.0 else 0.0
        highest[b], lowest[b], positive[b] = high, low, total
    return highest, lowest, positive
