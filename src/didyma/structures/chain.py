"""Chain: one tag per position, each depending on the tag before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

import didyma._core.structures as core
from didyma.errors import DataError
from didyma.structures.batches import (
    as_batch,
    as_lengths,
    as_outputs,
    check_range,
    check_scores,
    flatten,
    lay_out_additional,
)
from didyma.structures.compiled import CompiledStructure, expectations_by
from didyma.structures.hypergraph import SHAPES, Hypergraph, Plan
from didyma.structures.layout import Floats, Layout, Lengths, Parts


class Chain(CompiledStructure):
    """One of T tags at each of n positions: scores (B, n, T), outputs (B, n) are tags.

    The score of tags t is ``start[t₁] + Σᵢ scores[i, tᵢ] + Σᵢ transitions[tᵢ, tᵢ₊₁] + end[tₙ]``,
    where n is the instance's own length. All but ``scores`` are optional:

    - ``transitions`` (T, T), the same everywhere; (B, T, T) or (B, 1, T, T), for each instance its
      own; (n − 1, T, T), one matrix between each two positions; or (B, n − 1, T, T), both;
    - ``start`` and ``end`` (T,) or (B, T).

    Outputs are padded with −1 beyond the length. Of equally good tags the lowest wins, the last
    position choosing first.

    >>> Chain().predict([[1.0, 0.0], [0.4, 0.0], [0.0, 1.0]], transitions=[[0, -2], [0, 0]])
    array([0, 0, 0])
    >>> outputs, scores = Chain().k_best([[1.0, 0.0], [0.5, 0.25]], k=3)
    >>> outputs.tolist(), scores.tolist()
    ([[0, 0], [0, 1], [1, 0]], [1.5, 1.25, 0.5])
    """

    kernel: ClassVar[Any] = core.chain
    ndim: ClassVar[int] = 2

    def lay_out(
        self,
        scores: ArrayLike,
        lengths: Lengths = None,
        *,
        transitions: ArrayLike | None = None,
        start: ArrayLike | None = None,
        end: ArrayLike | None = None,
        **additional: ArrayLike | None,
    ) -> Layout:
        """Check a batch and lay it out flat; additional scores are transitions, start, end."""
        self.refuse(additional)
        batch = as_batch(scores, self.ndim)
        size, n, n_tags = batch.shape
        if n_tags == 0:
            raise DataError(
                f"expected at least one tag, found shape {np.shape(scores)}", field="scores"
            )
        sizes = as_lengths(lengths, size, n)[:, None]
        tied, each = (n_tags, n_tags), (max(n - 1, 0), n_tags, n_tags)
        steps = each if _per_step(transitions, size, each) else tied
        if transitions is not None and steps == tied and np.ndim(transitions) == 4:
            transitions = np.reshape(transitions, (size, *tied))
        extra, named = lay_out_additional(
            size,
            {
                "transitions": (transitions, steps),
                "start": (start, (n_tags,)),
                "end": (end, (n_tags,)),
            },
            {} if steps == tied else {"transitions": _every_tag(np.arange(each[0]) < sizes - 1, 2)},
        )
        used = None if lengths is None else _every_tag(np.arange(n) < sizes, 1)
        f = extra.shape[1]
        dims = [n_tags, 0 if steps == tied else n_tags**2, f - 2 * n_tags, f - n_tags]
        return Layout(
            flatten(check_scores(batch, "scores", used)),
            batch.shape[1:],
            n_parts=n,
            extra=extra,
            additional=named,
            n_extra=n + 1,
            dims=np.array(dims, np.int64),
            sizes=sizes,
            n_work=n * n_tags,
        )

    def encode(self, outputs: ArrayLike, layout: Layout) -> tuple[Parts, Parts]:
        """Parts are (position, tag); additional ones the transitions, then start and end."""
        n, n_tags = layout.shape
        _, stride, start, end = layout.dims
        tags = as_outputs(outputs, (n,), layout)
        position = np.arange(n)
        used = position < layout.sizes
        check_range(tags, 0, n_tags, used, "tag")
        parts = np.where(used, position * n_tags + tags, -1)
        rows, last = np.arange(len(tags)), layout.sizes[:, 0] - 1
        extra_parts = np.full((len(tags), layout.n_extra), -1, np.int32)
        steps = position[:-1] * stride + tags[:, :-1] * n_tags + tags[:, 1:]
        extra_parts[:, : max(n - 1, 0)] = np.where(used[:, 1:], steps, -1)
        rows = rows[last >= 0]
        last = last[rows]
        extra_parts[rows, last] = start + tags[rows, :1].ravel()
        extra_parts[rows, last + 1] = end + tags[rows, last]
        return parts.astype(np.int32), extra_parts

    def decode(self, parts: Parts, layout: Layout) -> NDArray[np.int64]:
        """Tags, −1 beyond the length."""
        return np.where(parts >= 0, parts % layout.shape[1], -1).astype(np.int64)

    def planned(self, layout: Layout) -> Layout:
        """Tag by tag, the best beginning that ends there."""
        n_tags, stride, start, end = layout.dims.tolist()
        n_extra = layout.extra.shape[1]
        return _plan(layout.shape[0], n_tags, stride, start, end, n_extra).over(layout)

    def _k_best(self, layout: Layout, k: int) -> tuple[Parts, Floats]:
        """Viterbi with k best beginnings for each tag."""
        n, n_tags = layout.shape
        tags = np.full((len(layout), k, n), -1, np.int64)
        totals = np.full((len(layout), k), -np.inf)
        core.k_best_chains(layout.scores, layout.extra, layout.dims, layout.sizes, tags, totals)
        parts = np.where(tags >= 0, np.arange(n) * n_tags + tags, -1)
        return parts.astype(np.int32), totals

    def expectations(self, layout: Layout) -> tuple[Floats, Floats, Floats]:
        """The chain's log partition and marginals, by forward-backward."""
        from didyma._core.marginals import forward_backward

        return expectations_by(forward_backward, layout)


def _per_step(transitions: ArrayLike | None, batch: int, each: tuple[int, int, int]) -> bool:
    """Whether there is a matrix between each two positions; other shapes are refused.

    Of n − 1 matrices for n − 1 instances nobody can tell whether they are of steps or of instances.
    """
    steps, n_tags, _ = each
    tied, per_instance = (n_tags, n_tags), (batch, n_tags, n_tags)
    shape = tied if transitions is None else np.shape(transitions)
    if shape == each == per_instance and batch > 1:
        raise DataError(
            f"expected another shape than {shape}: for {batch} instances of {steps} steps it is "
            f"not clear whose matrices these are; give {(batch, 1, *tied)}, transitions[:, None], "
            f"for one per instance, or {(batch, *each)}, repeated for each instance, for one per "
            "step",
            field="transitions",
        )
    if shape in (each, (batch, *each)):
        return True
    if shape not in (tied, per_instance, (batch, 1, *tied)):
        raise DataError(
            f"expected shape {tied}, {per_instance} for one per instance, {each} for one per step, "
            f"or {(batch, *each)} for one per instance and step, found {shape}",
            field="transitions",
        )
    return False


@lru_cache(maxsize=SHAPES)
def _plan(n: int, n_tags: int, stride: int, start: int, end: int, n_extra: int) -> Hypergraph:
    plan = Plan(n * n_tags, n_extra)
    tags, d = np.arange(n_tags), plan.n_scores
    goals = [plan.zero]
    arrived = d + start + tags
    for i in range(n):
        best = plan.add_all(arrived[:, None], (i * n_tags + tags)[:, None])
        goals.append(int(plan.add_all(best, d + end + tags)))
        if i < n - 1:
            step = d + i * stride + tags * n_tags + tags[:, None]  # from tags along a row
            arrived = plan.add_all(best, step)
    return plan.finish(goals)


def _every_tag(used: NDArray[np.bool_], axes: int) -> NDArray[np.bool_]:
    """Positions that are used, with axes for their tags."""
    return used.reshape(*used.shape, *[1] * axes)


@dataclass(frozen=True)
class DistanceBins:
    """Nine weights for all transitions of an alignment, where tags are positions of another text.

    They are, in this order: starting at the first tag or elsewhere; ending at the last tag or
    elsewhere; and moving by −2 or less, −1, 0, +1, +2 or more. ``start`` (T,), ``end`` (T,) and
    ``transitions`` (T, T) are indices of weights, so one indexing gives scores, in NumPy and in
    torch, whose gradients then return to the nine weights.

    With one number of tags per instance T is the largest and ``end`` is (B, T); forbid the tags
    beyond an instance's own with scores of −inf.

    >>> bins = DistanceBins(n_tags=4)
    >>> weights = np.array([0.5, 0, 0.5, 0, -2, -1, 0, 1, -1])  # prefers to move by one
    >>> additional = {name: weights[index] for name, index in bins.indices().items()}
    >>> Chain().predict(np.zeros((4, 4)), **additional)
    array([0, 1, 2, 3])
    """

    n_tags: int | Sequence[int]
    n_weights: ClassVar[int] = 9

    @property
    def start(self) -> NDArray[np.int64]:
        """0 for the first tag, 1 for the others."""
        return (np.arange(np.max(self.n_tags)) > 0).astype(np.int64)

    @property
    def end(self) -> NDArray[np.int64]:
        """2 for the last tag, 3 for the others."""
        last = np.asarray(self.n_tags)[..., None] - 1
        return 2 + (np.arange(np.max(self.n_tags)) != last).astype(np.int64)

    @property
    def transitions(self) -> NDArray[np.int64]:
        """4 to 8, for the distance b − a clipped to ±2."""
        tags = np.arange(np.max(self.n_tags), dtype=np.int64)
        return 6 + np.clip(tags - tags[:, None], -2, 2)

    def indices(self) -> dict[str, NDArray[np.int64]]:
        """All three, by the names under which a `Chain` takes them."""
        return {"transitions": self.transitions, "start": self.start, "end": self.end}
