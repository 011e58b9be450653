"""Maximum-weight assignment by shortest augmenting paths (Jonker & Volgenant), O(n³).

Columns have prices p, and a row is content with a column of the largest value w_ij − p_j: an
assignment of all rows to all columns that contents every row is optimal. Columns that no row needs
go to idle rows, whose weights are zero. Any prices are a valid start, and those that were right for
similar weights a good one: they are kept between calls.
"""

from __future__ import annotations

import numpy as np

from didyma.kernels.jit import jit

__all__ = ["assign", "match", "matching"]

PRECISION = 1024.0  # prices above this multiple of the matched weights are forgotten
IDLE = 8  # with more than a row in so many idle, a fresh start is faster


@jit
def matching(scores, extra, dims, size, work, index, parts, extra_parts):
    """Argmax of `didyma.structures.Matching` for size[0] rows and size[1] of dims[0] columns."""
    stride = dims[0]
    n, m = size[0], size[1]
    if min(n, m) == 0:
        return 0
    weights, step = scores, stride
    if n > m:  # the columns are the rows
        weights, step = work[5 * n :], n
        for i in range(n):
            for j in range(m):
                weights[j * n + i] = scores[i * stride + j]
    count = min(n, m)
    if not match(weights, step, count, max(n, m), work, index):
        return -1
    for i in range(count):
        parts[i] = i * stride + index[1 + i] if n <= m else index[1 + i] * stride + i
    return count


@jit
def assign(weights):
    """Column of each row in the assignment with the largest sum; rows ≤ columns."""
    n, m = weights.shape
    index = np.zeros(1 + 6 * m, dtype=np.int64)
    match(weights.ravel(), m, n, m, np.zeros(5 * m), index)
    return index[1 : n + 1]


@jit
def match(weights, stride, n, m, work, index):
    """Assign n rows to n of m ≥ n columns; False if −∞ forbids every assignment.

    Entry [i, j] stands at i·stride + j. index[1:n + 1] ends as the column of each row; work (5m)
    and index (1 + 6m) are zero at first and then keep prices and assignment for the next call.
    """
    price, idle = work[:m], work[4 * m : 5 * m]
    column_of, row_of = index[1 : m + 1], index[m + 1 : 2 * m + 1]
    free = index[2 * m + 1 : 3 * m + 1]
    rows = m
    known = index[0] == 1 and IDLE * (m - n) <= n
    if not known or not _resume(weights, stride, n, m, work, column_of, row_of):
        for j in range(m):
            price[j] = 0.0
            column_of[j] = row_of[j] = -1
        rows = n  # idle rows take what is left, at the lowest price
    index[0] = 0  # only a complete assignment is worth keeping
    n_free = 0
    for i in range(rows):
        if column_of[i] < 0:
            free[n_free] = i
            n_free += 1
    n_free = _bid(weights, idle, stride, n, work, column_of, row_of, free, n_free)
    for k in range(n_free):
        if not _augment(weights, idle, stride, n, work, column_of, row_of, index, free[k]):
            return False
    for j in range(m):
        if row_of[j] < 0:
            row_of[j], column_of[rows] = rows, j
            rows += 1
    index[0] = 1
    return True


@jit
def _values(row, price, value):
    """Fill ``value`` with row − price; its maximum."""
    best = -np.inf
    for j in range(price.shape[0]):
        value[j] = row[j] - price[j]
        best = value[j] if value[j] > best else best
    return best


@jit
def _resume(weights, stride, n, m, work, column_of, row_of):
    """Keep of the last assignment what its prices still justify; False if they are useless."""
    price, value = work[:m], work[m : 2 * m]
    lowest, highest, scale = np.inf, -np.inf, 0.0
    for j in range(m):
        lowest = price[j] if price[j] < lowest else lowest
        highest = price[j] if price[j] > highest else highest
    for i in range(n):
        weight = weights[i * stride + column_of[i]]
        if weight > -np.inf:
            scale = max(scale, abs(weight))
    if not highest - lowest <= PRECISION * scale:
        return False
    for j in range(m):
        price[j] -= lowest
    for i in range(m):
        column = column_of[i]
        if i < n:
            best = _values(weights[i * stride : i * stride + m], price, value)
            content = value[column] == best and best > -np.inf
        else:
            content = price[column] == 0.0
        if not content:
            column_of[i] = row_of[column] = -1
    return True


@jit
def _bid(weights, idle, stride, n, work, column_of, row_of, free, n_free):
    """Free rows take their best column and raise its price until the next best is as good.

    A row that loses its column bids at once, as long as prices rise; the others, and those that do
    not come to rest soon, are left in ``free``. Returns their number.
    """
    m = idle.shape[0]
    price, value = work[:m], work[m : 2 * m]
    patience = 4 * n_free + m
    left = k = 0
    while k < n_free:
        row = free[k]
        k += 1
        if row < n:
            best = _values(weights[row * stride : row * stride + m], price, value)
        else:
            best = _values(idle, price, value)
        column = 0
        while column < m - 1 and value[column] != best:
            column += 1
        value[column] = -np.inf
        second = -np.inf
        for j in range(m):
            second = value[j] if value[j] > second else second
        patience -= 1
        raised = price[column] + (best - second)
        if not raised < np.inf or patience < 0:
            free[left] = row
            left += 1
            continue
        rises = raised > price[column]
        if not rises and row_of[column] >= 0:
            column = 0
            while value[column] != second:
                column += 1
        elif rises:
            price[column] = raised
        loser = row_of[column]
        row_of[column] = row
        column_of[row] = column
        if loser >= 0:
            column_of[loser] = -1
            if rises:
                k -= 1
                free[k] = loser
            else:
                free[left] = loser
                left += 1
    return left


@jit
def _relax(edges, offset, open_price, row, value, parent):
    """Shorten distances by the edges of a row; the shortest."""
    nearest = np.inf
    for j in range(value.shape[0]):
        length = offset - edges[j] + open_price[j]
        shorter = length < value[j]
        parent[j] = row if shorter else parent[j]
        value[j] = length if shorter else value[j]
        nearest = value[j] if value[j] < nearest else nearest
    return nearest


@jit
def _augment(weights, idle, stride, n, work, column_of, row_of, index, start):
    """Assign one more row along a shortest path; False if there is none.

    The length of an edge is what its row loses by it; ``value`` is the distance of each open
    column, ``distance`` that of each closed one.
    """
    m = idle.shape[0]
    price, value = work[:m], work[m : 2 * m]
    open_price, distance = work[2 * m : 3 * m], work[3 * m : 4 * m]
    parent, order = index[3 * m + 1 : 4 * m + 1], index[4 * m + 1 : 5 * m + 1]
    closed = index[5 * m + 1 : 6 * m + 1]
    for j in range(m):
        value[j] = np.inf
        open_price[j] = price[j]
        order[j] = j if row_of[j] < 0 else m + j  # of columns at one distance, a free one first
    row, offset = start, 0.0
    n_closed = 0
    while True:
        if row < n:
            edges = weights[row * stride : row * stride + m]
            nearest = _relax(edges, offset, open_price, row, value, parent)
        else:
            nearest = _relax(idle, offset, open_price, row, value, parent)
        if nearest == np.inf:
            return False
        first = 2 * m
        for j in range(m):
            place = order[j] if value[j] == nearest else 2 * m
            first = place if place < first else first
        if first < m:
            break
        column = first - m
        row = row_of[column]
        weight = weights[row * stride + column] if row < n else 0.0
        offset = nearest + (weight - price[column])
        value[column] = open_price[column] = np.inf  # closed
        distance[n_closed] = nearest
        closed[n_closed] = column
        n_closed += 1
    for k in range(n_closed):
        price[closed[k]] += nearest - distance[k]
    column = first
    while column >= 0:
        row = parent[column]
        row_of[column] = row
        column_of[row], column = column, column_of[row]
    return True
