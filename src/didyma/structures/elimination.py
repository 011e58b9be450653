"""Variable elimination, planned once: the tables to build, in which order, from which entries.

Eliminating a variable x from a sum of terms joins all terms that mention x into one table over x
and its neighbours, whose maximum (or log-sum-exp) over x is a new term over the neighbours. The
order is chosen by minimum fill. Only the combinations that the hard constraints allow are ever
listed, so a table is a list of rows, each a few indices of values to be added: the whole plan is a
circuit that the core evaluates (`structures/elimination.hpp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.structures.hypergraph import Hypergraph, Plan

LARGEST_PLAN = 2**21
"""Rows of all tables together beyond which exact inference is refused."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Relation:
    """The allowed states (rows) of the variables in ``scope`` (columns)."""

    scope: tuple[int, ...]
    rows: Integers


@dataclass(frozen=True, eq=False)
class Term:
    """A table of scores: the slot of the value of each combination of states of ``scope``.

    ``keys`` are the combinations that have a value, or None if all have; the last variable of the
    scope runs fastest.
    """

    scope: tuple[int, ...]
    slots: Integers
    keys: Integers | None = None
    source: int = -1  # the table that computes them

    def find(self, keys: Integers) -> Integers:
        """Slots of these combinations."""
        return self.slots[keys if self.keys is None else np.searchsorted(self.keys, keys)]


@dataclass(frozen=True, eq=False)
class Circuit:
    """The plan as the integers that the kernel reads, and the number of values it computes."""

    dims: Integers
    n_values: int
    n_tables: int
    width: int  # variables of the largest table less one: an upper bound of the treewidth


def as_hypergraph(circuit: Circuit, n_scores: int, n_extra: int) -> Hypergraph:
    """The same sums as pairs: a row of several terms becomes a chain of vertices."""
    plan = Plan(n_scores, n_extra)
    n_leaves = n_scores + n_extra
    slots = np.concatenate([np.arange(n_leaves), np.zeros(circuit.n_values, np.int64)])
    dims = circuit.dims
    goal = plan.zero
    for n_out, n_terms, out, place, is_root in dims[2 : 2 + 5 * circuit.n_tables].reshape(-1, 5):
        first = dims[place + n_terms : place + n_terms + n_out + 1]
        start = place + n_terms + n_out + 1
        rows = slots[dims[start : start + first[-1] * n_terms]].reshape(-1, n_terms)
        sums = rows[:, 0]
        for column in rows.T[1:-1]:
            sums = plan.add_all(sums[:, None], column[:, None])
        last = rows[:, -1] if n_terms > 1 else np.full(len(rows), plan.zero)
        edges = np.stack([sums, last], axis=1).tolist()
        for o in range(n_out):
            slots[out + o] = plan.add(edges[first[o] : first[o + 1]])
        if is_root:
            goal = plan.add([(goal, int(slots[out]))])
    return plan.finish(goal)


def minimum_fill_order(
    n_states: Sequence[int], scopes: Iterable[Sequence[int]], largest: float
) -> dict[int, set[int]]:
    """Order of elimination in which each step joins as few new pairs of variables as possible.

    The keys are the order, the values each variable's neighbours at its turn. Raises once the
    tables have more than ``largest`` entries.
    """
    n_variables = len(n_states)
    neighbours: list[set[int]] = [set() for _ in n_states]
    for scope in scopes:
        for v in scope:
            neighbours[v].update(scope)
    for v in range(n_variables):
        neighbours[v].discard(v)

    def cost(v: int) -> tuple[int, int, int]:
        around = neighbours[v]
        fill = sum(1 for a, b in combinations(around, 2) if b not in neighbours[a])
        return fill, len(around), v

    costs = [cost(v) for v in range(n_variables)]
    queue = list(costs)
    heapify(queue)
    order: dict[int, set[int]] = {}
    entries = width = 0
    while queue:
        entry = heappop(queue)
        v = entry[-1]
        if v in order or entry != costs[v]:
            continue
        around = order[v] = neighbours[v]
        width = max(width, len(around))
        entries += prod(n_states[w] for w in (v, *around))
        if entries > largest:
            raise _too_large(width)
        touched = set(around)
        for a in around:
            if entry[0]:  # new pairs change the costs of those who know both
                touched |= neighbours[a]
            neighbours[a] |= around
            neighbours[a] -= {a, v}
        for a in touched - order.keys():
            if (new := cost(a)) != costs[a]:
                costs[a] = new
                heappush(queue, new)
    return order


def postorder(order: Mapping[int, set[int]]) -> list[int]:
    """The variables in an order in which the subgraphs that an elimination separates are runs."""
    rank = {v: position for position, v in enumerate(order)}
    children: dict[int, list[int]] = {v: [] for v in order}
    waiting = []
    for v, around in order.items():
        if around:
            children[min(around, key=rank.__getitem__)].append(v)
        else:
            waiting.append(v)
    visited = []
    while waiting:
        v = waiting.pop()
        visited.append(v)
        waiting.extend(children[v])
    return visited[::-1]


def plan(
    n_states: Sequence[int],
    terms: Sequence[Term],
    relations: Sequence[Relation],
    order: Iterable[int],
) -> Circuit:
    """The circuit that eliminates all variables in this order.

    ``terms`` are the scores, ``relations`` the hard constraints, ``n_states[v]`` the states of v.
    """
    return _Planner(n_states, order).run(terms, relations)


class _Planner:
    def __init__(self, n_states: Sequence[int], order: Iterable[int]) -> None:
        self.n_states = n_states
        self.order = list(order)
        self.rank = {v: position for position, v in enumerate(self.order)}
        self.n_rows = 0
        self.n_values = 0
        self.width = 0
        self.fields: list[list[int]] = []
        self.blocks: list[Integers] = []

    def run(self, terms: Sequence[Term], relations: Sequence[Relation]) -> Circuit:
        self.n_values = sum(len(term.slots) for term in terms)
        n_scores = self.n_values
        due_terms: list[list[Term]] = [[] for _ in self.order]
        due_relations: list[list[Relation]] = [[] for _ in self.order]
        for term in terms:
            due_terms[self._turn(term.scope)].append(term)
        for relation in relations:
            due_relations[self._turn(relation.scope)].append(relation)
        for position, v in enumerate(self.order):
            message, support = self._eliminate(v, due_terms[position], due_relations[position])
            if message is not None and message.scope:
                due_terms[self._turn(message.scope)].append(message)
            if support is not None:
                due_relations[self._turn(support.scope)].append(support)
        header = [self.n_states[terms[0].scope[0]], len(self.fields)]
        place = len(header) + sum(map(len, self.fields))
        for field, block in zip(self.fields, self.blocks, strict=True):
            field[3] = place
            place += len(block)
        dims = np.concatenate(
            [np.array(header), np.array(self.fields, np.int64).ravel(), *self.blocks]
        )
        return Circuit(
            dims.astype(np.int64), self.n_values - n_scores, len(self.fields), self.width
        )

    def _turn(self, scope: tuple[int, ...]) -> int:
        """Position of the first variable of the scope in the order of elimination."""
        return min(self.rank[v] for v in scope)

    def _eliminate(
        self, v: int, terms: list[Term], relations: list[Relation]
    ) -> tuple[Term | None, Relation | None]:
        """Join all that mentions v; the maximum over v, and which of its entries can exist."""
        scopes = [*(term.scope for term in terms), *(relation.scope for relation in relations)]
        separator = tuple(sorted(set().union(*scopes) - {v}))
        scope = (*separator, v)
        self.width = max(self.width, len(separator))
        rows = self._join(scope, relations)
        rows = rows[np.argsort(self._keys(rows, scope, scope), kind="stable")]
        keys, first = np.unique(self._keys(rows, scope, separator), return_index=True)
        if terms:
            alone = [term for term in terms if term.scope == (v,)]
            if len(alone) > 1 and separator:  # add what concerns v alone once, not for each row
                states = np.unique(rows[:, -1])
                every = np.arange(len(states))
                merged = self._table((v,), states[:, None], alone, states, every, (v,))
                terms = [merged, *(term for term in terms if term.scope != (v,))]
            message = self._table(scope, rows, terms, keys, first, separator)
        complete = len(keys) == prod(self.n_states[w] for w in separator)
        support = None if complete else Relation(separator, rows[first, :-1])
        return (message if terms else None), support

    def _table(
        self,
        scope: tuple[int, ...],
        rows: Integers,
        terms: list[Term],
        keys: Integers,
        first: Integers,
        separator: tuple[int, ...],
    ) -> Term:
        """Add the table whose outputs are the highest sums of the rows from each ``first`` on."""
        slots = np.stack([t.find(self._keys(rows, scope, t.scope)) for t in terms], axis=1)
        if slots.shape == (len(keys), 1) and separator:  # nothing to add, nothing to choose
            return Term(separator, slots[:, 0], keys, terms[0].source)
        sources = [term.source for term in terms]
        self.blocks.append(np.concatenate([sources, first, [len(rows)], slots.ravel()]))
        self.fields.append([len(keys), len(terms), self.n_values, 0, int(not separator)])
        out = np.arange(self.n_values, self.n_values + len(keys))
        self.n_values += len(keys)
        return Term(separator, out, keys, len(self.fields) - 1)

    def _join(self, scope: tuple[int, ...], relations: list[Relation]) -> Integers:
        """Combinations of states of ``scope`` that all relations allow."""
        joined_scope: tuple[int, ...] = ()
        rows = np.zeros((1, 0), np.int64)
        waiting = list(relations)
        while waiting:  # those that share most with what is known restrict it first
            best = max(
                waiting, key=lambda one: (len({*one.scope} & {*joined_scope}), -len(one.rows))
            )
            waiting.remove(best)
            joined_scope, rows = self._join_two(joined_scope, rows, best)
        for w in scope:
            if w not in joined_scope:
                states = Relation((w,), np.arange(self.n_states[w])[:, None])
                joined_scope, rows = self._join_two(joined_scope, rows, states)
        if not len(rows):
            raise DataError("the constraints contradict each other: no output exists")
        self.n_rows += len(rows)
        return rows[:, [joined_scope.index(w) for w in scope]]

    def _join_two(
        self, scope: tuple[int, ...], rows: Integers, other: Relation
    ) -> tuple[tuple[int, ...], Integers]:
        shared = tuple(w for w in other.scope if w in scope)
        new = [column for column, w in enumerate(other.scope) if w not in scope]
        keys = self._keys(other.rows, other.scope, shared)
        by_key = np.argsort(keys, kind="stable")
        wanted = self._keys(rows, scope, shared)
        low = np.searchsorted(keys[by_key], wanted, side="left")
        counts = np.searchsorted(keys[by_key], wanted, side="right") - low
        total = int(counts.sum())
        if self.n_rows + total > LARGEST_PLAN:
            raise _too_large(self.width)
        starts = np.cumsum(counts) - counts
        matches = by_key[np.arange(total) + np.repeat(low - starts, counts)]
        joined = np.hstack([np.repeat(rows, counts, axis=0), other.rows[matches][:, new]])
        return (*scope, *(other.scope[column] for column in new)), joined

    def _keys(self, rows: Integers, scope: tuple[int, ...], wanted: tuple[int, ...]) -> Integers:
        """One integer per row for the states of the wanted variables, last one fastest."""
        keys = np.zeros(len(rows), np.int64)
        for w in wanted:
            keys = keys * self.n_states[w] + rows[:, scope.index(w)]
        return keys


def _too_large(width: int) -> DataError:
    return DataError(
        f"exact inference would need more than {LARGEST_PLAN} table entries, in an order of "
        f"elimination of width {width} or more (an estimate of the treewidth): use local "
        "inference, didyma.local_sparsemap"
    )
