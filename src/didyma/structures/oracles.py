"""Oracles: an argmax as the compiled solvers call it, a `didyma._core.structures.Argmax`.

Users put large negative numbers where −∞ is meant. Added to other scores, −1e30 drowns them in
rounding; so parts of such scores are forbidden before a solve, wherever no output that counts can
have them (`mask_unreachable`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import didyma._core.structures as core
from didyma._core.polytope import extent, has_masks
from didyma.errors import DataError
from didyma.structures.layout import Floats, Layout, Parts
from didyma.values import aligned, as_array

SUSPECT = 1e3  # scores so many times lower than the highest is high may be meant as masks


def python_argmax(structure: Any, layout: Layout) -> Any:
    """The oracle that calls a structure's own method `argmax`, and checks what it returns."""
    name = f"{type(structure).__name__}.argmax"
    places = tuple(layout.additional.items())

    def argmax(scores: Floats, extra: Floats, size: NDArray[np.int64]) -> NDArray[np.int64] | None:
        keywords = {
            key: extra[place.start : place.stop].reshape(place.shape) for key, place in places
        }
        if layout.data:
            keywords.update(layout.data[int(size[0])])
        returned = structure.argmax(scores.reshape(layout.shape), **keywords)
        if returned is None and structure.reads_infinity:
            return None
        parts = as_array(returned)
        if parts.ndim == 1 and parts.dtype == np.int64:
            return aligned(parts)
        if parts.dtype == np.bool_:
            raise DataError(
                f"{name} must return indices of parts, returned booleans of shape {parts.shape}: "
                "np.flatnonzero(output) gives the indices of its True"
            )
        if parts.ndim != 1 or (parts.size and not np.issubdtype(parts.dtype, np.integer)):
            raise DataError(
                f"{name} must return one axis of integer part indices, returned {parts.dtype} "
                f"of shape {parts.shape}"
            )
        return aligned(parts.astype(np.int64, copy=False))

    return core.PythonArgmax(name, argmax, structure.concurrent)


def best_outputs(oracle: Any, layout: Layout) -> tuple[Parts, Parts, NDArray[np.bool_]]:
    """The best output of each instance: parts (B, n_parts), additional parts (B, n_extra), both
    padded with −1, and whether any output is possible (B,).
    """
    parts, extra_parts, possible = core.best_outputs(oracle, *layout.arguments)
    return parts, extra_parts, possible


def total(scores: Floats, parts: Parts) -> Floats:
    """Sum of the scores at each row's parts, which end at the first −1."""
    if not scores.shape[1]:
        return np.zeros(len(scores))
    picked = np.take_along_axis(scores, np.maximum(parts, 0).astype(np.int64), axis=1)
    return np.where(parts >= 0, picked, 0.0).sum(axis=1)


def mask_unreachable(oracle: Any, layout: Layout, slack: float) -> Layout:
    """Forbid the parts of outputs that score more than ``slack`` below the best one.

    Not all of them, but those whose low scores must be masks: -1e30 would otherwise drown other
    scores wherever it is added to them. It is certain that none is forbidden wrongly. The other
    parts of an output score at most P, the sum of all positive scores (additional ones counted
    as often as an output can have them), so an output with part p scores at most score(p) + P.
    Any output, here the best of those without a suspicious part, is at most as good as the
    best. Hence score(p) + P < its score − slack puts all outputs with part p too low.
    """
    if not has_masks(layout.scores, layout.extra, SUSPECT):
        return layout
    highest, lowest, positive = extent(layout.scores)
    more, less, _ = extent(layout.extra)
    limit = -SUSPECT * np.maximum(np.maximum(highest, more), 1.0)
    rows = np.flatnonzero(np.minimum(lowest, less) < limit)
    shape = (len(rows), layout.extra.shape[1])
    scores, extra = layout.scores[rows], layout.extra_of(rows)
    extra_has_masks = bool((less < limit).any())
    probe = replace(
        layout,
        scores=_forbid(scores, limit[rows]),
        extra=_forbid(extra, limit[rows]) if extra_has_masks else extra,
        sizes=layout.sizes[rows],
    )
    parts, extra_parts, possible = best_outputs(oracle, probe)
    score = total(scores, parts) + total(np.broadcast_to(extra, shape), extra_parts)
    with np.errstate(over="ignore"):
        rest = (positive + layout.n_extra * np.maximum(more, 0.0))[rows]
        bound = score - slack - rest - 1e-9 * (np.abs(score) + rest)  # the last for rounding
    bound = np.where(possible, np.minimum(bound, limit[rows]), -np.inf)
    masked = layout.scores.copy()
    masked[rows] = _forbid(scores, bound)
    if not extra_has_masks:
        return replace(layout, scores=masked)
    every = np.array(np.broadcast_to(layout.extra, (len(layout), shape[1])), order="C")
    every[rows] = _forbid(extra, bound)
    return replace(layout, scores=masked, extra=every)


def _forbid(scores: Floats, below: Floats) -> Floats:
    # Shared scores are broadcast, and what is made of them would be laid out by columns.
    return np.ascontiguousarray(np.where(scores < below[:, None], -np.inf, scores))
