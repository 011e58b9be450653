"""Local polytopes of binary variables, by prices.

Let u_i be the probability that variable i is true. Of a table over two variables only one number
couples them, c = p₁₁ + p₀₀ − p₁₀ − p₀₁, and what it adds is c · min(u_i, u_j) at best if c > 0, and
c · max(0, u_i + u_j − 1) otherwise. So the objective is that of each variable alone, less |c| for
each unit by which a row is broken,

    u_j − u_i ≤ 0  (c > 0),    u_i + u_j ≤ 1  (c < 0),

and constraints are rows that cannot be broken. At given prices of the rows each variable is
optimal by itself; `_prices` finds the prices. They bound the objective from above, so that
u is certified; nothing is factored, and nothing but u and the prices is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma._core.prices import (
    expand_states,
    minimise,
    pair_factors,
    reduce_states,
    respond,
    rows_at,
)
from didyma.polytope.point import LocalPoint, is_optimal
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.layout import Floats
from didyma.structures.logic import Cardinality

N_ROUNDS = 2000
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]
CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
SIGNS = np.array([1.0, -1.0, -1.0, 1.0])  # of a table's corners, in what couples its variables
# The row that forbids a corner of the table, and the probability of (1, 1) there.
FORBIDS = ((-1.0, -1.0, -1.0), (-1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 1.0))
BOTH = ((1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0))


def scatter(into: Floats, index: Integers, values: Floats) -> None:
    """Add values (B, …) to the columns that the index (…) names, some of them several times."""
    place: Any = (slice(None), index)
    np.add.at(into, place, values)


@dataclass(frozen=True)
class CouplingRows:
    """Constraints g·u ≤ b over variables, in compressed rows, with the range of their prices.

    The first ones are of pairs: their coefficients, bounds and prices depend on the scores.
    """

    n_pairs: int
    start: Integers
    index: Integers
    g: Floats
    b: Floats
    lower: Floats
    upper: Floats

    @classmethod
    def of(cls, edges: Integers, logic: Sequence[Cardinality]) -> CouplingRows:
        """The rows of edges (E, 2) and constraints."""
        index, g = [*edges], [np.zeros(2) for _ in edges]
        b, lower = [0.0] * len(edges), [0.0] * len(edges)
        for one in logic:
            sign, shift = np.where(one.negated, -1.0, 1.0), int(one.negated.sum())
            low, high = max(one.low, 0), min(one.high, len(sign))
            bounds = [(sign, high - shift)] if high < len(sign) or low == high else []
            bounds += [(-sign, shift - low)] if 0 < low < high else []
            for coefficients, bound in bounds:
                index.append(np.array(one.indices))
                g.append(coefficients)
                b.append(float(bound))
                lower.append(-np.inf if low == high else 0.0)
        upper = np.where(np.arange(len(b)) < len(edges), 0.0, np.inf)
        start = np.cumsum([0, *map(len, index)], dtype=np.int64)
        flat = np.concatenate([np.zeros(0, np.int64), *index]).astype(np.int64)
        coefficients = np.concatenate([np.zeros(0), *g])
        return cls(len(edges), start, flat, coefficients, np.array(b), np.array(lower), upper)

    def plus(self, index: Sequence[Any], g: Sequence[Any], b: Any) -> CouplingRows:
        """These, and inequalities between two variables each that cannot be broken."""
        count = len(b)
        return replace(
            self,
            start=np.concatenate([self.start, self.start[-1] + 2 * np.arange(1, count + 1)]),
            index=np.concatenate([self.index, np.ravel(index).astype(np.int64)]),
            g=np.concatenate([self.g, np.ravel(g)]),
            b=np.concatenate([self.b, b]),
            lower=np.concatenate([self.lower, np.zeros(count)]),
            upper=np.concatenate([self.upper, np.full(count, np.inf)]),
        )

    def solve(
        self,
        theta: Floats,
        pairs: Floats,
        q: float,
        low: Floats,
        high: Floats,
        prices: Floats | None = None,
    ) -> Priced:
        """The optimum for instances with scores θ (B, n) and pairs (B, E), which add c u_i u_j."""
        batch = len(theta)
        theta, g, b, upper = self.at(theta, pairs)
        y = np.zeros(b.shape) if prices is None else prices.copy()
        u, free = np.empty(theta.shape), np.empty(b.shape, bool)
        gap, broken, n_iter = np.empty(batch), np.empty(batch), np.empty(batch, np.int64)
        minimise(
            self.start, self.index, g, b, self.lower, upper, theta, q, low, high, N_ROUNDS,
            y, u, free, gap, broken, n_iter,
        )  # fmt: skip
        both, less = self.both(pairs, y, u)
        return Priced(self, g, q, low, high, y, u, free, both, less, gap, broken, n_iter)

    @property
    def ends(self) -> Integers:
        """The variables of each pair (E, 2)."""
        return self.index[: 2 * self.n_pairs].reshape(-1, 2)

    def at(self, theta: Floats, pairs: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Scores of variables, coefficients, bounds and highest prices of all rows (B, …)."""
        rows: tuple[Floats, Floats, Floats, Floats] = rows_at(
            self.index, self.g, self.b, self.upper, theta, np.ascontiguousarray(pairs)
        )
        return rows

    def both(self, pairs: Floats, y: Floats, u: Floats) -> tuple[Floats, Floats]:
        """The probability that both of a pair are true: factors of the two u_i, and a constant."""
        both, less = pair_factors(self.index, np.ascontiguousarray(pairs), y, u)
        return both.reshape(*less.shape, 2), less


@dataclass(frozen=True)
class Priced:
    """Variables u (B, n) at their prices, and how they move."""

    rows: CouplingRows
    g: Floats
    q: float
    low: Floats
    high: Floats
    prices: Floats
    u: Floats
    free: Mask
    both: Floats
    """(B, E, 2): the probability that both of a pair are true, as a function of the two u_i …"""
    less: Floats
    """(B, E): … less this."""
    gap: Floats
    broken: Floats
    n_iter: Integers

    def only(self, k: int) -> Priced:
        """Instance k alone."""
        if len(self.u) == 1:
            return self
        fields = ("g", "low", "high", "prices", "u", "free", "both", "less", "gap", "broken")
        fields_of_k = {name: getattr(self, name)[k : k + 1] for name in (*fields, "n_iter")}
        return replace(self, **fields_of_k)

    @property
    def pairs(self) -> Floats:
        """The probability that both variables of a pair are true (B, E)."""
        return (self.both * self.u[:, self.rows.ends]).sum(axis=2) - self.less

    def respond(self, d_theta: Floats, d_pairs: Floats) -> tuple[Floats, Floats]:
        """How u and the pairs move with their scores: a linear and symmetric map."""
        moved = np.array(d_theta)
        if self.rows.n_pairs:
            scatter(moved, self.rows.ends, self.both * d_pairs[:, :, None])
        rows, d_u = self.rows, np.empty(self.u.shape)
        respond(
            rows.start,
            rows.index,
            self.g,
            self.q,
            self.low,
            self.high,
            self.u,
            self.free,
            moved,
            d_u,
        )
        return d_u, (self.both * d_u[:, self.rows.ends]).sum(axis=2)


class BinaryGraph:
    """A factor graph of variables with two states each, both of which are scored."""

    def __init__(self, graph: FactorGraph) -> None:
        self.n = graph.n_variables
        self.edges = np.array(graph.edges, np.int64).reshape(-1, 2)
        self.ends = self.edges.ravel()
        self.rows = CouplingRows.of(self.edges, graph.logic)

    def solve(
        self, parts: Floats, temperature: float, tol: float, prices: Floats | None = None
    ) -> list[LocalPoint | None]:
        """The optimum at the scores of all parts (B, d + f); None where it was not found."""
        finite = np.isfinite(parts)
        whole = finite.all(axis=1)
        points: list[LocalPoint | None] = [None] * len(parts)
        if whole.any():
            start = None if prices is None else prices[whole]
            high = np.ones((int(whole.sum()), self.n))
            low = np.zeros(high.shape)
            priced = self._solve_rows(self.rows, parts[whole], temperature, low, high, start)
            for k, b in enumerate(np.flatnonzero(whole)):
                points[b] = self._point(priced, k, parts[b], finite[b], temperature, tol)
        for b in np.flatnonzero(~whole):
            points[b] = self._with_forbidden(parts[b], finite[b], temperature, tol)
        return points

    def _solve_rows(
        self,
        rows: CouplingRows,
        parts: Floats,
        temperature: float,
        low: Floats,
        high: Floats,
        prices: Floats | None = None,
    ) -> Priced:
        theta, pairs = self._reduce(parts)
        return rows.solve(theta + temperature, pairs, 2.0 * temperature, low, high, prices)

    def _reduce(self, parts: Floats) -> tuple[Floats, Floats]:
        """Scores of being true, and of both, from those of all parts: linear."""
        tables = parts[:, 2 * self.n :].reshape(len(parts), len(self.edges), 4)
        return reduce_states(parts, self.ends, self.n), tables @ SIGNS

    def _expand(self, u: Floats, both: Floats, one: float) -> Floats:
        """Expectations of all parts, the transpose of `_reduce`; ``one`` is 0 for their changes."""
        parts: Floats = expand_states(u, both, self.ends, one)
        return parts

    def _point(
        self, priced: Priced, k: int, scores: Floats, finite: Mask, temperature: float, tol: float
    ) -> LocalPoint | None:
        if priced.n_iter[k] < 0:
            return None
        one = priced.only(k)
        parts = np.where(finite, np.maximum(self._expand(one.u, one.pairs, 1.0)[0], 0.0), 0.0)
        unary = parts[: 2 * self.n]
        value = float(parts[finite] @ scores[finite] - 0.5 * temperature * unary @ unary)
        gap = float(one.gap[0])

        def move(direction: Floats) -> Floats:
            finite_direction = np.where(finite, direction, 0.0)[None]
            moved = self._expand(*one.respond(*self._reduce(finite_direction)), 0.0)[0]
            return np.where(finite, moved, 0.0)

        converged = is_optimal(value, gap, float(one.broken[0]), tol)
        prices = one.prices[0, : len(self.rows.b)]
        return LocalPoint(parts, value, gap, converged, int(one.n_iter[0]), move, prices)

    def _with_forbidden(
        self, scores: Floats, finite: Mask, temperature: float, tol: float
    ) -> LocalPoint | None:
        """One instance with states or pairs of probability 0.

        A table with a forbidden corner couples nothing but by that corner's own row; what is left
        of it is linear.
        """
        state = finite[: 2 * self.n].reshape(self.n, 2).copy()
        table = finite[2 * self.n :].reshape(-1, 2, 2)
        lost = True
        while lost:
            lost = False
            for (i, j), allowed in zip(self.edges, table):
                left = allowed & state[i][:, None] & state[j]
                for v, possible in ((i, left.any(axis=1)), (j, left.any(axis=0))):
                    lost |= bool((state[v] & ~possible).any())
                    state[v] &= possible
        if not state.any(axis=1).all():
            return None
        filled = np.where(finite, scores, 0.0)
        tables = filled[2 * self.n :].reshape(-1, 4)
        index, g, b, at = [], [], [], {}
        for e, allowed in enumerate(table.reshape(-1, 4)):
            if not allowed.all():
                tables[e] = _additive(tables[e], allowed)
            for corner in np.flatnonzero(~allowed):
                *coefficients, bound = FORBIDS[corner]
                index.append(self.edges[e])
                g.append(coefficients)
                b.append(bound)
                at[e] = corner
        low, high = (~state[:, 0]).astype(float)[None], state[:, 1].astype(float)[None]
        rows = self.rows.plus(index, g, b)
        priced = self._solve_rows(rows, filled[None], temperature, low, high)
        for e, corner in at.items():
            priced.both[0, e] = BOTH[corner]
            priced.less[0, e] = float(corner == 0)
        return self._point(priced, 0, scores, finite, temperature, tol)


def _additive(table: Floats, finite: Mask) -> Floats:
    """A table a_i + b_j with the known corners, of which there are at most three."""
    design = np.hstack([CORNERS == 0, CORNERS == 1])[:, [0, 2, 1, 3]].astype(float)
    weights = np.linalg.lstsq(design[finite], table[finite], rcond=None)[0]
    return np.where(finite, table, design @ weights)
