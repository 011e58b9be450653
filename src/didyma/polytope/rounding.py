"""Rounding: a feasible output near relaxed marginals, as a rule the nearest.

Among outputs x of a graph, ‖x − u‖² is least where Σ x_i (u_i − ½) is highest. That is a linear
programme over outputs; it is relaxed as the marginals themselves were, at a low temperature, and
where the relaxation leaves a choice, variables are set one after the other, depth first. What is
found is held against all factors, so it is an output; if there is any, it is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.polytope.point import LocalPoint
from didyma.structures.composition import Composition
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.layout import Additional, Floats
from didyma.structures.logic import Cardinality

TEMPERATURE = 0.05  # of relaxations of a programme whose scores are between −½ and ½
WHOLE = 1e-6  # how far from 0 or 1 a variable may be that has been decided

Relax = Callable[[FactorGraph | Composition, Floats], LocalPoint]
"""The optimum of a graph at the scores of all parts; raises where there is none."""


def nearest_output(
    graph: FactorGraph | Composition,
    places: Mapping[str, Additional],
    scores: Floats,
    marginals: Floats,
    relax: Relax,
) -> NDArray[np.bool_]:
    """Which variables (or states of variables), d of them, are in the output; ``scores`` forbid.

    Raises where the graph has no output at all.
    """
    d = int(np.prod(graph.score_shape))

    def obeys(output: NDArray[np.bool_]) -> bool:
        return _obeys(graph, places, scores, output)

    if isinstance(graph, FactorGraph):
        unary = marginals.reshape(graph.score_shape)
        best = unary.argmax(axis=1)[:, None] == np.arange(graph.n_states)
        if obeys(best.ravel()):  # then none is nearer
            return best.ravel()
    gains = np.zeros(len(scores))
    gains[:d] = marginals - 0.5
    nearest = _search(graph, np.where(np.isneginf(scores), -np.inf, gains), d, {}, relax, obeys)
    if nearest is None:
        raise DataError("the graph has no output: its factors contradict each other")
    return nearest


def _obeys(
    graph: FactorGraph | Composition,
    places: Mapping[str, Additional],
    scores: Floats,
    output: NDArray[np.bool_],
) -> bool:
    """Whether this is an output of all factors, without a part that scores −∞."""
    first, second = np.array(graph.edges, np.int64).reshape(-1, 2).T
    if isinstance(graph, FactorGraph):
        states = output.reshape(graph.score_shape)
        pairs = (states[first][:, :, None] & states[second][:, None, :]).ravel()
        whole, variables = bool((states.sum(axis=1) == 1).all()), states.argmax(axis=1)
    else:
        pairs, whole, variables = output[first] & output[second], True, output
    chosen = np.concatenate([output, pairs])
    if not whole or np.isneginf(scores[: len(chosen)][chosen]).any():
        return False
    if not all(one.holds(variables) for one in graph.logic):
        return False
    if isinstance(graph, FactorGraph):
        return True
    forbidden = np.where(np.isneginf(scores[len(output) :]), -np.inf, 0.0)
    additional = {
        key: forbidden[place.start : place.stop].reshape(place.shape)
        for key, place in places.items()
        if key != "pairwise"
    }
    shares = graph.shares(additional)
    return all(factor.allows(output, share) for factor, share in zip(graph.factors, shares))


def _search(
    graph: FactorGraph | Composition,
    parts: Floats,
    d: int,
    decided: dict[int, bool],
    relax: Relax,
    obeys: Callable[[NDArray[np.bool_]], bool],
) -> NDArray[np.bool_] | None:
    try:
        point = relax(*_decide(graph, parts, decided))
    except DataError:
        return None
    u = point.parts[:d]
    undecided = [v for v in range(d) if v not in decided]
    open_ = [v for v in undecided if WHOLE < u[v] < 1.0 - WHOLE]
    if not open_ and obeys(u > 0.5):
        return u > 0.5
    if not undecided:
        return None
    # A whole point that is no output comes of a relaxation that has not converged.
    variable = max(open_ or undecided, key=lambda v: u[v])
    for value in (True, False):
        output = _search(graph, parts, d, {**decided, variable: value}, relax, obeys)
        if output is not None:
            return output
    return None


def _decide(
    graph: FactorGraph | Composition, parts: Floats, decided: dict[int, bool]
) -> tuple[FactorGraph | Composition, Floats]:
    """The same with some variables out, and some in."""
    parts = parts.copy()
    parts[[v for v, value in decided.items() if not value]] = -np.inf
    chosen = [v for v, value in decided.items() if value]
    if isinstance(graph, FactorGraph):
        states = parts[: graph.n_variables * graph.n_states].reshape(-1, graph.n_states)
        for v in chosen:
            variable, state = divmod(v, graph.n_states)
            states[variable, np.arange(graph.n_states) != state] = -np.inf
        return graph, parts
    there = [Cardinality((v,), 1, 1) for v in chosen]
    smaller = Composition(graph.n_variables, graph.factors, graph.edges, [*graph.logic, *there])
    return smaller, parts
