"""A pool of cuts and the minimiser of the bound they make."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from didyma.learning.problem import Cut
from didyma.learning.solution import Solution, overflow
from didyma.polytope.active_set import Projection, minimise_over_columns
from didyma.stateful import Stateful, array_of, record_of

Vector = NDArray[np.float64]

UNUSED = 50  # a cut that was inactive for so many solutions is forgotten


class CutPool(Stateful):
    """Cuts with their Gram matrix; slot 0 is the zero cut of the gold outputs."""

    _changing: ClassVar[tuple[str, ...]] = ("directions", "losses", "gram", "unused")
    _growing: ClassVar[tuple[str, ...]] = _changing

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self.directions = np.zeros((1, n_features))
        self.losses = np.zeros(1)
        self.gram = np.zeros((1, 1))
        self.unused = np.zeros(1, dtype=np.int64)
        self.solution: Projection | None = None

    @classmethod
    def of(cls, start: Solution | None, n_features: int) -> CutPool:
        """A copy of the cuts of an earlier solution, which hold for any C, or an empty pool."""
        state = None if start is None else start.state
        return deepcopy(state) if isinstance(state, CutPool) else cls(n_features)

    def state(self) -> dict[str, Any]:
        """Cuts, and the weights of the last minimiser."""
        return {**super().state(), "solution": self.solution and vars(self.solution)}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with other cuts."""
        super().restore(state)
        solution = state["solution"]
        self.solution = None if solution is None else self._projection(solution)

    def check_state(self) -> None:
        """Refuse sizes that differ."""
        n = len(self.losses)
        array_of(self.losses, "losses", (max(n, 1),))
        array_of(self.directions, "directions", (n, self.n_features))
        array_of(self.gram, "gram", (n, n))
        array_of(self.unused, "unused", (n,), np.int64, low=0)

    def _projection(self, state: dict[str, Any]) -> Projection:
        """A minimiser over these cuts, or over all but the last."""
        projection, n = record_of(Projection, state), len(self.losses)
        active = array_of(projection.active, "active", (None,), np.int64, low=0, high=n - 1)
        if not 0 < len(active) == len(np.unique(active)):
            raise ValueError("active should be places of different cuts")
        return replace(
            projection,
            active=active,
            weights=array_of(projection.weights, "weights", (len(active),), low=0.0),
            point=array_of(projection.point, "point", (None,)),
        )

    def add(self, cut: Cut) -> None:
        """Remember a cut."""
        column = self.directions @ cut.direction
        corner = [float(cut.direction @ cut.direction)]
        self.gram = np.block([[self.gram, column[:, None]], [column[None, :], np.array([corner])]])
        self.directions = np.vstack([self.directions, cut.direction])
        self.losses = np.append(self.losses, cut.loss)
        self.unused = np.append(self.unused, 0)

    def shift(self, change: Vector) -> None:
        """Move every cut but the zero cut, when the gold features have moved the other way."""
        self.directions[1:] += change
        self.gram = self.directions @ self.directions.T

    def minimise(self, scale: float, offsets: Vector) -> tuple[NDArray[np.int64], Vector]:
        """Active cuts and their weights for columns ``scale · g_k`` and the given offsets."""
        gram = scale**2 * self.gram
        if not np.isfinite(gram).all():
            raise overflow(scale)
        self.solution = minimise_over_columns(
            gram, np.ascontiguousarray(offsets), start=self.solution
        )
        self.unused += 1
        self.unused[self.solution.active] = 0
        return self.solution.active, self.solution.weights

    def minimiser(self, C: float) -> tuple[Vector, float]:
        """The weights that minimise ½‖w‖² + C max_k (g_k·w + b_k), and the minimum."""
        mean = self.combine(*self.minimise(C, C * self.losses))
        w = -C * mean.direction
        return w, C * mean.loss - 0.5 * float(w @ w)

    def forget(self) -> None:
        """Drop cuts that have not been active for a long time."""
        keep = self.unused < UNUSED
        keep[0] = True
        if keep.all() or self.solution is None:
            return
        place = np.cumsum(keep) - 1
        active, point = place[self.solution.active], self.solution.point[keep]
        self.solution = replace(self.solution, active=active, point=point)
        self.directions, self.losses = self.directions[keep], self.losses[keep]
        self.gram, self.unused = self.gram[np.ix_(keep, keep)], self.unused[keep]

    def combine(self, active: NDArray[np.int64], y: Vector) -> Cut:
        """The weighted mean of some cuts, itself a cut."""
        return Cut(y @ self.directions[active], float(y @ self.losses[active]))
