"""Milp and Flow: mixed-integer programmes, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma.errors import DataError, warn
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.solvers.graphs import edges_of, nodes_of
from didyma.structure import Structure
from didyma.structures.batches import check_one_each
from didyma.structures.layout import Floats


class LimitedSolver(Structure):
    """A structure whose argmax has a time limit, and then a gap.

    With an argmax that is g short of the best output, a loss is up to g too low, and the true gap
    of SparseMAP is up to g larger than the one that is reported.

    Attributes:
        worst_gap: the largest difference so far between the bound on the best score and the score
            of the answer; 0 if every answer was proved to be the best.
        n_inexact: answers that were not proved.
    """

    reads_infinity: ClassVar[bool] = True

    worst_gap: float = 0.0
    n_inexact: int = 0
    time_limit: float | None

    def _limit(self, time_limit: float | None) -> None:
        if time_limit is not None and not time_limit > 0:
            raise DataError(f"expected seconds above 0, found {time_limit}", field="time_limit")
        self.time_limit = time_limit

    def _note(self, gap: float) -> None:
        """Remember an answer that was not proved to be the best, and warn of it."""
        self.n_inexact += 1
        self.worst_gap = max(self.worst_gap, gap)
        warn(
            f"{type(self).__name__} stopped after {self.time_limit:g} seconds with an output that "
            f"may be {gap:.2g} short of the best: what is computed from it is as inexact",
            ToleranceWarning,
        )

    def _refuse_contradictions(self, forbidden: Any) -> None:
        """No output is possible, and that is not because parts are forbidden."""
        if not forbidden:
            raise DataError(f"{self!r} has no output: its constraints contradict each other")

    def _late(self) -> DataError:
        return DataError(
            f"{self!r} found no output within {self.time_limit:g} seconds", field="time_limit"
        )


LARGEST_COST = 1e4  # HiGHS stops at an absolute gap of 1e-6, so costs are made large against it
LIMIT, INFEASIBLE = 1, 2  # statuses of scipy.optimize.milp


class Milp(LimitedSolver):
    """Points x with lower ≤ A x ≤ upper, by the mixed-integer solver HiGHS that comes with SciPy.

    The first ``n_parts`` variables are 0 or 1, and are the parts: scores (B, n_parts), outputs
    boolean of the same shape. Further variables only take part in the constraints; two points that
    differ in these alone are one output. A variable that has a cost is a part, and where the cost
    is known it is added to the score.

    Exact, up to 1e-10 of the largest score, unless a time limit is reached.

    >>> import numpy as np
    >>> knapsack = Milp([[3, 2, 2]], upper=[4])
    >>> knapsack.predict([4.0, 2.5, 2.0])
    array([False,  True,  True])
    >>> float(knapsack.relaxation([4.0, 2.5, 2.0])[0])  # with fractions of items
    5.25

    An instance may have its own ``A``, ``upper`` or ``lower``, given by keyword as `Structure.data`
    are:

    >>> knapsack.predict([[4.0, 2.5, 2.0]] * 2, upper=[[4], [5]])
    array([[False,  True,  True],
           [ True,  True, False]])

    Args:
        A: coefficients (m, n), an array or a sparse matrix of SciPy.
        upper: (m,), or one number; None for no upper bound.
        lower: (m,), or one number; None for no lower bound.
        n_parts: how many variables are parts; None means all.
        integrality: of all variables as in `scipy.optimize.milp`: 1 for whole numbers; by default
            the parts are, and the others are not.
        bounds: of all variables, a pair of arrays or numbers; 0 and infinity by default. Parts stay
            between 0 and 1.
        time_limit: seconds for an argmax; see `worst_gap`.
    """

    data: ClassVar[tuple[str, ...]] = ("A", "upper", "lower")
    concurrent: ClassVar[bool] = True  # HiGHS releases the GIL

    def __init__(
        self,
        A: Any,
        upper: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        *,
        n_parts: int | None = None,
        integrality: ArrayLike | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.A = A if hasattr(A, "tocsr") else np.asarray(A, np.float64)
        if self.A.ndim != 2:
            raise DataError(f"expected two axes, found shape {self.A.shape}", field="A")
        if upper is None and lower is None:
            raise DataError("expected a bound of A x: upper, lower or both", field="upper")
        self.upper, self.lower = upper, lower
        n = self.A.shape[1]
        self.n_parts = n if n_parts is None else n_parts
        if not 0 < self.n_parts <= n:
            raise DataError(f"expected 1 to {n}, found {n_parts}", field="n_parts")
        is_part = np.arange(n) < self.n_parts
        whole = is_part if integrality is None else np.broadcast_to(integrality, n)
        if not np.isin(whole, (0, 1)).all() or not (whole[is_part] == 1).all():
            raise DataError("expected 0 or 1, and 1 for each part", field="integrality")
        self.integrality = whole.astype(np.int64)
        low, high = (0.0, np.inf) if bounds is None else bounds
        low, high = (np.broadcast_to(one, n).astype(np.float64) for one in (low, high))
        self.low = np.where(is_part, np.maximum(low, 0.0), low)
        self.high = np.where(is_part, np.minimum(high, 1.0), high)
        self._limit(time_limit)

    def argmax(self, scores: Floats, **instance: Any) -> NDArray[np.int64] | None:
        """Parts of the best point, or None where all have a part of score −∞."""
        result = self._solve(scores, instance, whole=True)
        if result.status == INFEASIBLE:
            self._refuse_contradictions((scores == -np.inf).any())
            return None
        if result.x is None:
            raise self._late()
        parts = np.flatnonzero(result.x[: self.n_parts] > 0.5)
        if result.status == LIMIT:
            self._note(max(result.bound - float(scores[parts].sum()), 0.0))
        return parts

    def relaxation(self, scores: ArrayLike, **instance: Any) -> tuple[Floats, Floats]:
        """The highest score (B,) where parts may be fractions, and these fractions (B, n_parts).

        It bounds that of the best output, and where the fractions are 0 and 1 they are the output.
        """
        layout = self.lay_out(scores, **instance)
        values, points = np.zeros(len(layout)), np.zeros(layout.scores.shape)
        for b, row in enumerate(layout.scores):
            result = self._solve(row, layout.data_of(b), whole=False)
            if result.x is None:
                raise DataError(f"instance {b}: no point is feasible", field="scores")
            points[b] = result.x[: self.n_parts]
            values[b] = points[b] @ np.where(points[b] == 0, 0.0, row)
        return self._as_given(values, scores), self._as_given(points, scores)

    def _solve(self, scores: Floats, instance: Any, whole: bool) -> Any:
        """What `scipy.optimize.milp` finds, with the bound on the score as ``bound``."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        check_one_each(scores.shape, self.n_parts, "part")
        A, upper, lower = (instance.get(name, getattr(self, name)) for name in self.data)
        constraint = LinearConstraint(
            A, -np.inf if lower is None else lower, np.inf if upper is None else upper
        )
        forbidden = scores == -np.inf
        finite = np.where(forbidden, 0.0, scores)
        scale = LARGEST_COST / (np.abs(finite).max(initial=0.0) or LARGEST_COST)
        costs, high = np.zeros(len(self.low)), self.high.copy()
        costs[: self.n_parts] = -scale * finite
        high[: self.n_parts][forbidden] = 0.0
        if (self.low > high).any():  # a part that must be there is forbidden
            return _Nothing
        limit = {} if self.time_limit is None else {"time_limit": self.time_limit}
        result = milp(
            costs,
            integrality=self.integrality if whole else 0,
            bounds=Bounds(self.low, high),
            constraints=constraint,
            options={"mip_rel_gap": 0.0, **limit},
        )
        if result.status not in (0, LIMIT, INFEASIBLE):
            raise DataError(f"HiGHS says: {result.message}", field="scores")
        dual = getattr(result, "mip_dual_bound", None)
        result.bound = np.inf if dual is None else -dual / scale
        return result

    def __repr__(self) -> str:
        rows, columns = self.A.shape
        return f"{type(self).__name__}({rows} constraints, {columns} variables)"


class _Nothing:
    status, x = INFEASIBLE, None


class Flow(Milp):
    """Flows of 0 or 1 along directed edges: what leaves a node less what enters it is its supply.

    Scores (B, n_edges), outputs boolean of the same shape. Scores may have any sign: a flow may run
    in circles where that is worth it. Its linear programme has whole solutions only, so that HiGHS
    never branches. With supplies 1 and −1 of two nodes it is a path between them, and such circles.

    >>> flow = Flow([("a", "b"), ("a", "c"), ("b", "c")], {"a": 2, "c": -2})
    >>> flow.predict([-1.0, -1.0, -1.0])
    array([ True,  True,  True])

    Args:
        graph: edges as pairs of nodes, or a graph of networkx.
        supply: units that nodes supply (negative: demand); 0 for nodes that are not named.
        time_limit: as for `Milp`.
    """

    def __init__(
        self, graph: Any, supply: Mapping[Hashable, int], time_limit: float | None = None
    ) -> None:
        from scipy.sparse import csr_array

        self.edges = edges_of(graph)
        number = {node: i for i, node in enumerate(nodes_of(self.edges))}
        if missing := [node for node in supply if node not in number]:
            raise DataError(f"no edge has the node {missing[0]!r}", field="supply")
        if total := sum(supply.values()):
            raise DataError(f"expected supplies that add up to 0, found {total}", field="supply")
        n = len(self.edges)
        rows = [number[a] for a, _ in self.edges] + [number[b] for _, b in self.edges]
        values = np.repeat([1.0, -1.0], n)
        A = csr_array((values, (rows, [*range(n)] * 2)), shape=(len(number), n))
        balance = np.array([float(supply.get(node, 0)) for node in number])
        super().__init__(A, balance, balance, time_limit=time_limit)
