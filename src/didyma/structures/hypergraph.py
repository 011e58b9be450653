"""Hypergraph: a dynamic programme as flat integers, over which every algorithm is written once.

A *plan* says which values are added and which sums compete; scores are the only floats. The
algorithms are those of `didyma._core.hypergraph`: the best derivation, the k best, log partition
and marginals, samples. They see a plan as one array of integers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.batches import (
    as_batch,
    as_flags,
    as_lengths,
    check_scores,
    declared,
    flatten,
    lay_out_additional,
)
from didyma.structures.compiled import CompiledStructure, expectations_by
from didyma.structures.layout import Floats, Layout, Lengths, Parts
from didyma.structures.oracles import best_outputs

LARGEST_GRAPH = 2**24
"""Edges beyond which a plan is refused: it would take a quarter of a gigabyte."""

SHAPES = 64  # whose plans are kept

Integers = NDArray[np.int64]


class Plan:
    """A hypergraph that grows: vertices are added in the order in which they can be computed.

    A *slot* is a value: slots 0 to n_scores − 1 are parts, the next n_extra are additional scores,
    ``zero`` is nothing at all, and each vertex that is added has the next one.

    >>> plan = Plan(n_scores=3)  # of 3 options one, or the first two together
    >>> both = plan.add([(0, 1)])
    >>> goal = plan.add([(0, plan.zero), (1, plan.zero), (2, plan.zero), (both, plan.zero)])
    >>> plan.finish(goal).heads.tolist()
    [0, 1, 1, 1, 1]
    """

    def __init__(self, n_scores: int, n_extra: int = 0) -> None:
        self.n_scores, self.n_extra = n_scores, n_extra
        self.zero = n_scores + n_extra
        self._counts: list[int] = []  # edges of each vertex
        self._tails: list[int] = []

    def add(self, edges: Iterable[tuple[int, int]]) -> int:
        """One vertex, whose edges are pairs of slots; its slot. Without edges it is impossible."""
        before = len(self._tails)
        for left, right in edges:
            self._tails.append(left)
            self._tails.append(right)
        self._counts.append((len(self._tails) - before) // 2)
        self._check()
        return self.zero + len(self._counts)

    def add_all(self, left: Any, right: Any) -> Integers:
        """One vertex for each row of pairs left[..., i], right[..., i]; none may name another.

        Both are broadcast against each other; the slots have the shape of all axes but the last.
        """
        left, right = np.broadcast_arrays(left, right)
        *shape, n_edges = left.shape
        n = int(np.prod(shape))
        self._counts += [n_edges] * n
        self._tails += np.stack([left, right], axis=-1).ravel().tolist()
        self._check()
        last = self.zero + len(self._counts)
        return np.arange(last - n + 1, last + 1).reshape(shape)

    def _check(self) -> None:
        if len(self._tails) > 2 * LARGEST_GRAPH:
            raise DataError(f"the dynamic programme needs more than {LARGEST_GRAPH} edges")

    def finish(self, goals: ArrayLike) -> Hypergraph:
        """The hypergraph; ``goals`` are slots, one for each length (or combination of lengths)."""
        n = len(self._counts)
        heads = np.repeat(np.arange(n), self._counts)
        tails = np.array(self._tails, np.int64).reshape(-1, 2)
        slots = np.asarray(goals, dtype=np.int64)
        return Hypergraph(self.n_scores, self.n_extra, heads, tails, n, slots)


@dataclass(frozen=True, eq=False)
class Hypergraph:
    """A directed acyclic hypergraph with ordered ends: all outputs of a dynamic programme.

    Edge e adds the values of slots ``tails[e]`` for vertex ``heads[e]``, in ascending order. An
    instance of lengths (n, m, ...) is a derivation of slot ``goals[n, m, ...]``, and needs no
    vertex before ``firsts[n, m, ...]``.

    >>> plan = Plan(n_scores=2)
    >>> goal = plan.add([(0, plan.zero), (1, plan.zero)])  # one of two options
    >>> graph = plan.finish(goal)
    >>> graph.n_vertices, graph.tails.tolist()
    (1, [[0, 2], [1, 2]])
    """

    n_scores: int
    n_extra: int
    heads: Integers
    tails: Integers
    n_vertices: int
    goals: Integers
    firsts: Integers | int = 0

    @property
    def base(self) -> int:
        """Slot of the first vertex."""
        return self.n_scores + self.n_extra + 1

    @property
    def n_values(self) -> int:
        """Number of slots."""
        return self.base + self.n_vertices

    @cached_property
    def dims(self) -> Integers:
        """All of it as kernels read it."""
        firsts = self.base + np.broadcast_to(self.firsts, self.goals.shape)
        vertices = 1 + self.goals.ndim + 2 * self.goals.size
        edges = vertices + self.n_vertices + 1
        starts = np.searchsorted(self.heads, np.arange(self.n_vertices + 1))
        return np.concatenate(
            [
                [vertices],
                self.goals.shape,
                np.stack([firsts, self.goals], axis=-1).ravel(),
                edges + 2 * starts,
                self.tails.ravel(),
            ]
        ).astype(np.int64)

    @cached_property
    def room(self) -> tuple[int, int]:
        """The most parts, and the most additional ones, of a derivation."""
        from didyma._core.hypergraph import longest

        most = []
        for ones in (slice(self.n_scores), slice(self.n_scores, self.base - 1)):
            values = np.zeros(self.n_values)
            values[ones] = 1.0
            longest(values, self.dims, self.base)
            most.append(int(values[self.goals].max(initial=0.0)))
        return most[0], most[1]

    def reads(self, sizes: Integers) -> NDArray[np.bool_]:
        """Which parts and additional ones the derivations of each instance use, (B, d + f)."""
        distinct, of_instance = np.unique(sizes, axis=0, return_inverse=True)
        rows = [self._read_by(tuple(size)) for size in distinct.tolist()]
        return np.array(rows, bool).reshape(len(distinct), self.base - 1)[of_instance.ravel()]

    def _read_by(self, size: tuple[int, ...]) -> NDArray[np.bool_]:
        from didyma._core.hypergraph import reach

        if size not in self._reads:
            reached = np.zeros(self.n_values, bool)
            reach(self.dims, np.array(size, np.int64), self.base, reached)
            self._reads[size] = reached[: self.base - 1]
        return self._reads[size]

    @cached_property
    def _reads(self) -> dict[tuple[int, ...], NDArray[np.bool_]]:
        return {}

    def over(self, layout: Layout) -> Layout:
        """The same batch for the kernels of hypergraphs."""
        n_parts, n_extra = self.room
        return replace(
            layout,
            dims=self.dims,
            n_parts=n_parts,
            n_extra=n_extra,
            n_work=self.n_values,
            n_index=self.n_vertices + 2,
        )


def join(graphs: Mapping[tuple[int, ...], Hypergraph], extents: tuple[int, ...]) -> Hypergraph:
    """One hypergraph for several lengths, from one each, which has a single goal."""
    goals, firsts = np.zeros((2, *extents), np.int64)
    heads, tails, n = [], [], 0
    for size, graph in graphs.items():
        moved = np.where(graph.tails >= graph.base, graph.tails + n, graph.tails)
        goal = int(graph.goals)
        goals[size], firsts[size] = goal + n if goal >= graph.base else goal, n
        heads.append(graph.heads + n)
        tails.append(moved)
        n += graph.n_vertices
    return Hypergraph(
        graph.n_scores,
        graph.n_extra,
        np.concatenate(heads),
        np.concatenate(tails),
        n,
        goals,
        firsts,
    )


class Planned(CompiledStructure):
    """A structure whose outputs are the derivations of a hypergraph.

    A subclass says what the plan for scores of some shape is, and what its outputs look like;
    argmax, SparseMAP, marginals, k best and samples follow. A part occurs in an output once.

    >>> class OneOf(Planned):
    ...     "One option."
    ...     def plan(self, shape):
    ...         plan = Plan(n_scores=shape[0])
    ...         return plan.finish(plan.add([(k, plan.zero) for k in range(shape[0])]))
    >>> OneOf().predict([0.2, 0.9, 0.1])
    array([False,  True, False])
    """

    kernel: ClassVar[Any] = core.hypergraph
    aligned: ClassVar[bool] = False
    lengths_along: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """The axes of the scores that each length counts; without any, lengths are refused."""

    @abstractmethod
    def plan(self, shape: tuple[int, ...]) -> Hypergraph:
        """The plan for scores of this shape, with a goal for all lengths up to it."""

    def hypergraph(self, shape: tuple[int, ...], sizes: Integers) -> Hypergraph:
        """A plan that has goals for these lengths (B, number of lengths)."""
        return _plan(self, shape)

    def lay_out(self, scores: ArrayLike, lengths: Lengths = None, **additional: Any) -> Layout:
        """Check a batch and lay it out flat; what no output uses may be anything."""
        batch = as_batch(scores, self.ndim)
        shape = batch.shape[1:]
        shapes = declared(self, shape, additional)
        sizes = self._sizes(lengths, len(batch), shape)
        self.check(shape, sizes)
        graph = self.hypergraph(shape, sizes)
        used = graph.reads(sizes)
        scores_and_shapes = {
            name: (additional.get(name), part_shape) for name, part_shape in shapes.items()
        }
        masks, start = {}, graph.n_scores
        for name, part_shape in shapes.items():
            stop = start + int(np.prod(part_shape))
            masks[name] = used[:, start:stop].reshape(len(batch), *part_shape)
            start = stop
        extra, named = lay_out_additional(len(batch), scores_and_shapes, masks)
        mask = used[:, : graph.n_scores].reshape(batch.shape)
        flat = flatten(check_scores(batch, "scores", mask))
        return graph.over(Layout(flat, shape, 0, extra, named, sizes=sizes))

    def check(self, shape: tuple[int, ...], sizes: Integers) -> None:
        """Refuse shapes and lengths for which there is no plan."""

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Parts of the only derivation that has exactly these."""
        chosen = self.flags(outputs, layout)
        extra = np.zeros((1, layout.extra.shape[1]))
        probe = replace(layout, scores=np.where(chosen, 1.0, -np.inf), extra=extra)
        parts, extra_parts, possible = best_outputs(self.kernel, probe)
        wrong = ~possible | ((parts >= 0).sum(axis=1) != chosen.sum(axis=1))
        for b in np.flatnonzero(wrong):
            raise DataError(f"instance {b}: this is no {type(self).__name__}", field="outputs")
        return parts, extra_parts

    def flags(self, outputs: ArrayLike, layout: Layout) -> NDArray[np.bool_]:
        """Which parts outputs have, (B, d); they are boolean arrays in the shape of the scores."""
        graph = self.hypergraph(layout.shape, layout.sizes)
        used = graph.reads(layout.sizes)[:, : graph.n_scores]
        return flatten(as_flags(outputs, used.reshape(len(layout), *layout.shape), layout))

    def _sizes(self, lengths: Lengths, batch: int, shape: tuple[int, ...]) -> Integers:
        """Lengths of all instances, (B, number of lengths)."""
        n = len(self.lengths_along)
        padded = [shape[axes[0]] for axes in self.lengths_along]
        if lengths is None:
            return np.tile(np.array(padded, np.int64), (batch, 1))
        if not n:
            raise DataError(f"{type(self).__name__} takes no lengths", field="lengths")
        values = np.asarray(lengths)
        if n == 1:
            return as_lengths(values, batch, padded[0])[:, None]
        if values.shape == (n,) and batch == 1:
            values = values[None]
        if values.shape != (batch, n):
            raise DataError(
                f"expected shape {(batch, n)}, {n} lengths of each instance, found {values.shape}",
                field="lengths",
            )
        columns = [as_lengths(values[:, i], batch, padded[i]) for i in range(n)]
        return np.stack(columns, axis=1)

    def planned(self, layout: Layout) -> Layout:
        """It is laid out so already."""
        return layout

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """Sums over all derivations."""
        return expectations(layout)


def expectations(layout: Layout) -> tuple[Floats, Floats, Floats]:
    """Log partitions, marginals and those of additional parts, by sums over all derivations."""
    from didyma._core.hypergraph import sums

    return expectations_by(sums, layout, layout.n_work)


@lru_cache(maxsize=SHAPES)
def _plan(structure: Planned, shape: tuple[int, ...]) -> Hypergraph:
    return structure.plan(shape)
