"""The dual of a structural SVM over the planes that are remembered of each example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma._core.learning import insert, sweep_planes
from didyma.learning.problem import Cut
from didyma.learning.solution import check_C
from didyma.stateful import Stateful, array_of

Vector = NDArray[np.float64]

ROUNDING = 1e-6  # more than weights on a simplex can lose


@dataclass
class PlaneDual(Stateful):
    """Planes g·w + b of each example with weights α on its simplex:  w = −Σ_i s_i Σ_k α_ik g_ik.

    Planes are stored without the scales s_i = C c_i. So for another C the same α stay feasible, and
    only w changes.
    """

    g: Vector  # (examples, slots, features)
    b: Vector
    alpha: Vector
    gram: Vector
    size: NDArray[np.int64]  # slots in use
    scales: Vector
    gaps: Vector  # of each example when it was last looked at; infinite before
    w: Vector
    C: float

    _changing: ClassVar[tuple[str, ...]] = (
        *("g", "b", "alpha", "gram", "size", "scales", "gaps", "w", "C"),
    )
    _growing: ClassVar[tuple[str, ...]] = ("g", "b", "alpha", "gram")
    _unbounded: ClassVar[tuple[str, ...]] = ("gaps",)

    def check_state(self) -> None:
        """Refuse sizes that differ, slots that are not there, and α off the simplex."""
        n, slots = len(self.scales), self.g.shape[1]
        array_of(self.g, "g", (n, slots, len(self.w)))
        array_of(self.b, "b", (n, slots))
        array_of(self.gram, "gram", (n, slots, slots))
        array_of(self.scales, "scales", (n,), low=0.0)
        array_of(self.size, "size", (n,), np.int64, low=1, high=slots)
        check_simplex(self.alpha, (n, slots))
        if self.alpha[np.arange(slots) >= self.size[:, None]].any():
            raise ValueError("alpha should be 0 where there is no plane")
        check_C(self.C)

    @classmethod
    def zero(cls, scales: Vector, n_features: int, n_planes: int, C: float) -> PlaneDual:
        """Start at w = 0: all weight on the plane of the gold output, which is zero."""
        n = len(scales)
        alpha = np.zeros((n, n_planes))
        alpha[:, 0] = 1.0
        return cls(
            np.zeros((n, n_planes, n_features)),
            np.zeros((n, n_planes)),
            alpha,
            np.zeros((n, n_planes, n_planes)),
            np.ones(n, dtype=np.int64),
            scales,
            np.full(n, np.inf),
            np.zeros(n_features),
            C,
        )

    def move_to(self, C: float) -> None:
        """Go on with another C: α stays feasible, w is proportional to C."""
        ratio = C / self.C
        self.scales = self.scales * ratio
        self.w *= ratio
        self.gaps[:] = np.inf
        self.C = C

    def shift(self, moves: Vector) -> None:
        """Move every plane of example i by ``moves[i]``, when its Ψ*_i has moved the other way.

        α stays feasible. The plane of the former Ψ*_i moves too: it is now that of an output like
        any other.
        """
        self.g += moves[:, None, :]
        self.gram = self.g @ self.g.transpose(0, 2, 1)
        self.w -= self.scales @ moves
        self.gaps[:] = np.inf

    @property
    def planes(self) -> tuple[Any, ...]:
        """Arrays in the order in which kernels take them."""
        return self.g, self.b, self.alpha, self.gram, self.size

    @property
    def v(self) -> Vector:
        """−Σ_i s_i Σ_k α_ik g_ik, which is w, as all weights are allowed."""
        return self.w

    def place(self, v: Vector) -> None:
        """Let v be that of this dual and others, which share it."""
        self.w = v.copy()

    def mean(self) -> Cut:
        """The cut of all examples whose direction is −w / C: its bound is the dual objective."""
        return Cut(-self.w / self.C, self.earned() / self.C)

    def earned(self) -> float:
        """The part of the dual objective that is linear: Σ s_i α_i·b_i."""
        return float(self.scales @ (self.alpha * self.b).sum(axis=1))

    def value(self) -> float:
        """Dual objective: Σ s_i α_i·b_i − ½‖w‖²."""
        return self.earned() - float(0.5 * self.w @ self.w)

    def certify(self, risks: Vector) -> float:
        """Primal objective at w, given each example's risk; the gaps are renewed with it."""
        self.gaps[:] = self.scales * (risks - (self.alpha * (self.b + self.g @ self.w)).sum(axis=1))
        return float(0.5 * self.w @ self.w + self.scales @ risks)

    def sweep(self, order: NDArray[np.int64]) -> tuple[float, float]:
        """Optimise the examples in `order` over their planes: (gap before, increase)."""
        return sweep_planes(order, self.planes, self.scales, self.w)

    def add(self, i: int, cut: Cut) -> None:
        """Remember a plane without forgetting any."""
        if self.size[i] == self.g.shape[1]:
            self._double()
        insert(self.planes, i, cut.direction, cut.loss)

    def slack(self, i: int) -> float:
        """Largest remembered plane of an example at w."""
        n = self.size[i]
        return float(np.max(self.b[i, :n] + self.g[i, :n] @ self.w))

    def _double(self) -> None:
        more = self.g.shape[1]
        self.g = np.pad(self.g, ((0, 0), (0, more), (0, 0)))
        self.b = np.pad(self.b, ((0, 0), (0, more)))
        self.alpha = np.pad(self.alpha, ((0, 0), (0, more)))
        self.gram = np.pad(self.gram, ((0, 0), (0, more), (0, more)))


def check_simplex(alpha: Vector, shape: tuple[int, int]) -> None:
    """Raise a ValueError unless each row is on the simplex, up to rounding."""
    array_of(alpha, "alpha", shape, low=-ROUNDING)
    if not np.allclose(alpha.sum(axis=1), 1.0, rtol=0.0, atol=ROUNDING):
        raise ValueError("alpha should add up to 1 for each example")
