"""Measure a ranking.

Arrays come query by query: query ``q`` owns the slots ``starts[q]:starts[q + 1]``, best first once
they are ranked. Every measure is an expectation over all orders of tied slots, where ``tied[s]``
says that slot ``s`` has the score of slot ``s - 1``; with nothing tied it is the measure itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit_light

__all__ = [
    "average_precision",
    "discounted_gain",
    "first_relevant",
    "roc_area",
    "share_ties",
]


@jit_light
def block(relevant: Any, tied: Any, slot: int, stop: int) -> Any:
    """Where the slots tied with ``slot`` end, and how many of them are relevant."""
    end, hits = slot + 1, int(relevant[slot])
    while end < stop and tied[end]:
        hits += relevant[end]
        end += 1
    return end, hits


@jit_light
def average_precision(relevant: Any, tied: Any, starts: Any, n_relevant: Any, cutoff: int) -> Any:
    """E[AP] = (1/P) Σ_blocks Σ_q (r/m) (R + 1 + (q-1)(r-1)/(m-1)) / (t+q), over ranks t+q ≤ cutoff.

    A block of m tied slots holds r relevant ones and follows t slots, R of them relevant.
    """
    values = np.zeros(len(starts) - 1)
    for query in range(len(values)):
        start, stop = starts[query], starts[query + 1]
        if n_relevant[query] == 0:
            continue
        above, total, slot = 0, 0.0, start
        while slot < stop and slot - start < cutoff:
            end, hits = block(relevant, tied, slot, stop)
            if hits:
                size = end - slot
                step = (hits - 1) / max(size - 1, 1)
                for q in range(min(end - start, cutoff) - (slot - start)):
                    total += hits / size * (above + 1 + q * step) / (slot - start + q + 1)
            above += hits
            slot = end
        values[query] = total / n_relevant[query]
    return values


@jit_light
def first_relevant(relevant: Any, tied: Any, starts: Any, worth: Any) -> Any:
    """E[worth of the rank of the first relevant slot]; ``worth[i]`` is that of rank i + 1.

    In a block of m with r relevant, the first one comes q-th with C(m-q, r-1) / C(m, r).
    """
    values = np.zeros(len(starts) - 1)
    for query in range(len(values)):
        start, stop = starts[query], starts[query + 1]
        slot = start
        while slot < stop:
            end, hits = block(relevant, tied, slot, stop)
            if hits:
                size = end - slot
                probability = hits / size
                for q in range(size - hits + 1):
                    values[query] += probability * worth[slot - start + q]
                    probability *= (size - q - hits) / max(size - q - 1, 1)
                break
            slot = end
    return values


@jit_light
def discounted_gain(gains: Any, starts: Any, depths: Any, discount: Any) -> Any:
    """Sum of ``gains * discount`` over the first ``depths[q]`` ranks of each query."""
    values = np.zeros(len(starts) - 1)
    for query in range(len(values)):
        start = starts[query]
        for slot in range(start, min(starts[query + 1], start + depths[query])):
            values[query] += gains[slot] * discount[slot - start]
    return values


@jit_light
def share_ties(gains: Any, tied: Any) -> Any:
    """The gain expected at each rank: tied slots share theirs equally."""
    shared = np.empty(len(gains))
    slot = 0
    while slot < len(gains):
        end, total = slot + 1, gains[slot]
        while end < len(gains) and tied[end]:
            total += gains[end]
            end += 1
        shared[slot:end] = total / (end - slot)
        slot = end
    return shared


@jit_light
def roc_area(relevant: Any, tied: Any, starts: Any, n_relevant: Any) -> Any:
    """Share of pairs (relevant, other) in the right order, a tied pair counting half.

    Relevant documents beyond those in the ranking (``n_relevant`` counts all) stand below it.
    """
    values = np.zeros(len(starts) - 1)
    for query in range(len(values)):
        start, stop = starts[query], starts[query + 1]
        if start == stop or n_relevant[query] == 0:
            continue
        above, correct, slot = 0, 0.0, start  # relevant slots above, pairs in the right order
        while slot < stop:
            end, hits = block(relevant, tied, slot, stop)
            correct += (end - slot - hits) * (above + 0.5 * hits)
            above += hits
            slot = end
        others = stop - start - above
        values[query] = correct / (n_relevant[query] * others) if others else 1.0
    return values
