"""Block-coordinate Frank-Wolfe where a plane is a coefficient for each of its example's rows.

`BCFW` remembers planes as vectors of features. Where an example has far fewer rows than there are
features, as with binned rows, its planes are kept as coefficients a of its rows instead:

    w = P(v),   v = −Σ_i s_i Z_i' Σ_k α_ik a_ik,   s_i = C c_i

with P the projection onto the weights that are allowed (those of monotone columns have a sign). The
dual is Σ_i s_i α_i·b_i − ½‖P(v)‖². As P projects onto a cone, the dual is at most as curved as
without it, and the step that would be exact without it never lowers the dual.
"""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from didyma.learning.bcfw import BCFW, check_simplex, first_plane
from didyma.learning.problem import Cut, Problem, clipped
from didyma.learning.solution import Clock, Solution, check_C
from didyma.stateful import Stateful, array_of

Vector = NDArray[np.float64]

FEW_PLANES, MANY_PLANES = 6, 32  # remembered per example, by the number of examples ...
CHEAP = 320  # ... of which so many may have more than a few between them
SOON = 10  # passes after which visits become thorough: most problems are solved by then


class RowProblem(Problem, Protocol):
    """A problem whose examples are rows that can be swept in their own space."""

    n_rows: int
    weight_signs: Vector | None  # that weights must have

    def table(self, w: Vector) -> Vector:
        """What rows are scored by at w."""
        ...

    def spread(self, values: Vector) -> Vector:
        """A value of each example, for each of its rows."""
        ...

    def sweep(self, order: NDArray[np.int64], *dual: Vector, thorough: bool) -> None:
        """Visit each example of ``order``; see ``sweep_rows`` in the core."""
        ...


@dataclass
class RowDual(Stateful):
    """The planes of each example, as coefficients of its rows and losses, with weights α."""

    planes: Vector  # (rows, slots)
    losses: Vector  # (examples, slots)
    alpha: Vector
    scales: Vector
    gaps: Vector  # of each example when it was last visited; infinite before
    v: Vector
    table: Vector  # of the feasible part of v, ready to score rows by
    C: float
    problem: RowProblem
    visits: int = 0  # of examples, since C was set

    _changing: ClassVar[tuple[str, ...]] = (
        *("planes", "losses", "alpha", "scales", "gaps", "v", "table", "C", "visits"),
    )
    _unbounded: ClassVar[tuple[str, ...]] = ("gaps",)

    def check_state(self) -> None:
        """Refuse α off the simplex, and numbers that are out of range."""
        check_simplex(self.alpha, self.losses.shape)
        array_of(self.scales, "scales", self.scales.shape, low=0.0)
        check_C(self.C)
        if self.visits < 0:
            raise ValueError(f"visits should be from 0 on, but are {self.visits}")

    @classmethod
    def zero(cls, problem: RowProblem, C: float) -> RowDual:
        """Start at w = 0."""
        n = problem.n_examples
        n_planes = max(FEW_PLANES, min(MANY_PLANES, CHEAP // n))
        return cls(
            planes=np.zeros((problem.n_rows, n_planes)),
            losses=np.zeros((n, n_planes)),
            alpha=first_plane(n, n_planes),
            scales=C * problem.weights,
            gaps=np.full(n, np.inf),
            v=np.zeros(problem.n_features),
            table=problem.table(np.zeros(problem.n_features)),
            C=C,
            problem=problem,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Planes and weights are copied, the problem is not."""
        return replace(self, **{name: copy(getattr(self, name)) for name in self._changing})

    @property
    def w(self) -> Vector:
        """The weights."""
        return clipped(self.v, self.problem.weight_signs)

    def move_to(self, C: float) -> None:
        """Go on with another C: planes stay, weights are proportional to C."""
        ratio = C / self.C
        for scaled in (self.scales, self.v, self.table):
            scaled *= ratio
        self.gaps[:] = np.inf
        self.C, self.visits = C, 0

    def shift(self, moves: Vector) -> None:
        """Move the coefficient of row r in every plane by ``moves[r]``; see `PlaneDual.shift`."""
        self.planes += moves[:, None]
        self.v -= self.problem.gather(self.problem.spread(self.scales) * moves)
        self.table = self.problem.table(self.w)
        self.gaps[:] = np.inf

    def set_v(self, v: Vector) -> None:
        """Replace v by the sum over this dual and those of other shards."""
        self.v = v.copy()
        self.table = self.problem.table(self.w)

    def mean(self) -> Cut:
        """The cut of all examples whose direction is −v / C: its bound is the dual objective."""
        return Cut(-self.v / self.C, self.linear_part() / self.C)

    def linear_part(self) -> float:
        """Linear part of the dual objective: Σ s_i α_i·b_i."""
        return float(self.scales @ (self.alpha * self.losses).sum(axis=1))

    def value(self) -> float:
        """Dual objective."""
        return self.linear_part() - 0.5 * float(self.w @ self.w)

    def certify(self, risks: Vector) -> float:
        """Primal objective at w, given each example's risk."""
        return 0.5 * float(self.w @ self.w) + float(self.scales @ risks)


@dataclass(frozen=True)
class RowBCFW(BCFW):
    """`BCFW` with planes in the space of rows."""

    takes_signs: ClassVar[bool] = True

    def _dual(self, problem: Any, C: float, start: Solution | None) -> Any:
        if start is not None and isinstance(start.state, RowDual):
            return deepcopy(start.state)
        return self.begin(problem, C)

    def begin(self, problem: Any, C: float) -> Any:
        """The dual at w = 0."""
        return RowDual.zero(problem, C)

    def _pass(
        self, problem: Any, dual: Any, order: NDArray[np.int64], rng: Any, clock: Clock
    ) -> None:
        with clock.stage("oracle"):
            problem.sweep(
                *(order, dual.planes, dual.losses, dual.alpha, dual.scales),
                *(dual.gaps, dual.v, dual.table),
                thorough=dual.visits >= SOON * problem.n_examples,
            )
        dual.visits += len(order)

    def _settle(self, problem: Any, dual: Any, gaps: Vector) -> bool:
        """Planes of rows are visited with the oracle alone."""
        return False

    @staticmethod
    def _stages(problem: Problem, C: float) -> tuple[list[float], float]:
        return [C], 0.0  # smaller values of C on the way do not pay here
