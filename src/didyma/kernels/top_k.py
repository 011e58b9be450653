"""The k best of n options."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["top_k"]


@jit
def top_k(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.TopK`: dims[0] of size[0] options, exactly (dims[1]) or at most.

    A heap of the best scores ends with the lowest that is chosen on top; of options that tie there
    the first are.
    """
    heap, k, n = work, dims[0], size[0]
    if n == 0:
        return 0
    worst = -np.inf if dims[1] else 0.0  # not worth choosing
    for t in range(k):
        heap[t] = worst
    for i in range(n):
        score = scores[i]
        if score > heap[0]:
            parent, child = 0, 1
            while child < k:
                child += child + 1 < k and heap[child + 1] < heap[child]
                if heap[child] >= score:
                    break
                heap[parent] = heap[child]
                parent, child = child, 2 * child + 1
            heap[parent] = score
    threshold = heap[0]
    if threshold == -np.inf:
        return -1
    above = ties = 0
    for t in range(k):
        above += heap[t] > threshold
        ties += heap[t] == threshold and threshold > worst
    chosen = above + ties
    i = count = 0
    while count < chosen:
        tied = scores[i] == threshold and ties > 0
        ties -= tied
        parts[count] = i
        count += tied or scores[i] > threshold
        i += 1
    for t in range(chosen, parts.shape[0]):
        parts[t] = -1
    return chosen
