"""FactorGraph: joint states of many variables, with pairwise scores and logical constraints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.batches import (
    as_batch,
    as_outputs,
    check_range,
    check_scores,
    flatten,
    lay_out_additional,
)
from didyma.structures.compiled import CompiledStructure
from didyma.structures.elimination import (
    LARGEST_PLAN,
    Circuit,
    Relation,
    Term,
    as_hypergraph,
    minimum_fill_order,
    plan,
    postorder,
)
from didyma.structures.hypergraph import Hypergraph, expectations
from didyma.structures.layout import Floats, Layout, Lengths, Parts
from didyma.structures.logic import Cardinality, acyclic, check_edges, check_logic

SMALL = 3  # constraints on so few variables are listed, larger ones are counted along


@dataclass(frozen=True)
class FactorGraph(CompiledStructure):
    """Joint states of variables that are scored alone and in pairs, under hard constraints.

        score(x) = Σ_i scores[i, x_i] + Σ_e pairwise[e, x_i, x_j],   edge e = (i, j)

    Scores are (B, n_variables, n_states), ``pairwise`` is (n_edges, n_states, n_states) or has a
    batch axis first; −∞ forbids a state or a pair. Outputs (B, n_variables) are states. Constraints
    (`ExactlyOne`, `AtMostOne`, `AtLeastOne`, `AtMost`, `Implies`, `Cardinality`) are on binary
    variables, whose state 1 means true.

    >>> from didyma.structures import AtMost
    >>> graph = FactorGraph(3, edges=[(0, 1), (1, 2)], logic=[AtMost(2, [0, 1, 2])])
    >>> agree = 0.5 * np.eye(2)
    >>> graph.predict([[0, 1.0], [0, 0.8], [0, 2.0]], pairwise=[agree, agree])
    array([0, 1, 1])

    Inference is exact, by variable elimination in a minimum-fill order. Its cost grows with the
    treewidth; beyond 2²¹ table entries in all it is refused, and `didyma.local_sparsemap` remains.
    A constraint on many variables is counted along the graph and adds one counter to the width, not
    all its variables. A `Composition` has structures as factors.
    """

    n_variables: int
    n_states: int = 2
    edges: Sequence[tuple[int, int]] = ()
    logic: Sequence[Cardinality] = ()

    kernel: ClassVar[Any] = core.factor_graph
    ndim: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if self.n_variables < 1 or self.n_states < 1:
            raise DataError("expected at least one variable and one state", field="n_variables")
        object.__setattr__(self, "edges", check_edges(self.edges, self.n_variables))
        object.__setattr__(self, "logic", check_logic(self.logic, self.n_variables))
        if self.logic and self.n_states != 2:
            raise DataError(
                f"constraints need binary variables, found {self.n_states} states", field="logic"
            )

    @cached_property
    def circuit(self) -> Circuit:
        """The plan of elimination; raises where the graph is too entangled."""
        # Dense tables are as large as they seem; constraints may leave far less of them.
        largest = LARGEST_PLAN**2 if self.logic else LARGEST_PLAN
        n_states = [self.n_states] * self.n_variables
        relations = [_enumerate(one) for one in self.logic if len(one.variables) <= SMALL]
        order = minimum_fill_order(n_states, self._scopes(relations), largest)
        counted = [one for one in self.logic if len(one.variables) > SMALL and not _vacuous(one)]
        if counted:
            rank = {v: position for position, v in enumerate(postorder(order))}
            for one in counted:
                relations += _count_along(one, rank, n_states)
            order = minimum_fill_order(n_states, self._scopes(relations), largest)
        d, square = self.n_variables * self.n_states, self.n_states**2
        parts = np.arange(d + len(self.edges) * square)
        unary, pairs = parts[:d].reshape(-1, self.n_states), parts[d:].reshape(-1, square)
        terms = [Term((i,), unary[i]) for i in range(self.n_variables)]
        terms += [Term(edge, pairs[e]) for e, edge in enumerate(self.edges)]
        return plan(n_states, terms, relations, order)

    def _scopes(self, relations: Iterable[Relation]) -> list[tuple[int, ...]]:
        return [*self.edges, *(relation.scope for relation in relations)]

    def lay_out(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Layout:
        """Check a batch and lay it out flat; all instances share the graph, without lengths."""
        flat, extra, places = self.check(scores, lengths, **additional)
        circuit = self.circuit
        return Layout(
            flat,
            (self.n_variables, self.n_states),
            self.n_variables,
            extra,
            places,
            len(self.edges),
            dims=circuit.dims,
            sizes=np.zeros((len(flat), 0), np.int64),
            n_work=flat.shape[1] + extra.shape[1] + circuit.n_values,
            n_index=circuit.n_tables,
        )

    def check(
        self, scores: ArrayLike, lengths: Lengths = None, **additional: Any
    ) -> tuple[Floats, Floats, Any]:
        """Scores (B, d) and pairwise scores (1 or B, f) as flat arrays, and their layout."""
        if lengths is not None:
            raise DataError(
                "FactorGraph takes no lengths: forbid states by -inf instead", field="lengths"
            )
        pairwise = additional.pop("pairwise", None)
        self.refuse(additional)
        batch = check_scores(as_batch(scores, self.ndim), "scores")
        if batch.shape[1:] != (self.n_variables, self.n_states):
            raise DataError(
                f"expected {self.n_variables} variables with {self.n_states} states, found shape "
                f"{batch.shape[1:]}",
                field="scores",
            )
        shape = (len(self.edges), self.n_states, self.n_states)
        extra, places = lay_out_additional(len(batch), {"pairwise": (pairwise, shape)})
        return flatten(batch), extra, places

    @property
    def score_shape(self) -> tuple[int, ...]:
        """Shape of the scores of an instance."""
        return self.n_variables, self.n_states

    @cached_property
    def is_forest(self) -> bool:
        """Whether no two factors are joined in two ways."""
        scopes = [*self.edges, *(one.indices for one in self.logic)]
        return acyclic(self.n_variables, scopes)

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Part i·S + state of each variable i, part e·S² + a·S + b of each edge."""
        states = as_outputs(outputs, (self.n_variables,), layout)
        check_range(states, 0, self.n_states, np.ones(states.shape, bool), "state")
        for constraint in self.logic:
            wrong = np.flatnonzero(~constraint.holds(states))
            if len(wrong):
                raise DataError(f"output {wrong[0]} violates {constraint}", field="outputs")
        parts = np.arange(self.n_variables) * self.n_states + states
        first, second = np.array(self.edges, np.int64).reshape(-1, 2).T
        pairs = states[:, first] * self.n_states + states[:, second]
        extra_parts = np.arange(len(self.edges)) * self.n_states**2 + pairs
        return parts.astype(np.int32), extra_parts.astype(np.int32)

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """State of each variable."""
        return parts.astype(np.int64) % self.n_states

    def planned(self, layout: Layout) -> Layout:
        """The circuit of elimination is a hypergraph."""
        return self._hypergraph.over(layout)

    @cached_property
    def _hypergraph(self) -> Hypergraph:
        n_scores = self.n_variables * self.n_states
        return as_hypergraph(self.circuit, n_scores, len(self.edges) * self.n_states**2)

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Sum-product over the same tables."""
        return expectations(self.planned(layout))


def _vacuous(constraint: Cardinality) -> bool:
    return constraint.low <= 0 and constraint.high >= len(constraint.variables)


def _enumerate(constraint: Cardinality) -> Relation:
    """All allowed states of a few variables."""
    scope = tuple(constraint.indices)
    states = np.array(list(product((0, 1), repeat=len(scope))))
    count = (states.astype(bool) != constraint.negated).sum(axis=1)
    return Relation(scope, states[(constraint.low <= count) & (count <= constraint.high)])


def _count_along(
    constraint: Cardinality, rank: dict[int, int], n_states: list[int]
) -> list[Relation]:
    """Count true literals along the variables: c_j = c_{j−1} + x_j, with a new variable per count.

    A count that has reached a lower bound goes no higher where there is no upper one, and no count
    is kept from which the bounds are out of reach.
    """
    literals = sorted(
        zip(constraint.indices, constraint.negated, strict=True), key=lambda one: rank[one[0]]
    )
    m = len(literals)
    top = constraint.low if constraint.high >= m else constraint.high
    relations = []
    before, flipped = literals[0]
    counts = {x: int(x != flipped) for x in (0, 1)}  # of each state of the variable before
    for j, (v, flipped) in enumerate(literals[1:], start=2):
        after = {}
        for (state, count), x in product(counts.items(), (0, 1)):
            reached = count + int(x != flipped)
            reached = min(reached, top) if constraint.high >= m else reached
            if constraint.low - (m - j) <= reached <= top:
                after[state, x] = reached
        if j == m:
            relations.append(Relation((before, v), np.array(list(after))))
            break
        counts_left = sorted(set(after.values()))
        counter = len(n_states)
        n_states.append(len(counts_left))
        rows = np.array([(state, x, counts_left.index(c)) for (state, x), c in after.items()])
        relations.append(Relation((before, v, counter), rows))
        before, counts = counter, dict(enumerate(counts_left))
    return relations
