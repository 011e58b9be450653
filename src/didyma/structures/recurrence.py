"""Recurrence: a structure of your own, written as its dynamic programme, at compiled speed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from didyma.errors import DataError
from didyma.structures.hypergraph import SHAPES, Hypergraph, Integers, Plan, Planned, join


class Recurrence(Planned):
    """Outputs that a recurrence enumerates: write it down, and all algorithms follow.

    `recurrence` is called with the scores of an instance, and additional ones by name, as arrays of
    `Quantity`. It adds them with ``+`` and lets sums compete with `either`, where a program that
    computes a maximum would call ``max``; 0 is nothing, −inf what cannot be. It runs once for each
    shape, in Python; what it has written down runs in compiled code.

    >>> class Spaced(Recurrence):
    ...     "Options of which no two are neighbours."
    ...     def recurrence(self, scores):
    ...         before, best = 0, 0
    ...         for score in scores:
    ...             before, best = best, either(best, before + score)
    ...         return best
    >>> Spaced().predict([1.0, 1.5, 1.0])
    array([ True, False,  True])
    >>> Spaced().marginals([0.0, 0.0, 0.0])  # five sets
    array([0.4, 0.2, 0.4])

    Each output must come about in one way only, or it counts several times in sums; and a part may
    occur in an output once, which is checked (additional ones as often as you like). Outputs are
    boolean arrays in the shape of the scores. ``lengths_along`` names the axes that lengths count:
    the recurrence is given the scores of an instance without its padding. `additional` says which
    additional scores there are.
    """

    @abstractmethod
    def recurrence(self, scores: NDArray[Any], **additional: NDArray[Any]) -> Any:
        """The value of all outputs, as the best of them."""

    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """What the recurrence writes down for scores without padding."""
        return _written(self, shape, tuple(shape[axes[0]] for axes in self.lengths_along))

    def hypergraph(self, shape: tuple[int, ...], sizes: Integers) -> Hypergraph:
        """One plan for each size, side by side."""
        if not self.lengths_along:
            return self.plan(shape)
        full = tuple(shape[axes[0]] for axes in self.lengths_along)
        return _side_by_side(self, shape, tuple(sorted({full, *map(tuple, sizes.tolist())})))


@lru_cache(maxsize=SHAPES)
def _side_by_side(
    structure: Recurrence, shape: tuple[int, ...], sizes: tuple[tuple[int, ...], ...]
) -> Hypergraph:
    extents = tuple(shape[axes[0]] + 1 for axes in structure.lengths_along)
    return join({size: _written(structure, shape, size) for size in sizes}, extents)


@lru_cache(maxsize=SHAPES)
def _written(structure: Recurrence, shape: tuple[int, ...], size: tuple[int, ...]) -> Hypergraph:
    shapes = structure.additional(shape)
    n_extra = sum(int(np.prod(part_shape)) for part_shape in shapes.values())
    draft = _Draft(Plan(int(np.prod(shape)), n_extra), shape)
    scores = draft.leaves(0, shape)
    for length, axes in zip(size, structure.lengths_along):
        for axis in axes:
            scores = scores[(slice(None),) * axis + (slice(length),)]
    start, additional = draft.plan.n_scores, {}
    for name, part_shape in shapes.items():
        additional[name] = draft.leaves(start, part_shape)
        start += additional[name].size
    goal = structure.recurrence(scores, **additional)
    if not isinstance(goal, Quantity):
        goal = draft.number(goal)
        if goal is None:
            raise DataError(f"{type(structure).__name__}: scores of shape {shape} have no output")
    return draft.plan.finish(goal.slot)


class Quantity:
    """A score, or the best of several sums; ``+`` adds two, `either` chooses."""

    def __init__(self, draft: _Draft, slot: int) -> None:
        self._draft = draft
        self._slot = slot

    @property
    def slot(self) -> int:
        """Where it stands in the plan."""
        return self._slot

    @property
    def edge(self) -> tuple[int, int]:
        """The two slots that it adds up."""
        return self.slot, self._draft.plan.zero

    def __add__(self, other: Any) -> Any:
        right = other if isinstance(other, Quantity) else self._draft.number(other)
        if right is None:
            return -np.inf
        return self if right.slot == self._draft.plan.zero else _Sum(self._draft, self, right)

    __radd__ = __add__


class _Sum(Quantity):
    """A sum, which becomes a vertex of its own only where it is not all of an option."""

    def __init__(self, draft: _Draft, left: Quantity, right: Quantity) -> None:
        super().__init__(draft, -1)
        self._left, self._right = left, right

    @property
    def edge(self) -> tuple[int, int]:
        return self._left.slot, self._right.slot

    @property
    def slot(self) -> int:
        if self._slot < 0:
            self._slot = self._draft.sum(self.edge)
        return self._slot


def either(*options: Any) -> Any:
    """The best of several values, given one by one or as one iterable.

    Of nothing but what cannot be it is −inf.

    >>> class Any(Recurrence):
    ...     "Any subset."
    ...     def recurrence(self, scores):
    ...         best = 0
    ...         for score in scores:
    ...             best = either(best, best + score)
    ...         return best
    >>> Any().predict([1.0, -1.0, 0.5])
    array([ True, False,  True])
    """
    if len(options) == 1 and isinstance(options[0], Iterable):
        options = tuple(options[0])
    for option in options:
        if isinstance(option, Quantity):
            return option._draft.either(options)
    numbers = [_check(option) for option in options]
    if numbers.count(0.0) > 1:
        raise DataError("either: nothing (0) is an option twice")
    return 0 if 0.0 in numbers else -np.inf


def _check(number: Any) -> float:
    """A number that may stand among values: 0 or −inf."""
    if not isinstance(number, (int, float, np.number)) or number not in (0, -np.inf):
        raise DataError(
            f"expected a score, a sum or a best of these, 0 or -inf, found {number!r}: other "
            "numbers belong into additional scores"
        )
    return float(number)


class _Draft:
    """A plan, with what it takes to write it down in the order in which values are asked for."""

    def __init__(self, plan: Plan, shape: tuple[int, ...]) -> None:
        self.plan = plan
        self.shape = shape
        self._sums: dict[tuple[int, int], int] = {}
        # the parts below each slot, as bits
        self._below = [1 << part for part in range(plan.n_scores)] + [0] * (plan.n_extra + 1)

    def leaves(self, start: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Values of consecutive slots."""
        array = np.empty(shape, object)
        array.ravel()[:] = [Quantity(self, start + i) for i in range(array.size)]
        return array

    def number(self, number: Any) -> Quantity | None:
        """Nothing for 0, None for −inf."""
        return Quantity(self, self.plan.zero) if _check(number) == 0.0 else None

    def sum(self, edge: tuple[int, int]) -> int:
        """The vertex of a sum, the same for all that add the same."""
        if edge not in self._sums:
            self._sums[edge] = self._add([edge])
        return self._sums[edge]

    def either(self, options: Iterable[Any]) -> Quantity:
        """A vertex with an edge for each option."""
        values = [one if isinstance(one, Quantity) else self.number(one) for one in options]
        edges = [value.edge for value in values if value is not None]
        if len(edges) == 1 and edges[0][1] == self.plan.zero:
            return Quantity(self, edges[0][0])
        return Quantity(self, self._add(edges))

    def _add(self, edges: list[tuple[int, int]]) -> int:
        below = 0
        for left, right in edges:
            twice = self._below[left] & self._below[right]
            if twice:
                part = twice.bit_length() - 1
                place = tuple(int(i) for i in np.unravel_index(part, self.shape))
                raise DataError(f"the part at index {list(place)} can occur twice in an output")
            below |= self._below[left] | self._below[right]
        self._below.append(below)
        return self.plan.add(edges)
