"""The best derivation of a hypergraph, for solvers; `didyma._core.hypergraph` has the rest.

Values stand in one array: the scores of the parts, the additional scores, a zero, and then one
value for each vertex. An edge into a vertex is a pair of values to be added, earlier ones; a vertex
is the best (or the sum, in log space) of its edges. So a *derivation* of the goal adds up leaves.

``dims`` is the plan (`didyma.structures.hypergraph.Hypergraph`): where the vertices stand in it;
how many lengths there are along each axis; for each combination of lengths the first vertex that is
needed and the goal; for each vertex where its edges begin; the edges.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["hyperpath"]


@jit
def _read(scores, extra, values):
    """Leaves are the first values; returns where the vertices begin."""
    d, f = scores.shape[0], extra.shape[0]
    for i in range(d):
        values[i] = scores[i]
    for i in range(f):
        values[d + i] = extra[i]
    values[d + f] = 0.0
    return d + f + 1


@jit
def _goal(dims, size):
    """Where the first vertex and the goal of an instance of this size stand."""
    code = 0
    for axis in range(size.shape[0]):
        code = code * dims[1 + axis] + size[axis]
    return 1 + size.shape[0] + 2 * code


@jit
def _total(values, dims, at):
    """What an edge adds up; unsigned indices need no test for negative ones."""
    left = values[np.uint64(dims[np.uint64(at)])]
    return left + values[np.uint64(dims[np.uint64(at + 1)])]


@jit
def _highest(values, dims, start, stop):
    """The highest of the edges between."""
    best = -np.inf
    for at in range(start, stop, 2):
        total = _total(values, dims, at)
        best = total if total > best else best
    return best


@jit
def _maximise(values, dims, first, goal, base):
    """Values of the vertices up to the goal: the best derivation of each."""
    vertices = dims[0]
    for slot in range(first, goal + 1):
        v = vertices + slot - base
        values[slot] = _highest(values, dims, dims[v], dims[v + 1])


@jit
def hyperpath(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of a plan: values upwards, then the edges that attain them downwards.

    Only the best derivation needs to know where its values came from. Of equally good edges the
    first wins.
    """
    d, f = scores.shape[0], extra.shape[0]
    base = _read(scores, extra, work)
    place = _goal(dims, size)
    goal = dims[place + 1]
    _maximise(work, dims, dims[place], goal, base)
    if work[goal] == -np.inf:
        return -1
    count = n_extra = 0
    index[0], depth = goal, 1
    while depth > 0:
        slot = index[depth - 1]
        if slot >= base:
            at = dims[dims[0] + slot - base]
            while _total(work, dims, at) < work[slot]:
                at += 2
            index[depth - 1] = dims[at + 1]
            index[depth] = dims[at]
            depth += 1
            continue
        depth -= 1
        if slot < d:
            parts[count] = slot
            count += 1
        elif slot < d + f:
            extra_parts[n_extra] = slot - d
            n_extra += 1
    for i in range(count, parts.shape[0]):
        parts[i] = -1
    for i in range(n_extra, extra_parts.shape[0]):
        extra_parts[i] = -1
    return count
