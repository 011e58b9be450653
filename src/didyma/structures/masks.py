"""Masks: large negative numbers that users put where −∞ is meant.

Added to other scores, −1e30 drowns them in rounding. So parts of such scores are forbidden first,
wherever no output that counts can have them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from didyma._core.polytope import extent, has_masks
from didyma.structures.layout import Floats, Layout
from didyma.structures.oracles import best_outputs, total
from didyma.structures.partition import SUSPECT


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
