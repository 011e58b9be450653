"""Random trees by loop-erased random walks (Wilson 1996)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["sample_trees"]


@jit
def sample_trees(cumulative, roots, n, most, generator, heads):
    """Heads (samples, n + 1) of words 1 to n; a row that took too long has −1 in it.

    ``cumulative[m, h]`` is the sum of the weights of heads 0 to h of word m. If ``roots`` is not
    empty a single word hangs from the root, word m with cumulative probability roots[m], and all
    others walk to it.

    The cycles that walks leave behind are independent of the tree that remains, so to give up
    after ``most`` steps, and to draw such a tree in another way, favours no tree.
    """
    inside = np.empty(n + 1, np.bool_)
    for s in range(heads.shape[0]):
        head = heads[s]
        for m in range(n + 1):
            inside[m] = False
            head[m] = -1
        inside[0] = True
        first = 0
        if roots.shape[0] > 0 and n > 0:
            only = choose(roots, 1, n, generator)
            head[only] = 0
            inside[only] = True
            first = 1
        steps = 0
        for m in range(1, n + 1):
            word = m
            while not inside[word] and steps < most:
                head[word] = choose(cumulative[word], first, n, generator)
                word = head[word]
                steps += 1
            if not inside[word]:
                for other in range(1, n + 1):
                    if head[other] != 0 or roots.shape[0] == 0:
                        head[other] = -1
                break
            word = m
            while not inside[word]:
                inside[word] = True
                word = head[word]


@jit
def choose(cumulative, first, last, generator):
    """An index from ``first`` to ``last``, in proportion to the differences."""
    before = cumulative[first - 1] if first > 0 else 0.0
    x = before + generator.random() * (cumulative[last] - before)
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low
