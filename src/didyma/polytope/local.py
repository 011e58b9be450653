"""LP-SparseMAP: SparseMAP over local polytopes, for graphs of any width and composed structures.

    max  ⟨scores, u⟩ + ⟨pairwise, v⟩ − t/2 ‖u‖²
    over u_i in the simplex, v_e ≥ 0 with the marginals u_i and u_j, low ≤ Σ literals ≤ high

Every factor has its own marginal polytope (the hull of a cardinality constraint is the interval of
counts), and all agree on u. On trees this is the marginal polytope of the whole graph; with loops
it is larger, and u is an approximation that needs no global oracle.

Binary variables are solved by prices (`polytope.priced`), and so are structures that share
variables (`polytope.composed`); variables of more states, and the rare instance on which prices get
stuck, by an interior point method (`polytope.interior`). All end on the face of the optimum, up to
rounding, and certify it.

Reference: Niculae and Martins, LP-SparseMAP, ICML 2020 (there by dual decomposition).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from didyma._core.polytope import has_masks
from didyma.errors import DataError, warn
from didyma.polytope.composed import ComposedGraph
from didyma.polytope.distributions import place_of
from didyma.polytope.interior import Constraints, interior_point
from didyma.polytope.point import LocalPoint
from didyma.polytope.priced import BinaryGraph
from didyma.polytope.rounding import TEMPERATURE, nearest_output
from didyma.polytope.sparsemap import ToleranceWarning
from didyma.structures.batches import check_positive
from didyma.structures.composition import Composition
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.layout import NO_EXTRA, Additional, Floats
from didyma.structures.oracles import SUSPECT

Mask = NDArray[np.bool_]

CACHED_GRAPHS = 64  # whose rows and layouts are kept
HIDDEN = 1e-6  # what may lie between the values of two programmes that are the same


@dataclass(frozen=True)
class LocalSolution:
    """Marginals over the local polytope, with their certificate per instance.

    No point of the polytope has a higher objective than ``objective + gap``, so that
    ``t/2 ‖marginals − exact‖² ≤ gap``. Without a batch axis in the scores no array has one.
    """

    marginals: Floats
    """In the shape of the scores."""
    additional: Mapping[str, Floats]
    """Expectations of additional parts, by name; not unique where the scores leave a choice."""
    objective: Floats
    gap: Floats
    converged: Mask
    exact: Mask
    """Whether it is known that no output of the graph is left out: then this is SparseMAP."""
    n_iter: NDArray[np.int64]
    scores: Floats = field(repr=False)
    """Of all parts, (B, d + f)."""
    points: Sequence[LocalPoint] = field(repr=False)
    places: Mapping[str, Additional] = field(repr=False)
    graph: FactorGraph | Composition = field(repr=False)

    @property
    def pairwise(self) -> Floats:
        """Expectations of pairs."""
        return self.additional["pairwise"]

    @property
    def bound(self) -> Floats:
        """What no point of the polytope exceeds."""
        return self.objective + self.gap

    def jvp(self, d_scores: ArrayLike, **d_additional: ArrayLike) -> Floats:
        """Derivative of the marginals in a direction of the scores; additional ones by name.

        Marginals are piecewise linear in the scores; at a kink this is the derivative on the face
        of the solution.
        """
        return self._split(self._move(self._join(d_scores, d_additional, of_scores=True)))[0]

    def vjp(
        self, d_marginals: ArrayLike, **d_additional: ArrayLike
    ) -> tuple[Floats, dict[str, Floats]]:
        """Gradients in the scores, and in each array of additional scores by name.

        Gradients with respect to the expectations of additional parts may be given by name.
        """
        moved = self._move(self._join(d_marginals, d_additional, of_scores=False))
        d_scores, named = self._split(moved)
        for name, place in self.places.items():
            if place.shared and not self._single:
                named[name] = named[name].sum(axis=0)
        return d_scores, named

    def rounded(self) -> NDArray[np.bool_]:
        """An output near the marginals of each instance: booleans in the shape of the scores.

        All factors agree on it. It is the nearest wherever the search need not go back; of a graph
        that has no output an error says so.

        >>> from didyma.structures import Cardinality
        >>> graph = FactorGraph(3, logic=[Cardinality((0, 1, 2), 2, 2)])
        >>> solution = local_sparsemap([[0, 0.6], [0, 0.5], [0, 0.4]], graph)
        >>> solution.marginals[:, 1].round(2), solution.rounded()[:, 1]
        (array([0.72, 0.67, 0.62]), array([ True,  True, False]))
        """
        solver = partial(LocalSolver, places=self.places, temperature=TEMPERATURE)
        batch = len(self.points)
        outputs = [
            nearest_output(
                self.graph,
                self.places,
                scores,
                u,
                lambda graph, parts: solver(graph)(parts[None])[0],
            )
            for scores, u in zip(self.scores, self.marginals.reshape(batch, -1))
        ]
        return np.array(outputs, bool).reshape(self.marginals.shape)

    @property
    def _single(self) -> bool:
        return self.objective.ndim == 0

    def _move(self, directions: Floats) -> Floats:
        return np.array([point.move(one) for point, one in zip(self.points, directions)])

    def _join(
        self, to_scores: ArrayLike, named: Mapping[str, ArrayLike], of_scores: bool
    ) -> Floats:
        """Directions of all parts (B, d + f)."""
        d = self.marginals.size // len(self.points)
        joined = np.zeros((len(self.points), len(self.points[0].parts)))
        for name, values in {"": to_scores, **named}.items():
            direction = np.asarray(values, float)
            place = place_of(name, self.places) if name else None
            expected = self.additional[name].shape if name else self.marginals.shape
            if place and of_scores and place.shared:
                expected = place.shape
            if direction.shape != expected:
                raise DataError(
                    f"expected a direction of shape {expected}, found {direction.shape}",
                    field=name or None,
                )
            start, stop = (d + place.start, d + place.stop) if place else (0, d)
            rows = 1 if place and direction.shape == place.shape else len(joined)
            joined[:, start:stop] = direction.reshape(rows, stop - start)
        return joined

    def _split(self, parts: Floats) -> tuple[Floats, dict[str, Floats]]:
        d = self.marginals.size // len(self.points)
        batch = () if self._single else (len(self.points),)
        named = {
            name: parts[:, d + place.start : d + place.stop].reshape(*batch, *place.shape)
            for name, place in self.places.items()
        }
        return parts[:, :d].reshape(self.marginals.shape), named


def local_sparsemap(
    scores: ArrayLike,
    graph: FactorGraph | Composition,
    *,
    temperature: float = 1.0,
    tol: float = 1e-10,
    max_iter: int = 100,
    warm_start: LocalSolution | None = None,
    **additional: ArrayLike | None,
) -> LocalSolution:
    """SparseMAP over the local polytope of a factor graph or a composition (LP-SparseMAP).

    Scores and additional ones are those of the graph; without the batch axis, neither has the
    solution one. Stops at a gap of ``tol · max(1, |objective|)``, and warns if rounding or
    ``max_iter`` (of the interior point method) stops it before. A former solution of the same
    instances can be the ``warm_start``.

    >>> graph = FactorGraph(3, edges=[(0, 1), (1, 2), (2, 0)])
    >>> disagree = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> solution = local_sparsemap(np.zeros((3, 2)), graph, pairwise=[disagree] * 3)
    >>> solution.marginals.round(3)
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]])
    >>> bool(solution.converged), float(solution.objective.round(3)), bool(solution.exact)
    (True, 5.25, False)
    """
    flat, extra, places = lay_out_local(scores, graph, additional)
    parts = np.hstack([flat, np.broadcast_to(extra, (len(flat), extra.shape[1]))])
    solver = LocalSolver(graph, places, temperature, tol, max_iter)
    return solver.solution(parts, solver(parts, warm_start), np.ndim(scores) == graph.ndim)


def require_graph(graph: Any) -> None:
    """Refuse what is neither a factor graph nor a composition."""
    if not isinstance(graph, (FactorGraph, Composition)):
        raise DataError(f"expected a FactorGraph or a Composition, found {graph!r}", field="graph")


def lay_out_local(
    scores: ArrayLike, graph: FactorGraph | Composition, additional: Mapping[str, Any]
) -> tuple[Floats, Floats, dict[str, Additional]]:
    """Scores (B, d), additional ones (1 or B, f) as flat arrays, and where each stands."""
    require_graph(graph)
    scores_by_name = dict(additional)
    if isinstance(graph, FactorGraph) and scores_by_name.get("pairwise") is None:
        scores_by_name["pairwise"] = np.zeros((len(graph.edges), graph.n_states, graph.n_states))
    return graph.check(scores, **scores_by_name)


class LocalSolver:
    """The optimum of each instance of a batch, from the scores of all parts (B, d + f)."""

    def __init__(
        self,
        graph: FactorGraph | Composition,
        places: Mapping[str, Additional],
        temperature: float = 1.0,
        tol: float = 1e-10,
        max_iter: int = 100,
    ) -> None:
        self.graph, self.places = graph, places
        self.temperature = check_positive(temperature, "temperature")
        self.tol, self.max_iter = tol, max_iter

    def __call__(self, parts: Floats, warm_start: LocalSolution | None = None) -> list[LocalPoint]:
        """Points, which may not have converged; raises where there is none.

        Scores that must be masks count as −∞, if that changes nothing: scores that are raised to a
        limit lower no value, so what bounds the raised programme bounds this one. A point that
        reaches the bound without such parts is the optimum.
        """
        prices = self._prices(warm_start, len(parts))
        if not has_masks(parts, NO_EXTRA, SUSPECT):
            return self._whole(self._attempt(parts, prices))
        highest = parts.max(axis=1, keepdims=True)
        limit = -SUSPECT * np.maximum(max(1.0, self.temperature), highest)
        low = (parts < limit) & (parts > -np.inf)
        points = self._attempt(np.where(low, -np.inf, parts), prices)
        for b in np.flatnonzero(low.any(axis=1)).tolist():
            (above,) = self._attempt(np.where(low[b], limit[b], parts[b])[None])
            point, bound = points[b], np.inf if above is None else above.value + above.gap
            if point is None or bound - point.value > HIDDEN * max(1.0, abs(point.value)):
                points[b] = self._attempt(parts[b : b + 1])[0]
        return self._whole(points)

    @staticmethod
    def _whole(points: list[LocalPoint | None]) -> list[LocalPoint]:
        """The points, of which none may be missing."""
        for b, point in enumerate(points):
            if point is None:
                raise DataError(
                    f"instance {b}: the graph has no output: its factors contradict each other, or "
                    "scores of -inf forbid every one"
                )
        return points  # type: ignore[return-value]

    def _attempt(self, parts: Floats, prices: Floats | None = None) -> list[LocalPoint | None]:
        if self._composed:
            try:
                return self._composed.solve(parts, self.temperature, self.tol, prices)
            except DataError:  # a structure has no output in some instance
                if len(parts) == 1:
                    return [None]
                return [self._attempt(one[None])[0] for one in parts]
        if isinstance(self.graph, Composition):
            return self._without_structures(self.graph, parts, prices)
        points: list[LocalPoint | None] = [None] * len(parts)
        if self._binary:
            points = self._binary.solve(parts, self.temperature, self.tol, prices)
        for b, point in enumerate(points):
            if point is None or not point.converged:
                points[b] = interior_point(
                    self._constraints, parts[b], self.temperature, self.tol, self.max_iter
                )
        return points

    def _without_structures(
        self, graph: Composition, parts: Floats, prices: Floats | None
    ) -> list[LocalPoint | None]:
        """A composition without structures is a factor graph.

        Its regulariser counts both states: t/4 (u² + (1 − u)²) is t/2 (u² − u) + t/4.
        """
        n, n_edges = graph.n_variables, len(graph.edges)
        true = np.r_[1 : 2 * n : 2, 2 * n + 3 : 2 * n + 4 * n_edges : 4]  # and both of a pair
        scores = np.zeros((len(parts), 2 * n + 4 * n_edges))
        scores[:, true] = parts
        scores[:, true[:n]] -= self.temperature / 2

        def taken(point: LocalPoint) -> LocalPoint:
            def move(direction: Floats) -> Floats:
                every = np.zeros(scores.shape[1])
                every[true] = direction
                return point.move(every)[true]

            value = point.value + n * self.temperature / 4
            return replace(point, parts=point.parts[true], value=value, move=move)

        return [point and taken(point) for point in self._as_factor_graph._attempt(scores, prices)]

    @cached_property
    def _as_factor_graph(self) -> LocalSolver:
        graph = FactorGraph(self.graph.n_variables, 2, self.graph.edges, self.graph.logic)
        return LocalSolver(graph, {}, self.temperature / 2, self.tol, self.max_iter)

    @cached_property
    def _composed(self) -> ComposedGraph | None:
        if isinstance(self.graph, Composition) and self.graph.factors:
            return _composed(self.graph, tuple(self.places.items()))
        return None

    @cached_property
    def _binary(self) -> BinaryGraph | None:
        graph = self.graph
        return _binary(graph) if isinstance(graph, FactorGraph) and graph.n_states == 2 else None

    @cached_property
    def _constraints(self) -> Constraints:
        assert isinstance(self.graph, FactorGraph)
        return Constraints(self.graph)

    def _prices(self, start: LocalSolution | None, batch: int) -> Floats | None:
        if start is None:
            return None
        if start.graph is not self.graph and start.graph != self.graph:
            raise DataError("it is of another graph", field="warm_start")
        if len(start.points) != batch:
            raise DataError(
                f"expected one point per instance ({batch}), found {len(start.points)}",
                field="warm_start",
            )
        prices = [point.prices for point in start.points if point.prices is not None]
        if not prices:
            return None
        none = np.zeros(len(prices[0]))
        return np.array([none if p.prices is None else p.prices for p in start.points])

    def solution(self, parts: Floats, points: list[LocalPoint], single: bool) -> LocalSolution:
        """Points at these scores as arrays; warns of those that are not the optimum."""
        wrong = [b for b, point in enumerate(points) if not point.converged]
        if wrong:
            warn(
                f"{len(wrong)} of {len(points)} instances stopped before a gap of {self.tol}; the "
                f"first is {wrong[0]} with a gap of {points[wrong[0]].gap:.1e}",
                ToleranceWarning,
            )
        d = int(np.prod(self.graph.score_shape))

        def gather(values: Any, *shape: int) -> Any:
            stacked = np.array(values).reshape(len(points), *shape)
            return stacked[0] if single else stacked

        all_parts = np.array([point.parts for point in points])
        rounded = all_parts[:, :d].round(9)
        whole = ((rounded == 0) | (rounded == 1)).all(axis=1) | self.graph.is_forest
        whole |= np.array([point.exact for point in points], bool)
        whole &= [point.converged for point in points]
        return LocalSolution(
            marginals=gather(all_parts[:, :d], *self.graph.score_shape),
            additional={
                name: gather(all_parts[:, d + place.start : d + place.stop], *place.shape)
                for name, place in self.places.items()
            },
            objective=gather([point.value for point in points]),
            gap=gather([point.gap for point in points]),
            converged=gather([point.converged for point in points]),
            exact=gather(whole),
            n_iter=gather([point.n_iter for point in points]),
            scores=parts,
            points=points,
            places=self.places,
            graph=self.graph,
        )


@lru_cache(maxsize=CACHED_GRAPHS)
def _binary(graph: FactorGraph) -> BinaryGraph:
    return BinaryGraph(graph)


@lru_cache(maxsize=CACHED_GRAPHS)
def _composed(graph: Composition, places: tuple[tuple[str, Additional], ...]) -> ComposedGraph:
    return ComposedGraph(graph, dict(places))
