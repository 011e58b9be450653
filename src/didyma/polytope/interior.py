"""LP-SparseMAP by an interior point method: variables of any number of states.

    max  ⟨scores, u⟩ + ⟨pairwise, v⟩ − t/2 ‖u‖²
    over u_i in the simplex, v_e ≥ 0 with the marginals u_i and u_j, low ≤ Σ literals ≤ high

It is one sparse quadratic programme, solved by a primal-dual interior point method (a predictor and
a corrector step per factorisation). Once the face of the optimum can be recognised, the optimum
over that face is found by one linear system, exact up to rounding; the same system gives the
derivatives. Multipliers bound the objective from above and so certify the result.

`polytope.active_set` would need an oracle that names vertices. Those of this polytope are
fractional and known by its constraints only, so the oracle is a linear programme, which costs as
much as several of the few factorisations here; and it is asked once for each vertex that becomes
active, whose number grows with the graph. It finds the same optimum, ten times slower on a grid of
8 × 8 variables (`tests/polytope/test_local.py` compares them).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from didyma.polytope.point import FEASIBLE, LocalPoint
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.layout import Floats

Mask = NDArray[np.bool_]

REGULARISATION = 1e-10  # keeps systems with redundant constraints solvable; refined away
ROUNDING = 1e-15
CURVATURE = 1e-6  # of pairs and slacks on a face, where they have none; refined away
ROUNDS = 4  # of refinement
STEP = 0.995  # share of the way to the boundary
POLISH = 1e-4  # relative gap from which on the face may be recognised
FACES = 4  # tried at a time
EXACT = 1e-13  # no better gap can be told from rounding
PATIENCE = 8  # iterations without progress: rounding is all that is left


class Constraints:
    """The local polytope: T v_e = (u_i, u_j) for each edge, C u + sign · slack = b."""

    def __init__(self, graph: FactorGraph) -> None:
        n, size = graph.n_variables, graph.n_states
        self.shape = (n, size)
        self.d = n * size
        states = np.arange(size)
        edges = np.array(graph.edges, np.int64).reshape(-1, 2)
        self.ends = (edges[:, :, None] * size + states).reshape(len(edges), 2 * size)
        self.T = np.vstack([np.kron(np.eye(size), np.ones(size)), np.tile(np.eye(size), size)])
        rows, columns = [np.repeat(np.arange(n), size)], [np.arange(self.d)]
        b, sign, most = [1.0] * n, [0.0] * n, [0.0] * n
        for one in graph.logic:
            literals = np.array(one.indices) * 2 + ~one.negated
            bounds = {(one.low, -1.0 if one.low < one.high else 0.0)} if one.low > 0 else set()
            if one.high < len(literals):
                bounds.add((one.high, 1.0 if one.low < one.high else 0.0))
            for bound, direction in sorted(bounds):
                rows.append(np.full(len(literals), len(b)))
                columns.append(literals)
                b.append(bound)
                sign.append(direction)
                most.append(float(len(literals)))
        self.b, self.sign = np.array(b), np.array(sign)
        self.most = np.concatenate([np.ones(self.d + len(edges) * size**2), most])
        self.terms = np.concatenate(rows), np.concatenate(columns)
        ones = np.ones(len(self.terms[0]))
        self.C = sp.csr_matrix((ones, self.terms), shape=(len(b), self.d))
        self.C_transposed = self.C.T.tocsr()
        self._arrange()

    def _arrange(self) -> None:
        """Where the entries of the matrix of `_KKTSystem` stand; the same for all instances."""
        n_edges, n_ends = self.ends.shape
        state = np.arange(self.d)
        row = self.d + np.arange(len(self.b))
        end = self.d + len(row) + np.arange(self.ends.size)
        block = np.broadcast_to(end.reshape(n_edges, n_ends, 1), (n_edges, n_ends, n_ends))
        term_row, term_state = row[self.terms[0]], self.terms[1]
        at_end = self.ends.ravel()
        self.i = np.concatenate([state, term_row, term_state, row, end, at_end, block.ravel()])
        self.j = np.concatenate(
            [state, term_state, term_row, row, at_end, end, block.swapaxes(1, 2).ravel()]
        )
        self.order = np.lexsort((self.i, self.j))
        size = self.d + len(row) + len(end)
        self.first = np.searchsorted(self.j[self.order], np.arange(size + 1))

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """The parts u, v (E, S²) and slack of all variables."""
        stop = len(x) - len(self.b)
        return x[: self.d], x[self.d : stop].reshape(len(self.ends), self.T.shape[1]), x[stop:]

    def apply(self, x: Floats) -> tuple[Floats, Floats]:
        """Left-hand sides of the rows and of the edges; the latter are to be zero."""
        u, v, slack = self.split(x)
        return self.C @ u + self.sign * slack, v @ self.T.T - u[self.ends]

    def adjoint(self, rows: Floats, edges: Floats) -> Floats:
        """The transpose of `apply`."""
        to_u = self.C_transposed @ rows - self.scatter(edges)
        return np.concatenate([to_u, (edges @ self.T).ravel(), self.sign * rows])

    def possible(self, allowed: Mask) -> Mask | None:
        """Which variables can differ from 0 if only these parts may, or None if no state is left.

        A state goes with all its pairs, and a pair with each of its states.
        """
        u = allowed[: self.d].copy()
        v = allowed[self.d :].reshape(len(self.ends), self.T.shape[1])
        lost = np.ones(1, bool)
        while lost.any():
            v = v & (u[self.ends] @ self.T == 2)
            lost = u[self.ends] & (v @ self.T.T == 0)
            u[self.ends[lost]] = False
        if not u.reshape(self.shape).any(axis=1).all():
            return None
        return np.concatenate([u, v.ravel(), self.sign != 0])

    def feasible(self, alive: Mask) -> bool:
        """Whether any point exists, by linear programming."""
        from scipy.optimize import linprog

        n_ends = self.ends.size
        place = np.arange(n_ends), self.ends.ravel()
        agree = sp.csr_matrix((-np.ones(n_ends), place), shape=(n_ends, self.d))
        pairs = sp.kron(sp.eye(len(self.ends)), self.T)
        A = sp.bmat([[self.C, None, sp.diags(self.sign)], [agree, pairs, None]]).tocsc()
        b = np.concatenate([self.b, np.zeros(self.ends.size)])
        limits = [(0.0, None if one else 0.0) for one in alive]
        return bool(linprog(np.zeros(len(alive)), A_eq=A, b_eq=b, bounds=limits).status != 2)

    def scatter(self, at_ends: Floats) -> Floats:
        """Sum what the edges (E, 2S) say of each state."""
        return np.bincount(self.ends.ravel(), at_ends.ravel(), self.d).astype(float)


class _KKTSystem:
    """D dx + A'dy = r, A dx = s, with D diagonal and dx = 0 outside ``alive``: factored once.

    Pairs and slacks are eliminated by hand, since nothing but their own equations mentions them.
    """

    def __init__(self, polytope: Constraints, diagonal: Floats, alive: Mask) -> None:
        self.polytope, self.alive = polytope, alive
        inverse = np.where(alive, 1.0 / np.where(alive, diagonal, 1.0), 0.0)
        _, self.W, self.W_slack = polytope.split(inverse)
        n_edges, n_ends = polytope.ends.shape
        # One equation of each edge follows from the others; those of dead states are empty.
        independent = alive[polytope.ends]
        last = n_ends - 1 - np.argmax(independent[:, : n_ends // 2 - 1 : -1], axis=1)
        independent[np.arange(n_edges), last] = False
        every = np.ones(len(polytope.b), bool)
        self.independent = np.concatenate([alive[: polytope.d], every, independent.ravel()])
        N = (self.W[:, None, :] * polytope.T) @ polytope.T.T
        N += np.eye(n_ends) * (REGULARISATION + ROUNDING * N)
        ones = np.ones(len(polytope.terms[0]))
        minus = np.full(2 * polytope.ends.size, -1.0)
        corner = polytope.sign**2 * self.W_slack + REGULARISATION
        i, j = polytope.i, polytope.j
        entries = np.concatenate([diagonal[: polytope.d], ones, ones, -corner, minus, -N.ravel()])
        entries = np.where(self.independent[i] & self.independent[j], entries, i == j)
        matrix = entries[polytope.order], i[polytope.order], polytope.first
        self.factor = splu(sp.csc_matrix(matrix, shape=2 * (len(self.independent),)))

    def refine(
        self, diagonal: Floats, r: Floats, rows: Floats, edges: Floats, rounds: int
    ) -> tuple[Floats, Floats, Floats]:
        """(dx, dy, dy of edges), refined against this ``diagonal`` and without regularisation."""
        polytope = self.polytope
        dx, dy, dy_edges = np.zeros(len(r)), np.zeros(len(rows)), np.zeros(edges.shape)
        left = np.where(self.alive, r, 0.0), rows, edges
        for _ in range(rounds):
            step = self._once(*left)
            dx, dy, dy_edges = dx + step[0], dy + step[1], dy_edges + step[2]
            missing = r - diagonal * dx - polytope.adjoint(dy, dy_edges)
            done_rows, done_edges = polytope.apply(dx)
            left = np.where(self.alive, missing, 0.0), rows - done_rows, edges - done_edges
        return dx, dy, dy_edges

    def _once(self, r: Floats, rows: Floats, edges: Floats) -> tuple[Floats, Floats, Floats]:
        polytope = self.polytope
        r_u, r_v, r_slack = polytope.split(r)
        rows = rows - polytope.sign * self.W_slack * r_slack
        edges = edges - (self.W * r_v) @ polytope.T.T
        right = np.where(self.independent, np.concatenate([r_u, rows, edges.ravel()]), 0.0)
        solution = self.factor.solve(right)
        du, dy = solution[: polytope.d], solution[polytope.d : polytope.d + len(rows)]
        dy_edges = solution[polytope.d + len(rows) :].reshape(edges.shape)
        dv = self.W * (r_v - dy_edges @ polytope.T)
        dslack = self.W_slack * (r_slack - polytope.sign * dy)
        return np.concatenate([du, dv.ravel(), dslack]), dy, dy_edges


class _Face(_KKTSystem):
    """The optimum of ½‖u‖² − r'x over the face on which some entries are free."""

    def __init__(self, polytope: Constraints, free: Mask) -> None:
        self.curvature = np.where(np.arange(len(free)) < polytope.d, 1.0, 0.0)
        super().__init__(polytope, np.maximum(self.curvature, CURVATURE), free)

    def solve(self, r: Floats, rows: Floats, edges: Floats) -> tuple[Floats, Floats, Floats]:
        """(dx, dy, dy of edges); a linear and symmetric map."""
        return self.refine(self.curvature, r, rows, edges, ROUNDS)


@dataclass(frozen=True)
class _State:
    """Primal variables, multipliers of x ≥ 0, of the rows and of the edges."""

    x: Floats
    z: Floats
    y: Floats
    y_edges: Floats

    def moved(self, step: _State, length: float) -> _State:
        return _State(
            self.x + length * step.x,
            self.z + length * step.z,
            self.y + length * step.y,
            self.y_edges + length * step.y_edges,
        )

    def longest_step(self, step: _State) -> float:
        """The longest step, up to 1, that keeps x and z positive."""
        x, dx = np.concatenate([self.x, self.z]), np.concatenate([step.x, step.z])
        blocking = dx < 0
        return min(1.0, STEP * float(np.min(x[blocking] / -dx[blocking], initial=np.inf)))


@dataclass(frozen=True)
class _Optimum:
    """Primal variables, the entries that are free to move, and the certificate."""

    x: Floats
    free: Mask
    value: float
    bound: float
    residual: float

    @property
    def gap(self) -> float:
        """How far the value can be from the optimum; not known of an infeasible point."""
        return abs(self.bound - self.value) if self.residual <= FEASIBLE else np.inf

    def better(self, other: _Optimum) -> bool:
        """Whether the gap is smaller, or as long as there is none, clearly the residual."""
        return self.gap < other.gap or (
            other.gap == np.inf and self.residual < 0.9 * other.residual
        )

    def within(self, tol: float) -> bool:
        """Whether the gap is small."""
        return self.gap <= tol * max(1.0, abs(self.value))


@dataclass(frozen=True)
class _Programme:
    """max c'x − ½ x'qx over the polytope, with x = 0 outside ``alive``."""

    polytope: Constraints
    c: Floats
    q: Floats
    alive: Mask

    def assess(self, state: _State, free: Mask) -> _Optimum:
        """The value of x, and the bound that y gives: valid for any y, for x has upper limits."""
        polytope, x, y = self.polytope, state.x, state.y
        rows, edges = polytope.apply(x)
        residual = max(np.abs(polytope.b - rows).max(), np.abs(edges).max(initial=0.0))
        gain = np.where(self.alive, self.c - polytope.adjoint(y, state.y_edges), 0.0)
        curved = np.where(self.q > 0, self.q, 1.0)
        best = np.where(self.q > 0, np.clip(gain / curved, 0.0, polytope.most), polytope.most)
        best = np.where(gain > 0, best, 0.0)
        bound = float(polytope.b @ y + gain @ best - 0.5 * (self.q * best) @ best)
        value = float(self.c @ x - 0.5 * (self.q * x) @ x)
        return _Optimum(x, free, value, bound, float(residual))

    def missing(self, state: _State) -> tuple[Floats, Floats, Floats]:
        """What the optimality conditions lack, but for z."""
        rows, edges = self.polytope.apply(state.x)
        dual = self.c - self.q * state.x - self.polytope.adjoint(state.y, state.y_edges)
        return dual, self.polytope.b - rows, -edges

    def newton(self, system: _KKTSystem, state: _State, target: Any) -> _State:
        """The step towards x · z = target."""
        x = np.where(self.alive, state.x, 1.0)
        dual, rows, edges = self.missing(state)
        right = np.where(self.alive, dual + target / x, 0.0)
        dx, dy, dy_edges = system.refine(self.q + state.z / x, right, rows, edges, 2)
        dz = np.where(self.alive, (target - state.z * dx) / x - state.z, 0.0)
        return _State(dx, dz, dy, dy_edges)

    def polish(self, state: _State) -> _Optimum:
        """The best optimum of a few faces, first of that on which the entries with x > z are free.

        The next face loses the entries that became negative and wins those that would pay.
        """
        t = self.q.max()
        free = self.alive & (state.x > state.z)
        optima = []
        for _ in range(FACES):
            start = replace(state, x=np.where(free, state.x, 0.0))
            dual, rows, edges = self.missing(start)
            dx, dy, dy_edges = _Face(self.polytope, free).solve(dual / t, rows, edges)
            end = start.moved(_State(dx, np.zeros(len(dx)), t * dy, t * dy_edges), 1.0)
            optima.append(self.assess(replace(end, x=np.maximum(end.x, 0.0)), free))
            if optima[-1].within(EXACT):
                break
            free = self.alive & np.where(free, end.x > 0, self.missing(end)[0] > 0)
        return min(optima, key=lambda one: one.gap)

    def solve(self, tol: float, max_iter: int) -> tuple[_Optimum, int]:
        """The best point found by the interior point method, and the number of iterations."""
        polytope, alive = self.polytope, self.alive
        state = _State(
            self._centre(),
            np.where(alive, 1.0, 0.0),
            np.zeros(len(polytope.b)),
            np.zeros(polytope.ends.shape),
        )
        best = self.assess(state, alive)
        n_iter = stale = 0
        while n_iter < max_iter and stale < PATIENCE and not best.within(tol):
            n_iter += 1
            try:  # a singular system means that rounding has taken over
                system = _KKTSystem(
                    polytope, self.q + state.z / np.where(alive, state.x, 1.0), alive
                )
                predictor = self.newton(system, state, 0.0)
                ahead = state.moved(predictor, state.longest_step(predictor))
                mu = float(state.x @ state.z) / alive.sum()
                centring = (float(ahead.x @ ahead.z) / alive.sum() / mu) ** 3
                step = self.newton(system, state, centring * mu - predictor.x * predictor.z)
                state = state.moved(step, state.longest_step(step))
                if not np.isfinite(state.x).all():
                    break
                optimum = self.assess(state, alive & (state.x > state.z))
                if optimum.bound - optimum.value < POLISH * max(1.0, abs(optimum.value)):
                    optimum = min(optimum, self.polish(state), key=lambda one: one.gap)
            except RuntimeError:
                break
            stale = 0 if optimum.better(best) else stale + 1
            best = optimum if optimum.better(best) else best
        return best, n_iter

    def _centre(self) -> Floats:
        u, v, slack = self.polytope.split(np.where(self.alive, 1.0, 0.0))
        u = u.reshape(self.polytope.shape)
        u = u / u.sum(axis=1, keepdims=True)
        return np.concatenate([u.ravel(), (v / v.sum(axis=1, keepdims=True)).ravel(), slack])


def interior_point(
    polytope: Constraints, parts: Floats, temperature: float, tol: float, max_iter: int
) -> LocalPoint | None:
    """The optimum at the scores of all parts, or None if there is no point at all."""
    alive = polytope.possible(parts > -np.inf)
    if alive is None:
        return None
    c = np.zeros(len(alive))
    c[: len(parts)] = np.where(alive[: len(parts)], parts, 0.0)
    q = np.where(np.arange(len(c)) < polytope.d, temperature, 0.0)
    scale = max(1.0, float(np.abs(c).max()), temperature)
    programme = _Programme(polytope, c / scale, q / scale, alive)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        optimum, n_iter = programme.solve(tol, max_iter)
    if optimum.gap == np.inf and not polytope.feasible(alive):
        return None

    def move(direction: Floats) -> Floats:
        rows, edges = np.zeros(len(polytope.b)), np.zeros(polytope.ends.shape)
        right = np.concatenate([direction / temperature, rows])
        return _Face(polytope, optimum.free).solve(right, rows, edges)[0][: len(parts)]

    return LocalPoint(
        optimum.x[: len(parts)],
        optimum.value * scale,
        optimum.gap * scale,
        optimum.within(tol),
        n_iter,
        move,
    )
