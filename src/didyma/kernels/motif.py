"""Windows of DNA: scored against a position-specific matrix, and turned back into features.

Bases are 0 to 3, anything else is unknown. Score of the window that starts at h, relative to
background only:

    s(h) = Σ_{j<l} matrix[j, x_{h+j}] − background[k-mer that starts at h + j]

A k-mer with an unknown or missing base has the number 4^k and weighs nothing. Several positions at
once come from a table over longer words: with blocks of `width` positions a window costs l / width
look-ups.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["answer", "cut"]


@jit
def best_of(scores, first, last):
    """Index of the first maximum of a part, or -1 if it is empty."""
    best = -1
    highest = -np.inf
    for m in range(first, last):
        if scores[m] > highest:
            best, highest = m, scores[m]
    return best


@jit
def decide(sign, best, margin):
    """Whether answering +1 with the best window's score wins, ``margin`` being added to errors."""
    return best > margin if sign > 0 else best + margin > 0.0


@jit
def add_window(codes, kmers, length, h, backwards, c, out):
    """Add c times the features of a window less those of background in its place."""
    n_kmers = out.shape[0] - 4 * length
    for j in range(length):
        if backwards:
            out[4 * (length - 1 - j) + 3 - codes[h + j]] += c
        else:
            out[4 * j + codes[h + j]] += c
        if kmers[h + j] < n_kmers:
            out[4 * length + kmers[h + j]] -= c


@jit
def add_site(places, i, m, c, out):
    """Add c times the features of window m of sequence i."""
    codes, kmers, length, strands, starts, positions = places
    backwards = m >= starts[i] + (starts[i + 1] - starts[i]) // strands
    add_window(codes, kmers, length, positions[m], backwards, c, out)


@jit
def answer(places, scores, signs, weights, gold, options, risks, direction):
    """Risk of each sequence and weighted cut of all, given all scores; returns its loss."""
    margin, scale, online = options[0], options[1], options[2] > 0.0
    starts = places[4]
    total = 0.0
    for i in range(signs.shape[0]):
        best = best_of(scores, starts[i], starts[i + 1])
        positive = best >= 0 and decide(signs[i], scores[best], margin)
        risk = scale if positive != (signs[i] > 0) else 0.0
        total += weights[i] * risk
        if positive:
            risk += scores[best]
            add_site(places, i, best, weights[i], direction)
        if signs[i] > 0:
            own = best if online else gold[i]
            risk -= scores[own]
            add_site(places, i, own, -weights[i], direction)
        risks[i] = risk
    return total


@jit
def cut(problem, w, i, direction):
    """Cut of sequence i: fills the direction, returns the loss."""
    places, signs, gold, options = problem
    codes, kmers, length, strands, starts, positions = places
    margin, scale, online = options[0], options[1], options[2] > 0.0
    first, last = starts[i], starts[i + 1]
    reverse = first + (last - first) // strands
    n_kmers = w.shape[0] - 4 * length
    best, highest = -1, 0.0
    for m in range(first, last):
        h = positions[m]
        total = 0.0
        for j in range(length):
            if m < reverse:
                total += w[4 * j + codes[h + j]]
            else:
                total += w[4 * (length - 1 - j) + 3 - codes[h + j]]
            if kmers[h + j] < n_kmers:
                total -= w[4 * length + kmers[h + j]]
        if best < 0 or total > highest:
            best, highest = m, total
    for f in range(direction.shape[0]):
        direction[f] = 0.0
    positive = best >= 0 and decide(signs[i], highest, margin)
    if positive:
        add_site(places, i, best, 1.0, direction)
    if signs[i] > 0:
        own = best if online else gold[i]
        add_site(places, i, own, -1.0, direction)
    return scale if positive != (signs[i] > 0) else 0.0
