"""An output near relaxed marginals: feasible for certain, the nearest as a rule.

Among outputs x of a graph, ‖x − u‖² is least where Σ x_i (u_i − ½) is highest. That is a linear
programme over outputs; it is relaxed as the marginals themselves were, at a low temperature, and
where the relaxation leaves a choice, variables are set one after the other, depth first. A whole
point that all factors agree on is an output, so what is found is one; if there is any, it is found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.polytope.point import LocalPoint
from didyma.structure import Floats
from didyma.structures.composition import Composition
from didyma.structures.factor_graph import FactorGraph
from didyma.structures.logic import Cardinality

__all__ = ["TEMPERATURE", "nearest_output"]

TEMPERATURE = 0.05  # of relaxations of a programme whose scores are between −½ and ½
WHOLE = 1e-6  # how far from 0 or 1 a variable may be that has been decided

Relax = Callable[[FactorGraph | Composition, Floats], LocalPoint]
"""The optimum of a graph at the scores of all parts; raises where there is none."""


def nearest_output(
    graph: FactorGraph | Composition, scores: Floats, marginals: Floats, relax: Relax
) -> NDArray[np.bool_]:
    """Which variables (or states of variables), d of them, are in the output; ``scores`` forbid.

    Raises where the graph has no output at all.
    """
    if (
        isinstance(graph, FactorGraph)
        and (states := _best_states(graph, scores, marginals)) is not None
    ):
        return states
    d = int(np.prod(graph.score_shape))
    gains = np.zeros(len(scores))
    gains[:d] = marginals - 0.5
    found = _search(graph, np.where(np.isneginf(scores), -np.inf, gains), d, {}, relax)
    if found is None:
        raise DataError("the graph has no output: its factors contradict each other")
    return found


def _best_states(graph: FactorGraph, scores: Floats, marginals: Floats) -> NDArray[np.bool_] | None:
    """The most probable state of each variable, if that is an output: then none is nearer."""
    n, n_states = graph.score_shape
    states = marginals.reshape(n, n_states).argmax(axis=1)
    first, second = np.array(graph.edges, np.int64).reshape(-1, 2).T
    pairs = states[first] * n_states + states[second]
    chosen = np.concatenate(
        [
            np.arange(n) * n_states + states,
            n * n_states + np.arange(len(pairs)) * n_states**2 + pairs,
        ]
    )
    possible = scores[chosen].min() > -np.inf
    if not possible or not all(one.holds(states) for one in graph.logic):
        return None
    return (states[:, None] == np.arange(n_states)).ravel()


def _search(
    graph: FactorGraph | Composition,
    parts: Floats,
    d: int,
    decided: dict[int, bool],
    relax: Relax,
) -> NDArray[np.bool_] | None:
    try:
        point = relax(*_decide(graph, parts, decided))
    except DataError:
        return None
    u = point.parts[:d]
    open_ = [v for v in range(d) if v not in decided and WHOLE < u[v] < 1.0 - WHOLE]
    if not open_:
        return u > 0.5
    variable = max(open_, key=lambda v: u[v])
    for value in (True, False):
        found = _search(graph, parts, d, {**decided, variable: value}, relax)
        if found is not None:
            return found
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
    kept = Composition(graph.n_variables, graph.factors, graph.edges, [*graph.logic, *there])
    return kept, parts
