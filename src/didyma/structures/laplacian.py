"""The Laplacian of arcs, whose determinant is the sum over trees, and how it answers to weights.

Weights are (B, n + 1, n + 1), entry [m, h] for head h of word m. The Laplacian L is linear in them,

    L = Σ over arcs   weight × E(arc),

so log det L has the gradient ⟨E(arc), L⁻¹⟩. Without a single root, E of arc (m, h) is 1 at [m, m]
and −1 at [m, h], which the root does not have. With one, the first column has the weights of root
arcs in its place (Koo et al. 2007).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from didyma.structure import Floats

__all__ = ["gradient", "laplacian"]


def laplacian(weights: Floats, single_root: bool) -> Floats:
    """L (B, n, n)."""
    to_words = weights[:, 1:, 1:]
    total = (to_words if single_root else weights[:, 1:]).sum(axis=2)
    matrix: Floats = _diagonal(total) - to_words
    if single_root:
        matrix[:, :, :1] = weights[:, 1:, :1]
    return matrix


def gradient(matrix: Floats, single_root: bool) -> Floats:
    """⟨E(arc), matrix⟩ of each arc, shaped as the weights; their product is the trace."""
    n = matrix.shape[1]
    answer = np.zeros((len(matrix), n + 1, n + 1))
    own = np.diagonal(matrix, axis1=1, axis2=2).copy()
    other = matrix.transpose(0, 2, 1).copy()
    root = own
    if single_root:
        root = matrix[:, 0].copy()
        own[:, :1], other[:, :, :1] = 0.0, 0.0
    answer[:, 1:, 0] = root
    answer[:, 1:, 1:] = own[:, :, None] - other
    return answer


def _diagonal(values: Floats) -> NDArray[np.float64]:
    return values[:, :, None] * np.eye(values.shape[1])
