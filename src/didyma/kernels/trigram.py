"""The best tags of sentences, and the n best, under a second-order hidden Markov model.

Sentences stand in one stream of entries of a lexicon, two boundaries before and after each:

    B B w₁ w₂ w₃ B B w₁ B B

and sentence s owns ``entries[starts[s] : starts[s + 1] - 2]``. An entry has a few possible tags,
the boundary a single one. The score of tags is the sum, over words and closing boundaries, of

    log P(c | a, b) + log P(w | b, c)          for a word w and its tag c after the tags a and b.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from didyma.kernels.jit import jit

__all__ = ["Runs", "TrigramModel", "best_tags", "n_best_tags"]

jit_inline = partial(jit, forceinline=True)


class Runs(NamedTuple):
    """Tags with values, a run for each row: those of row r from starts[r] to starts[r + 1]."""

    starts: NDArray[np.int64]
    tags: NDArray[np.int64]
    values: NDArray[np.float64]


class TrigramModel(NamedTuple):
    """Log-probabilities.

    ``steps[rows[a, b], c]`` is log P(c | a, b): pairs (a, b) that were never seen share a row.
    ``lexicon`` has for each entry w its tags c. Each is a row of ``contexts``, which has, in order,
    the tags b that were seen before it with their log P(w | b, c); for all others, this is the
    value in the lexicon.
    """

    rows: NDArray[np.int64]
    steps: NDArray[np.float64]
    lexicon: Runs
    contexts: Runs


@jit_inline
def n_tags(lexicon, entry):
    """How many tags an entry can have."""
    return lexicon.starts[entry + 1] - lexicon.starts[entry]


@jit_inline
def emission(model, place, b):
    """Log-probability of the entry w, given b and c, for the w and c at a place of the lexicon."""
    low, stop = model.contexts.starts[place], model.contexts.starts[place + 1]
    high = stop
    while low < high:
        middle = (low + high) // 2
        if model.contexts.tags[middle] < b:
            low = middle + 1
        else:
            high = middle
    seen = low < stop and model.contexts.tags[low] == b
    return model.contexts.values[low] if seen else model.lexicon.values[place]


@jit
def forward(model, entries, first, stop):
    """Score of the best way to each cell (b, c), tags of neighbours, and the a before it.

    Returns (cells, value, back): cells that end at position i begin at cells[i − first + 1]. Here
    and below a, b and c count among the tags of their own words.
    """
    begin, tags = model.lexicon.starts, model.lexicon.tags
    cells = np.zeros(stop - first + 4, np.int64)
    for i in range(first - 1, stop + 2):
        n_cells = n_tags(model.lexicon, entries[i - 1]) * n_tags(model.lexicon, entries[i])
        cells[i - first + 2] = cells[i - first + 1] + n_cells
    value, back = np.empty(cells[-1]), np.empty(cells[-1], np.int64)
    value[0] = 0.0
    for i in range(first, stop + 2):
        n_a, n_b = n_tags(model.lexicon, entries[i - 2]), n_tags(model.lexicon, entries[i - 1])
        n_c, place = n_tags(model.lexicon, entries[i]), begin[entries[i]]
        a_tags, b_tags = tags[begin[entries[i - 2]] :], tags[begin[entries[i - 1]] :]
        before, here = cells[i - first], cells[i - first + 1]
        for b in range(n_b):
            for c in range(n_c):
                highest, best = -np.inf, 0
                for a in range(n_a):
                    x = value[before + a * n_b + b]
                    if x > highest:  # a transition only lowers it
                        x += model.steps[model.rows[a_tags[a], b_tags[b]], tags[place + c]]
                        if x > highest:
                            highest, best = x, a
                value[here + b * n_c + c] = highest + emission(model, place + c, b_tags[b])
                back[here + b * n_c + c] = best
    return cells, value, back


@jit
def best_tags(model, entries, starts, tags):
    """The best tags, each at the position of its word in the stream."""
    lexicon = model.lexicon
    for s in range(len(starts) - 1):
        first, stop = starts[s], starts[s + 1] - 2
        cells, _, back = forward(model, entries, first, stop)
        b = c = 0
        for i in range(stop + 1, first + 1, -1):
            b, c = back[cells[i - first + 1] + b * n_tags(lexicon, entries[i]) + c], b
            tags[i - 2] = lexicon.tags[lexicon.starts[entries[i - 2]] + b]


@jit
def n_best_tags(model, entries, starts, tags, totals):
    """The n best tags (n, length of the stream), best first, and their scores (sentences, n).

    ``tags`` comes with zeros; scores are −∞ where there are fewer ways. The second best way takes
    another a before some cell (b, c) of the best way, keeps what follows the cell, and is as good
    as can be before it. So do all others: each leaves a better one, its parent, at one cell, and is
    itself left only before that cell, so that none is met twice. Of those that were met the n best
    are kept, in order, and each is followed when its turn comes.
    """
    lexicon, begin, n = model.lexicon, model.lexicon.starts, tags.shape[0]
    parent, leaves, chosen = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    rest = np.empty(n)  # score of a way from the cell on where it leaves its parent
    for s in range(len(starts) - 1):
        first, stop = starts[s], starts[s + 1] - 2
        cells, value, back = forward(model, entries, first, stop)
        total = totals[s]
        total[:] = -np.inf
        total[0] = value[-1]
        rest[0], parent[0], leaves[0], chosen[0] = 0.0, 0, stop + 2, 0
        size, r = 1, 0
        while r < size:
            way = tags[r]
            way[leaves[r] - 1 : stop + 2] = tags[parent[r], leaves[r] - 1 : stop + 2]
            way[leaves[r] - 2] = chosen[r]
            after = rest[r]
            for i in range(leaves[r] - 1, first + 1, -1):
                b, c = way[i - 1], way[i]
                best = back[cells[i - first + 1] + b * n_tags(lexicon, entries[i]) + c]
                way[i - 2] = best
                place, a_tags = begin[entries[i]] + c, lexicon.tags[begin[entries[i - 2]] :]
                b_tag, c_tag = lexicon.tags[begin[entries[i - 1]] + b], lexicon.tags[place]
                after += emission(model, place, b_tag)
                before, n_b = cells[i - first] + b, n_tags(lexicon, entries[i - 1])
                for a in range(n_tags(lexicon, entries[i - 2])):
                    x = value[before + a * n_b] + after
                    if a == best or x <= total[n - 1]:
                        continue
                    step = model.steps[model.rows[a_tags[a], b_tag], c_tag]
                    x = min(x + step, total[r])  # equal ones may round differently
                    if x > total[n - 1]:
                        size = min(size + 1, n)
                        k = size - 1
                        while k > r + 1 and total[k - 1] < x:
                            total[k], rest[k], parent[k] = total[k - 1], rest[k - 1], parent[k - 1]
                            leaves[k], chosen[k] = leaves[k - 1], chosen[k - 1]
                            k -= 1
                        total[k], rest[k], parent[k] = x, step + after, r
                        leaves[k], chosen[k] = i, a
                after += model.steps[model.rows[a_tags[best], b_tag], c_tag]
            r += 1
        for r in range(size):
            for i in range(first, stop):
                tags[r, i] = lexicon.tags[begin[entries[i]] + tags[r, i]]
