"""Rank the rows of each query, and measure a ranking.

Arrays come query by query: query ``q`` owns the slots ``starts[q]:starts[q + 1]``, best first once
they are ranked. Every measure is an expectation over all orders of tied slots, where ``tied[s]``
says that slot ``s`` has the score of slot ``s - 1``; with nothing tied it is the measure itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from didyma.kernels.jit import jit

__all__ = [
    "average_precision",
    "descending",
    "discounted_gain",
    "first_relevant",
    "roc_area",
    "share_ties",
]

INSERTION_WIDTH = 16


@jit
def descending(bits: Any, starts: Any) -> Any:
    """Slots of each query by descending score, equal scores in their given order.

    ``bits`` are the bits of float32 scores as uint32, without NaN or negative zero. A score, made
    an integer whose order is descending, and the slot beneath it share one sortable word.
    """
    sign, low = np.uint64(1 << 31), np.uint64((1 << 32) - 1)
    longest = 0
    for query in range(len(starts) - 1):
        longest = max(longest, starts[query + 1] - starts[query])
    words, spare = np.empty(longest, np.uint64), np.empty(longest, np.uint64)
    slots = np.empty(len(bits), np.int64)
    for query in range(len(starts) - 1):
        start, size = starts[query], starts[query + 1] - starts[query]
        for i in range(size):
            score = np.uint64(bits[start + i])
            if not score & sign:
                score = sign - np.uint64(1) - score
            words[i] = score << np.uint64(32) | np.uint64(i)
        ordered = merge_sort(words[:size], spare[:size])
        for i in range(size):
            slots[start + i] = start + np.int64(ordered[i] & low)
    return slots


@jit
def merge_sort(words: Any, spare: Any) -> Any:
    """Sort ``words`` with the help of ``spare``; the result is one of the two."""
    size = len(words)
    for start in range(0, size, INSERTION_WIDTH):
        for i in range(start + 1, min(start + INSERTION_WIDTH, size)):
            word, j = words[i], i
            while j > start and words[j - 1] > word:
                words[j] = words[j - 1]
                j -= 1
            words[j] = word
    width = INSERTION_WIDTH
    while width < size:
        for start in range(0, size, 2 * width):
            middle, stop = min(start + width, size), min(start + 2 * width, size)
            i, j, k = start, middle, start
            while i < middle and j < stop:
                left, right = words[i], words[j]
                first = left <= right  # no branch: which one comes first cannot be predicted
                spare[k] = left if first else right
                i += first
                j += not first
                k += 1
            while i < middle:
                spare[k] = words[i]
                i += 1
                k += 1
            while j < stop:
                spare[k] = words[j]
                j += 1
                k += 1
        words, spare = spare, words
        width *= 2
    return words


@jit
def block(relevant: Any, tied: Any, slot: int, stop: int) -> Any:
    """Where the slots tied with ``slot`` end, and how many of them are relevant."""
    end, hits = slot + 1, int(relevant[slot])
    while end < stop and tied[end]:
        hits += relevant[end]
        end += 1
    return end, hits


@jit
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


@jit
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


@jit
def discounted_gain(gains: Any, starts: Any, depths: Any, discount: Any) -> Any:
    """Sum of ``gains * discount`` over the first ``depths[q]`` ranks of each query."""
    values = np.zeros(len(starts) - 1)
    for query in range(len(values)):
        start = starts[query]
        for slot in range(start, min(starts[query + 1], start + depths[query])):
            values[query] += gains[slot] * discount[slot - start]
    return values


@jit
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


@jit
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
