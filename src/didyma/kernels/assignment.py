"""Maximum-weight assignment by shortest augmenting paths (Jonker & Volgenant), O(n³)."""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["assign"]


@jit
def assign(weights):
    """Column of each row in the assignment with the largest sum; rows ≤ columns.

    Rows are inserted one at a time; u and v are the dual prices that keep reduced costs
    nonnegative, so each insertion is one run of Dijkstra's algorithm.
    """
    n, m = weights.shape
    u = np.zeros(n)
    v = np.zeros(m)
    row_of = np.full(m, -1)
    column_of = np.full(n, -1)
    for start in range(n):
        distance = np.full(m, np.inf)
        parent = np.full(m, -1)
        done = np.zeros(m, dtype=np.bool_)
        row, reached, sink = start, 0.0, -1
        while sink < 0:
            nearest, best = -1, np.inf
            for column in range(m):
                if done[column]:
                    continue
                length = reached - weights[row, column] - u[row] - v[column]
                if length < distance[column]:
                    distance[column] = length
                    parent[column] = row
                if distance[column] < best:
                    nearest, best = column, distance[column]
            reached = best
            done[nearest] = True
            if row_of[nearest] < 0:
                sink = nearest
            else:
                row = row_of[nearest]
        u[start] += reached
        for column in range(m):
            if done[column] and column != sink:
                u[row_of[column]] += reached - distance[column]
                v[column] -= reached - distance[column]
        column = sink
        while column >= 0:
            row = parent[column]
            row_of[column] = row
            column_of[row], column = column, column_of[row]
    return column_of
