"""Best spanning forest by Prim's algorithm, O(n²): faster on dense graphs than sorting edges."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["forest"]


@jit
def forest(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.Forest`: positive edges among size[0] of dims[0] nodes.

    The tree takes the open node with the best edge to it; where no edge is positive, the first open
    node begins a tree of its own.
    """
    stride, n = dims[0], size[0]
    gain, neighbour = work[:n], index[:n]
    for j in range(n):
        gain[j] = 0.0
    count = 0
    for _ in range(n):
        best, node = -1.0, 0
        for j in range(n):
            score = gain[j] if gain[j] < np.inf else -1.0
            best = score if score > best else best
        while gain[node] != best:
            node += 1
        if best > 0.0:
            low, high = min(node, neighbour[node]), max(node, neighbour[node])
            place = count
            while place > 0 and parts[place - 1] > low * stride + high:
                parts[place] = parts[place - 1]
                place -= 1
            parts[place] = low * stride + high
            count += 1
        gain[node] = np.inf  # no longer open
        for j in range(node):
            score = scores[j * stride + node]
            better = score > gain[j]
            gain[j] = score if better else gain[j]
            neighbour[j] = node if better else neighbour[j]
        row = scores[node * stride : node * stride + n]
        for j in range(node + 1, n):
            better = row[j] > gain[j]
            gain[j] = row[j] if better else gain[j]
            neighbour[j] = node if better else neighbour[j]
    for place in range(count, parts.shape[0]):
        parts[place] = -1
    return count
