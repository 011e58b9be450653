"""Scores that structures are tried on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_scores"]


def random_scores(
    rng: np.random.Generator, shape: int | tuple[int, ...], scale: float = 300.0
) -> NDArray[Any]:
    """Gaussian, tied, partly forbidden, large, positive or all equal."""
    scores = rng.standard_normal(shape)
    kind = rng.integers(6)
    if kind == 1:
        return np.round(scores)
    if kind == 2:
        return np.where(rng.random(shape) < 0.3, -np.inf, scores)
    if kind == 3:
        return scale * scores
    if kind == 4:
        return np.abs(scores)
    return np.zeros(shape) if kind == 5 else scores
