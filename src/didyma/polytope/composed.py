"""LP-SparseMAP over compositions: every structure is solved whole, and couplings have prices.

Couplings are rows G u ≤ b (`polytope.priced`): constraints, pairs of variables and, where two
structures share a variable, the equation that its copies agree (each copy has its share of the
regulariser). Given a price y for each row, the problem falls apart into the factors' own problems,

    min over prices y of   Φ(y) = b'y + Σ_f SparseMAP_f(x_f),   x = θ − G'y

where SparseMAP_f is the optimal value of factor f's regularised problem (`polytope.sparsemap`).
The gradient of Φ is the slack b − G u of the rows at the factors' marginals u, and its second
derivative G J G' follows from the derivatives J of these. So Newton's method with bounds on y takes
a handful of solves, each of which starts from the one before. Variables of no structure have a
closed form. Any y bounds the objective from above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from didyma.polytope.distributions import Distributions, apply_derivative
from didyma.polytope.point import LocalPoint, is_optimal
from didyma.polytope.priced import CouplingRows, scatter
from didyma.polytope.sparsemap import SolverOptions, solve
from didyma.structure import Structure
from didyma.structures.composition import Composition
from didyma.structures.layout import Additional, Floats, Parts

N_ROUNDS = 300
TIGHT = 1e-14  # gap of a factor's own problem
ROUNDING = 1e-12  # error of a row that counts as none
DAMPING, LEAST, MOST = 1e-2, 1e-14, 1e12
GOOD, BAD = 0.1, 8.0  # how damping changes after a step that was good, or was not
DESCENT = 1e-4  # share of the descent that the gradient promises
RANK = 1e-10  # relative size of singular values that count as zero
SAME = 1e-8  # error of an expectation that counts as none

Mask = NDArray[np.bool_]
Vertices = tuple[Parts, Parts, Floats]


class ComposedGraph:
    """A composition with copies of variables: one for each factor, one where no factor has it.

    Where structures overlap, each has 1 / copies of the regulariser, and a variable that is in
    fewer of them has a copy of its own for the rest.
    """

    def __init__(self, graph: Composition, places: Mapping[str, Additional]) -> None:
        self.graph = graph
        owners = [np.ravel(factor.variables) for factor in graph.factors]
        cover = np.zeros(graph.n_variables, np.int64)
        for variables in owners:
            cover[variables[variables >= 0]] += 1
        self.copies = max(1, int(cover.max()))
        self.alone = np.flatnonzero(cover < self.copies)
        self.share = 1.0 - cover[self.alone] / self.copies
        sizes = [len(self.alone), *map(len, owners)]
        ends = np.cumsum(sizes).tolist()
        self.slices = [slice(end - size, end) for end, size in zip(ends[1:], sizes[1:])]
        self.variable = np.concatenate([self.alone, *owners])
        self.main = np.full(graph.n_variables, -1)
        agree = []
        for copy, v in enumerate(self.variable.tolist()):
            if v >= 0 and self.main[v] < 0:
                self.main[v] = copy
            elif v >= 0:
                agree.append((self.main[v], copy))
        rows = CouplingRows.of(np.array(graph.edges, np.int64).reshape(-1, 2), graph.logic)
        coupled = replace(rows, index=self.main[rows.index])
        self.rows = coupled.plus(agree, [(1.0, -1.0)] * len(agree), np.zeros(len(agree)))
        self.first = len(rows.b)  # of the rows that make copies agree
        self.rows.lower[self.first :] = -np.inf
        self.row = np.repeat(np.arange(len(self.rows.b)), np.diff(self.rows.start))
        zero = np.zeros((1, graph.n_variables))
        others = {key: place for key, place in places.items() if key != "pairwise"}
        self.layouts = [
            factor.lay_out(zero, {key: np.zeros(places[key].shape) for key in share})
            for factor, share in zip(graph.factors, graph.shares(others))
        ]

    def solve(
        self, parts: Floats, temperature: float, tol: float, prices: Floats | None = None
    ) -> list[LocalPoint | None]:
        """The optimum at the scores of all parts (B, d + f); None where there is none."""
        run = _Newton(self, parts, temperature, prices)
        run.descend()
        return [
            None if impossible else run.point(b, tol) for b, impossible in enumerate(run.infeasible)
        ]


class _Newton:
    """Newton's method on the prices, for all instances of a batch at once."""

    def __init__(
        self, problem: ComposedGraph, parts: Floats, temperature: float, prices: Floats | None
    ) -> None:
        graph, rows = problem.graph, problem.rows
        n, n_pairs, batch = graph.n_variables, len(graph.edges), len(parts)
        self.problem, self.parts, self.t = problem, parts, temperature
        self.q = temperature / problem.copies  # of each structure
        self.options = SolverOptions(self.q, TIGHT, n_jobs=1)
        self.pairs = parts[:, n : n + n_pairs]
        ends = np.cumsum([n + n_pairs, *(one.extra.shape[1] for one in problem.layouts)]).tolist()
        self.extra = [np.ascontiguousarray(parts[:, start:stop]) for start, stop in pairwise(ends)]
        theta = np.zeros((batch, len(problem.variable)))
        possible = np.isfinite(parts[:, :n])
        theta[:, problem.main] = np.where(possible, parts[:, :n], 0.0)
        self.theta, self.g, self.b, self.upper = rows.at(theta, self.pairs)
        self.dead = ~possible[:, problem.variable] | (problem.variable < 0)
        for place, layout in zip(problem.slices, problem.layouts):
            self.dead[:, place] |= layout.scores == -np.inf
        if prices is None:  # copies of a variable share its score
            prices = np.zeros(self.b.shape)
            first = self.theta[:, rows.index[rows.start[problem.first] :: 2]]
            prices[:, problem.first :] = first / problem.copies
        self.y = np.clip(prices, rows.lower, self.upper)
        smallest = np.minimum(theta, 0.0).sum(axis=1) + np.minimum(self.pairs, 0.0).sum(axis=1)
        for layout, extra in zip(problem.layouts, self.extra):
            smallest += layout.n_extra * np.minimum(_finite(extra).min(axis=1, initial=0.0), 0.0)
        self.least = smallest - 0.5 * temperature * len(problem.variable)
        self.solutions: list[Distributions | None] = [None] * len(problem.layouts)
        self.vertices: list[list[Vertices]] = [[] for _ in range(batch)]
        self.gaps = np.zeros(batch)
        self.n_iter = np.zeros(batch, np.int64)

    def evaluate(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Φ, all copies, and what is left of each row's bound, at these prices."""
        problem, rows = self.problem, self.problem.rows
        x = self.theta.copy()
        scatter(x, rows.index, -self.g * y[:, problem.row])
        u = np.zeros(x.shape)
        alone = slice(0, len(problem.alone))
        q = self.t * problem.share
        u[:, alone] = np.where(self.dead[:, alone], 0.0, np.clip(x[:, alone] / q, 0.0, 1.0))
        value = (self.b * y).sum(axis=1)
        value += (x[:, alone] * u[:, alone] - 0.5 * q * u[:, alone] ** 2).sum(axis=1)
        self.gaps = np.zeros(len(y))
        for f, (place, template) in enumerate(zip(problem.slices, problem.layouts)):
            layout = replace(
                template,
                scores=np.where(self.dead[:, place], -np.inf, x[:, place]),
                extra=self.extra[f],
                sizes=np.repeat(template.sizes, len(y), axis=0),
            )
            structure = problem.graph.factors[f].structure
            solution = solve(layout, structure, self.options, self.solutions[f])
            self.solutions[f] = solution
            marginals = solution.flat_marginals
            u[:, place] = marginals
            value += (x[:, place] * marginals - 0.5 * self.q * marginals**2).sum(axis=1)
            value += (_finite(layout.extra) * solution.extra_marginals).sum(axis=1)
            self.gaps += solution.gap
        slack = self.b.copy()
        scatter(slack, problem.row, -self.g * u[:, rows.index])
        return value, u, slack

    @property
    def infeasible(self) -> Mask:
        """Which instances have no output: their bound is below the value of any."""
        return self.value < self.least - 1e-6 * np.abs(self.least) - 1.0

    def remember(self, b: int) -> None:
        """Remember the vertices of an instance."""
        self.vertices[b] = [
            (solution.parts[rows], solution.extra_parts[rows], solution.weights[rows])
            for solution in self.solutions
            if solution is not None
            for rows in [slice(solution.offsets[b], solution.offsets[b + 1])]
        ]

    def residuals(self, slack: Floats) -> Floats:
        """The largest component of each instance's gradient that is not held by a bound."""
        held = (self.y == self.problem.rows.lower) & (slack > 0)
        held |= (self.y == self.upper) & (slack < 0)
        size = np.maximum(1.0, np.abs(self.b))
        return np.max(np.where(held, 0.0, np.abs(slack)) / size, axis=1, initial=0.0)

    def descend(self) -> None:
        """Prices that minimise Φ, up to rounding."""
        batch, lower = len(self.y), self.problem.rows.lower
        self.value, self.u, self.slack = self.evaluate(self.y)
        error, damping = self.residuals(self.slack), np.full(batch, DAMPING)
        gaps = self.gaps
        hessians: list[Floats | None] = [None] * batch
        for b in range(batch):
            self.remember(b)
        done = error <= ROUNDING
        while not done.all():
            trial = self.y.copy()
            for b in np.flatnonzero(~done).tolist():
                held = (self.y[b] <= lower) & (self.slack[b] >= 0)
                held |= (self.y[b] >= self.upper[b]) & (self.slack[b] <= 0)
                free = np.flatnonzero(~held)
                hessian = hessians[b]
                if hessian is None:
                    hessians[b] = hessian = self.hessian(b, free)
                curved = hessian + damping[b] / self.t * np.eye(len(free))
                step = np.linalg.solve(curved, -self.slack[b, free])
                moved = self.y[b, free] + step
                trial[b, free] = np.clip(moved, lower[free], self.upper[b, free])
            value, u, slack = self.evaluate(trial)
            before, self.y = self.y, trial
            error_then = self.residuals(slack)
            promised = DESCENT * ((trial - before) * self.slack).sum(axis=1)
            noise = 1e-13 * np.maximum(1.0, np.abs(value))
            good = value <= self.value + promised
            good |= (value <= self.value + noise) & (error_then < 0.5 * error)
            good &= ~done
            self.y = np.where(good[:, None], trial, before)
            self.n_iter += ~done
            for b in np.flatnonzero(good).tolist():
                self.value[b], self.u[b], self.slack[b] = value[b], u[b], slack[b]
                gaps[b], error[b], hessians[b] = self.gaps[b], error_then[b], None
                self.remember(b)
            damping = np.clip(np.where(good, damping * GOOD, damping * BAD), LEAST, MOST)
            done |= (
                (error <= ROUNDING)
                | (damping >= MOST)
                | (self.n_iter >= N_ROUNDS)
                | self.infeasible
            )
        self.gaps = gaps

    def jacobian(self, b: int, p: Floats, p_extra: list[Floats]) -> tuple[Floats, list[Floats]]:
        """How all copies and additional parts of an instance move with x: rows are directions."""
        problem, alone = self.problem, len(self.problem.alone)
        out, out_extra = np.zeros(p.shape), []
        u = self.u[b, :alone]
        inside = (u > 0) & (u < 1)
        out[:, :alone] = np.where(inside, p[:, :alone] / (self.t * problem.share), 0.0)
        for place, factor, vertices, direction in zip(
            problem.slices, problem.graph.factors, self.vertices[b], p_extra
        ):
            moved, moved_extra = _derivative(factor.structure, vertices, p[:, place], direction)
            out[:, place] = moved / self.q
            out_extra.append(moved_extra / self.q)
        return out, out_extra

    def coefficients(self, b: int, rows: NDArray[np.int64]) -> Floats:
        """Some rows of G."""
        G = np.zeros((len(self.b[b]), self.theta.shape[1]))
        np.add.at(G, (self.problem.row, self.problem.rows.index), self.g[b])
        return G[rows]

    def hessian(self, b: int, free: NDArray[np.int64]) -> Floats:
        """The second derivative G J G' of Φ over free rows."""
        G = self.coefficients(b, free)
        return G @ self.jacobian(b, G, self.no_extra(len(G)))[0].T

    def no_extra(self, n: int) -> list[Floats]:
        """Directions, n of them, that leave additional parts alone."""
        return [np.zeros((n, extra.shape[1])) for extra in self.extra]

    def point(self, b: int, tol: float) -> LocalPoint:
        """The optimum of an instance, with its certificate and its derivative."""
        problem, rows, n = self.problem, self.problem.rows, self.problem.graph.n_variables
        u, y, slack = self.u[b], self.y[b], self.slack[b]
        soft = self.upper[b] < np.inf
        price = np.where(slack > 0, y, y - np.where(soft, self.upper[b], 0.0))
        gap = float(self.gaps[b] + np.abs(np.where(soft, price, y) * slack).sum())
        broken = np.where(rows.lower == -np.inf, np.abs(slack), -slack)[~soft].max(initial=0.0)
        pairs = self.pairs[b : b + 1]
        both, less = (one[0] for one in rows.both(pairs, y[None], u[None]))
        ends = rows.ends
        joint = (both * u[ends]).sum(axis=1) - less
        extra = [np.zeros(scores.shape[1]) for scores in self.extra]
        for total, (_, extra_parts, weights) in zip(extra, self.vertices[b]):
            rows_of, places = np.nonzero(extra_parts >= 0)
            np.add.at(total, extra_parts[rows_of, places], weights[rows_of])
        parts = np.concatenate([u[problem.main], joint, *extra])
        value = float(_finite(self.parts[b]) @ parts - 0.5 * self.t * parts[:n] @ parts[:n])
        free = np.flatnonzero((rows.lower < y) & (y < self.upper[b]))
        G = self.coefficients(b, free)
        hessian = self.hessian(b, free)

        def move(direction: Floats) -> Floats:
            p = np.zeros((1, len(u)))
            p[0, problem.main] = direction[:n]
            scatter(p, ends, (both * direction[n : n + len(ends), None])[None])
            cuts = np.cumsum([n + len(ends), *(scores.shape[1] for scores in self.extra)]).tolist()
            p_extra = [direction[None, start:stop] for start, stop in pairwise(cuts)]
            moved, moved_extra = self.jacobian(b, p, p_extra)
            if len(free):
                prices = np.linalg.lstsq(hessian, G @ moved[0], rcond=RANK)[0]
                back, back_extra = self.jacobian(b, (prices @ G)[None], self.no_extra(1))
                moved = moved - back
                moved_extra = [one - other for one, other in zip(moved_extra, back_extra)]
            along = moved[0]
            pair = (both * along[ends]).sum(axis=1)
            return np.concatenate([along[problem.main], pair, *(one[0] for one in moved_extra)])

        return LocalPoint(
            parts,
            value,
            gap,
            is_optimal(value, gap, float(broken), tol),
            int(self.n_iter[b]),
            move,
            y,
            self.is_expectation(b, parts),
        )

    def is_expectation(self, b: int, parts: Floats) -> bool:
        """Whether the vertices of one structure, with all else whole, are outputs of the graph.

        Then the marginals are an expectation over outputs, and no relaxation was needed.
        """
        graph = self.problem.graph
        n, n_pairs = graph.n_variables, len(graph.edges)
        several = [f for f, (_, _, weights) in enumerate(self.vertices[b]) if len(weights) > 1]
        if len(several) != 1:
            return False  # one output, or distributions that say nothing of each other
        own_parts, _, weights = self.vertices[b][several[0]]
        variables = np.ravel(graph.factors[several[0]].variables)
        outputs = np.tile(parts[:n].round(9), (len(weights), 1))
        outputs[:, variables[variables >= 0]] = 0.0
        rows, places = np.nonzero(own_parts >= 0)
        outputs[rows, variables[own_parts[rows, places]]] = 1.0
        if not np.isin(outputs, (0.0, 1.0)).all():
            return False
        first, second = np.array(graph.edges, np.int64).reshape(-1, 2).T
        together = weights @ (outputs[:, first] * outputs[:, second])
        return all(one.holds(outputs).all() for one in graph.logic) and np.allclose(
            together, parts[n : n + n_pairs], rtol=0.0, atol=SAME
        )


def _derivative(
    structure: Structure, vertices: Vertices, p: Floats, p_extra: Floats
) -> tuple[Floats, Floats]:
    """The Jacobian of one instance's marginals at temperature 1, times each row."""
    parts, extra_parts, _ = vertices
    return apply_derivative(
        structure,
        np.arange(len(p) + 1) * len(parts),
        np.tile(parts, (len(p), 1)),
        np.tile(extra_parts, (len(p), 1)),
        np.zeros(0),
        np.ascontiguousarray(p),
        np.ascontiguousarray(p_extra),
    )


def _finite(scores: Floats) -> Floats:
    return np.where(np.isfinite(scores), scores, 0.0)
