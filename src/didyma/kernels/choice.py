"""The best of a few options."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["choice"]


@jit
def choice(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.Choice`: the first best of size[0] options, if there are any."""
    best, highest = -1, -np.inf
    for i in range(size[0]):
        if scores[i] > highest:
            best, highest = i, scores[i]
    parts[0] = best
    if size[0] == 0:
        return 0
    return 1 if best >= 0 else -1
