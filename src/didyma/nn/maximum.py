"""What a maximisation finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.polytope.distributions import Distributions
from didyma.structure import Floats

__all__ = ["Maximum"]


class Maximum(NamedTuple):
    """A value for each instance (B,) and its gradient: parts u (B, d), additional parts v (B, f).

    ``solution`` knows the second derivative; a CRF has none.
    """

    value: Floats
    u: Floats
    v: Floats
    solution: Distributions | None

    def spread(self, counts: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Value, u and v, with zeros for instances that do not count."""
        if counts.all():
            return self.value, self.u, self.v

        def spread(values: Floats) -> Floats:
            out = np.zeros((len(counts), *values.shape[1:]))
            out[counts] = values
            return out

        return spread(self.value), spread(self.u), spread(self.v)
