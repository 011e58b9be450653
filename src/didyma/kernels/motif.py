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

__all__ = [
    "add_sites",
    "answer",
    "count_sites",
    "cut",
    "improve",
    "number_words",
    "sample_sites",
    "scan_runs",
    "tabulate",
]


@jit
def number_words(codes, k, out):
    """out[p] = the k bases from p as a number of base 4, or 4^k where one is unknown or missing."""
    none = 1 << (2 * k)
    word = 0
    known = 0
    for p in range(codes.shape[0]):
        base = np.int64(codes[p])
        known = known + 1 if base < 4 else 0
        word = ((word << 2) + (base & 3)) & (none - 1)
        if p >= k - 1:
            out[p - k + 1] = word if known >= k else none
    for p in range(max(0, codes.shape[0] - k + 1), codes.shape[0]):
        out[p] = none


@jit
def tabulate(matrix, background, k, width, table):
    """table[t, word] = what positions t·width, …, t·width + width − 1 of a window add up to.

    A word has width + k − 1 bases, enough for the k-mers of all these positions.
    """
    size = width + k - 1
    mask = (1 << (2 * k)) - 1
    for t in range(table.shape[0]):
        for word in range(table.shape[1]):
            total = 0.0
            for u in range(width):
                j = t * width + u
                if j < matrix.shape[0]:
                    total += matrix[j, (word >> (2 * (size - 1 - u))) & 3]
                    total -= background[(word >> (2 * (size - u - k))) & mask]
            table[t, word] = total


@jit
def score_window(codes, kmers, matrix, background, h):
    """The score of one window."""
    total = 0.0
    for j in range(matrix.shape[0]):
        total += matrix[j, codes[h + j]] - background[kmers[h + j]]
    return total


@jit
def scan_runs(codes, kmers, words, k, width, runs, table, matrix, background, out):
    """Scores of all windows in runs of known bases, each (begin, end, where its scores go).

    The last few windows of a run, whose words reach beyond it, are summed base by base.
    """
    length = matrix.shape[0]
    blocks = table.shape[0]
    reach = blocks * width + k - 1
    for r in range(runs.shape[0]):
        begin, end, offset = runs[r, 0], runs[r, 1], runs[r, 2]
        middle = max(begin, end - reach + 1)
        for h in range(begin, middle):
            total = 0.0
            for t in range(blocks):
                total += table[t, words[h + t * width]]
            out[offset + h - begin] = total
        for h in range(middle, end - length + 1):
            out[offset + h - begin] = score_window(codes, kmers, matrix, background, h)


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
def improve(scores, starts, signs, tie, gold):
    """Best window of each positive sequence; one that is no better than the former is not taken."""
    for i in range(starts.shape[0] - 1):
        if signs[i] > 0:
            best = best_of(scores, starts[i], starts[i + 1])
            old = gold[i]
            if old < 0 or scores[best] > scores[old] + tie * max(1.0, abs(scores[old])):
                gold[i] = best


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
def add_sites(places, sites, weights, out):
    """Out += Σ_i weights[i] · features of the window sites[i], if there is one."""
    for i in range(sites.shape[0]):
        if sites[i] >= 0:
            add_site(places, i, sites[i], weights[i], out)


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


@jit
def count_sites(codes, length, strands, starts, places, sites, skip, counts):
    """counts[j, base] over the sites of all sequences but ``skip``."""
    for j in range(length):
        for base in range(4):
            counts[j, base] = 0.0
    for i in range(sites.shape[0]):
        if i != skip:
            backwards = sites[i] >= starts[i] + (starts[i + 1] - starts[i]) // strands
            tally(codes, length, places[sites[i]], backwards, 1.0, counts)


@jit
def tally(codes, length, h, backwards, c, counts):
    """Add c for each base of a window, read along its strand."""
    for j in range(length):
        if backwards:
            counts[length - 1 - j, 3 - codes[h + j]] += c
        else:
            counts[j, codes[h + j]] += c


@jit
def sample_sites(codes, expected, strands, starts, places, prior, uniform, counts, sites):
    """One sweep of Gibbs sampling: a new site for each sequence, given those of the others.

    ``counts`` are those of the present sites, ``expected[p]`` is the log probability of the base at
    p under the background, summed from the beginning; ``prior[base]`` are pseudocounts.
    """
    length = counts.shape[0]
    total = 0.0
    for base in range(4):
        total += prior[base]
    matrix = np.empty((length, 4))
    for i in range(sites.shape[0]):
        first, last = starts[i], starts[i + 1]
        reverse = first + (last - first) // strands
        tally(codes, length, places[sites[i]], sites[i] >= reverse, -1.0, counts)
        for j in range(length):
            for base in range(4):
                share = (counts[j, base] + prior[base]) / (sites.shape[0] - 1 + total)
                matrix[j, base] = np.log(share)
        odds = np.empty(last - first)
        highest = -np.inf
        for m in range(first, last):
            h = places[m]
            score = expected[h] - expected[h + length]
            for j in range(length):
                if m < reverse:
                    score += matrix[j, codes[h + j]]
                else:
                    score += matrix[length - 1 - j, 3 - codes[h + j]]
            odds[m - first] = score
            highest = max(highest, score)
        mass = 0.0
        for m in range(last - first):
            mass += np.exp(odds[m] - highest)
            odds[m] = mass
        chosen = 0
        while chosen < last - first - 1 and odds[chosen] < uniform[i] * mass:
            chosen += 1
        sites[i] = first + chosen
        tally(codes, length, places[sites[i]], sites[i] >= reverse, 1.0, counts)
