"""What a maximisation finds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.execution import on_threads, shards
from didyma.polytope.distributions import Distributions
from didyma.structures.compiled import CompiledStructure
from didyma.structures.layout import Floats, Layout


@dataclass(frozen=True)
class Gibbs:
    """Where the derivative of a CRF's marginals is taken: p(output) ∝ exp(score / temperature).

    The layout has scores over the temperature, and no parts that count for nothing.
    """

    structure: Any
    layout: Layout
    temperature: float

    def select(self, b: NDArray[np.int64]) -> Gibbs:
        """Some instances, in this order; one may come several times."""
        return replace(self, layout=self.layout.select(b))

    def apply_jacobian(self, p: Floats, p_extra: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]:
        """J [p; p_extra], row by row."""
        q, q_extra = self._along("covariances", n_jobs, p, p_extra)
        return q / self.temperature, q_extra / self.temperature

    def second_derivative(
        self, p: Floats, p_extra: Floats, r: Floats, r_extra: Floats, n_jobs: int = 1
    ) -> tuple[Floats, Floats]:
        """How J [p; p_extra] moves along r, row by row."""
        t, t_extra = self._along("third_cumulants", n_jobs, p, p_extra, r, r_extra)
        return t / self.temperature**2, t_extra / self.temperature**2

    def _along(self, name: str, n_jobs: int, *directions: Floats) -> tuple[Floats, Floats]:
        method = getattr(self.structure, name, None)
        if method is None:
            raise NotImplementedError(
                f"{type(self.structure).__name__} has no method {name}, which derivatives of "
                "a CRF's marginals need; those of SparseMAP need only an argmax"
            )
        if not isinstance(self.structure, CompiledStructure):
            n_jobs = 1  # nobody has said that it may be asked by several threads

        def move(b: slice) -> Any:
            return method(self.layout.select(b), *(direction[b] for direction in directions))

        moved, moved_extra = zip(*on_threads(n_jobs)(move, shards(len(self.layout), n_jobs)))
        return np.concatenate(moved), np.concatenate(moved_extra)


class Maximum(NamedTuple):
    """A value for each instance (B,) and its gradient: parts u (B, d), additional parts v (B, f).

    ``solution`` knows the second derivative.
    """

    value: Floats
    u: Floats
    v: Floats
    solution: Distributions | Gibbs

    def spread(self, counts: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Value, u and v, with zeros for instances that do not count."""

        def spread(values: Floats) -> Floats:
            out = np.zeros((len(counts), *values.shape[1:]))
            out[counts] = values
            return out

        return spread(self.value), spread(self.u), spread(self.v)
