"""Texts as sums of the concepts that their stems occur in."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["concept_cosines"]


@jit
def concept_cosines(
    stems: Any,
    counted: Any,
    begins: Any,
    ends: Any,
    queries: Any,
    bounds: Any,
    rows: Any,
    places: Any,
    starts: Any,
    concepts: Any,
    weights: Any,
    n_concepts: Any,
    out: Any,
) -> None:
    """Fill ``out`` (n_rows,) with the cosine of each row and its query as vectors of concepts.

    A token that is ``counted`` adds the entries ``starts[p]`` to ``starts[p + 1]`` of ``concepts``
    and ``weights``, where p is ``places[stem]``; −1 adds nothing.
    """
    asked, met = np.zeros(n_concepts), np.zeros(n_concepts)
    for q in range(len(queries)):
        _sum(stems, counted, begins, ends, queries[q], places, starts, concepts, weights, asked)
        asked_norm = 0.0
        for c in range(n_concepts):
            asked_norm += asked[c] * asked[c]
        for r in range(bounds[q], bounds[q + 1]):
            out[r] = 0.0
            if asked_norm > 0:
                _sum(stems, counted, begins, ends, rows[r], places, starts, concepts, weights, met)
                product, norm = 0.0, 0.0
                for c in range(n_concepts):
                    product += asked[c] * met[c]
                    norm += met[c] * met[c]
                out[r] = product / sqrt(asked_norm * norm) if norm > 0 else 0.0


@jit
def _sum(
    stems: Any,
    counted: Any,
    begins: Any,
    ends: Any,
    text: Any,
    places: Any,
    starts: Any,
    concepts: Any,
    weights: Any,
    total: Any,
) -> None:
    for c in range(len(total)):
        total[c] = 0.0
    for t in range(begins[text], ends[text]):
        place = places[stems[t]]
        if counted[t] and place >= 0:
            for entry in range(starts[place], starts[place + 1]):
                total[concepts[entry]] += weights[entry]
